"""One member's step: what is drawn, what the state weights learn and say, what the algorithm learns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from sapp.algorithms import Algorithm
from sapp.core.errors import SappError
from sapp.core.pytrees import select, shapes
from sapp.core.spec import Batch
from sapp.training.feed import Feed
from sapp.weights.base import Metrics

DIVERGENCE_LIMIT = 1e12
"""A loss beyond this, or one that is not a number, stops its member."""


class Kind(NamedTuple):
    """What is compiled: does the base learn, does the ratio, are penalties weighted, how many members share a batch."""

    base: bool
    ratio: bool
    weighted: bool
    variants: int = 1


class MemberState(NamedTuple):
    """What a member takes from step to step."""

    base: Any
    ratio: Any
    alive: Array


def member_keys(key: Array, stream: Array, count: Array) -> Array:
    """Keys for batch, ratio, weights and algorithm: a function of the member's key, the stream and its counter."""
    return jax.random.split(jax.random.fold_in(jax.random.fold_in(key, 1 + stream), count), 4)


def draw(
    kind: Kind, algorithm: Algorithm, feed: Feed, key: Array, dataset: Array, update: Array
) -> tuple[Array, Any]:
    """The keys of a member's n-th step, and what says which rows its batch consists of."""
    keys = member_keys(key, jnp.int32(0 if kind.base else 1), update)
    return keys, feed.draw(dataset, keys[0], algorithm.batch_size)


def step(
    kind: Kind, update: Array, algorithm: Algorithm, keys: Array, batch: Batch, state: MemberState
) -> tuple[MemberState, Metrics]:
    """Take one member a step further on a batch; what of this its phase (``kind``) does not use is not computed."""
    base, ratio, alive = state
    _, ratio_key, weights_key, base_key = keys
    metrics: Metrics = {}
    seen, policy = _seen_by_weights(algorithm, base, batch), algorithm.feature_policy(base)

    # The weights come from the estimator as it was before this step: estimator and algorithm then learn side by side,
    # neither waiting for the other.
    weights = jnp.ones_like(batch.reward)
    if kind.weighted:
        weights, logged = algorithm.weights.weights(ratio, seen, policy, weights_key)
        metrics |= _checked(algorithm.weights, "weights", logged) | _spread(weights)
    if kind.ratio:
        discount = jnp.asarray(algorithm.discount, jnp.float32)
        ratio, logged = algorithm.weights.update(ratio, seen, policy, discount, ratio_key)
        metrics |= _checked(algorithm.weights, "update", logged)
    # The barrier keeps the compiler from mixing the weights' arithmetic into the algorithm's, so that equal weights
    # give equal bits wherever they come from.
    weights = jax.lax.optimization_barrier(weights)
    if kind.base:
        found = algorithm.scheduled_update(base, batch, weights, base_key, update)
        new, logged = _checked_update(algorithm, base, found)
        metrics |= logged
        # Selected by whether the member was alive before this step, known from its start: the selection then costs no
        # pass over memory of its own. What stopped the member left its parameters finite (see adam_step).
        base = select(alive, new, base)
        alive = alive & (jnp.abs(logged["loss"]) < DIVERGENCE_LIMIT)
    return MemberState(base, ratio, alive), metrics


def _seen_by_weights(algorithm: Algorithm, base: Any, batch: Batch) -> Batch:
    """A batch with features in place of observations."""
    return replace(
        batch,
        observation=algorithm.features(base, batch.observation),
        next_observation=algorithm.features(base, batch.next_observation),
        initial_observation=algorithm.features(base, batch.initial_observation),
    )


def _spread(weights: Array) -> Metrics:
    return {
        "weights/mean": jnp.mean(weights),
        "weights/std": jnp.std(weights),
        "weights/min": jnp.min(weights),
        "weights/max": jnp.max(weights),
    }


def _checked_update(algorithm: Algorithm, state: Any, found: Any) -> tuple[Any, Metrics]:
    """What an update gave, refused when it is traced if the loop cannot go on with it: an algorithm may be anyone's."""
    name = type(algorithm).__name__
    if not isinstance(found, tuple) or len(found) != 2:
        raise SappError(f"{name}: update gives {type(found).__name__}; it must give the new state and the metrics")
    new, metrics = found
    if shapes(new) != shapes(state):
        raise SappError(f"{name}: update gives a state of another form than init; keep its structure and shapes")
    if "loss" not in _checked(algorithm, "update", metrics):
        raise SappError(f"{name}: update's metrics have no 'loss'; add it, divergence is seen in it")
    return new, metrics


def _checked(owner: Any, verb: str, metrics: Any) -> Metrics:
    """Metrics, if they are numbers by name."""
    name = type(owner).__name__
    if not isinstance(metrics, dict):
        raise SappError(f"{name}: {verb} gives {type(metrics).__name__} for metrics; give a dict of numbers by name")
    for key, value in metrics.items():
        if jnp.ndim(value):
            raise SappError(f"{name}: metric {key!r} of {verb} has shape {jnp.shape(value)}; it must be one number")
    return metrics
