"""State ratios by classification: a network that tells states of the policy from states of the data.

With as many of either kind, the minimiser of E_π[softplus(−c)] + E_D[softplus(c)] is c(s) = log dᵖ(s)/dᴰ(s).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from sapp.errors import SappError, check_ranges
from sapp.networks import MLP, Policy
from sapp.networks.mlp import check_precision
from sapp.ratios.base import Metrics, StateWeights
from sapp.ratios.transforms import Transform
from sapp.spec import Batch, Spec
from sapp.tree import polyak, select, usable

LOG_RATIO_LIMIT = 15.0
"""Log-ratios are bounded so that their exponentials stay finite."""
ADAM = optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-8)


def log_ratio(classifier: MLP, state: Array) -> Array:
    """c(s) [...] at standardised states [..., S], bounded."""
    return jnp.clip(classifier(state)[..., 0], -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)


def classifier_loss(
    classifier: MLP, positive: Array, share: Array, data: Array, floor: Array | float = 0.0
) -> tuple[Array, tuple[Array, Array]]:
    """Σᵢ shareᵢ·softplus(−c(positiveᵢ)) + E_D[softplus(c)], the shares summing to 1; also c at both kinds.

    With ``floor`` ε > 0 that share of the positives are data, so that the minimiser is log((1−ε)ω + ε): where the
    policy never goes it stops at log ε instead of falling for ever. The bound ±``LOG_RATIO_LIMIT`` is not applied here:
    where it binds there would be no gradient to come back.
    """
    score = classifier(jnp.concatenate([positive, data]))[..., 0]
    ours, theirs = score[: len(positive)], score[len(positive) :]
    found = (1.0 - floor) * jnp.sum(share * jax.nn.softplus(-ours)) + floor * jnp.mean(jax.nn.softplus(-theirs))
    return found + jnp.mean(jax.nn.softplus(theirs)), (ours, theirs)


def accuracy(ours: Array, share: Array, theirs: Array) -> Array:
    """How often the classifier is right, both kinds counting half: ½ where they cannot be told apart."""
    return 0.5 * (jnp.sum(share * (ours > 0.0)) + jnp.mean(theirs < 0.0, dtype=jnp.float32))


def effective_share(ratio: Array) -> Array:
    """(Σw)²/(n·Σw²) of ratios [n]: 1 where all are equal, 1/n where one has everything."""
    return jnp.square(jnp.mean(ratio)) / jnp.maximum(jnp.mean(jnp.square(ratio)), 1e-12)


def descend(
    parameters: tuple[Any, ...],
    loss: Array,
    gradients: tuple[Any, ...],
    optimiser: Any,
    rates: Sequence[Array | float],
) -> tuple[tuple[Any, ...], Any, Array]:
    """One Adam step of several networks, each at its own rate, and whether it was taken.

    A step on a loss that is not finite is not taken, so that a sick estimator can heal.
    """
    directions, new = ADAM.update(usable(gradients), optimiser)
    stepped = tuple(
        jax.tree.map(lambda p, d, lr=lr: p - lr * d, parameter, direction)
        for parameter, direction, lr in zip(parameters, directions, rates, strict=True)
    )
    finite = jnp.isfinite(loss)
    return select(finite, stepped, parameters), select(finite, new, optimiser), finite


def averaged(readout: MLP, classifier: MLP, rate: Array | float, steps: Array) -> MLP:
    """The running mean of a classifier's parameters, of all its ``steps`` so far until 1/``rate`` of them are made.

    A ratio that is nearly flat is smaller than the noise of single steps; their mean has little of it.
    """
    return polyak(readout, classifier, jnp.maximum(rate, 1.0 / (steps + 1.0)))


class Standard(eqx.Module):
    """A dataset's statistics: networks see (observation − mean)/std."""

    mean: Array
    std: Array

    def __call__(self, observation: Array) -> Array:
        """Observations [..., O], standardised."""
        return (observation - self.mean) / self.std

    def raw(self, state: Array) -> Array:
        """The observation of a standardised state: policies take those."""
        return state * self.std + self.mean


class ClassifierWeights(StateWeights):
    """f(exp c(s)) for estimators whose read-out is a classifier; their states hold ``readout`` (the
    classifier averaged over its recent steps), ``standard``, ``mass`` (the share of probability that has not ended in a
    terminal) and ``sick``."""

    f: eqx.AbstractVar[Transform]
    fallback: eqx.AbstractVar[bool]

    @property
    def learns(self) -> bool:
        """Always."""
        return True

    def bounds(self) -> tuple[Array, Array]:
        """Range of f."""
        return self.f.bounds()

    def ratio(self, state: Any, batch: Batch, policy: Policy) -> Array:
        """State ratio ω [B] at the batch's rows: mass·exp c(s)."""
        return state.mass * jnp.exp(log_ratio(state.readout, state.standard(batch.observation)))

    def weights(self, state: Any, batch: Batch, policy: Policy, key: Array) -> tuple[Array, Metrics]:
        """f(ω), or 1 while the estimator is sick."""
        ratio = self.ratio(state, batch, policy)
        weights, clamped = self.f(ratio)
        sick = state.sick & jnp.asarray(self.fallback, bool)
        weights = jnp.where(sick | ~jnp.all(jnp.isfinite(weights)), 1.0, weights)
        return weights, {"ratio/clamped": clamped, "ratio/state_ratio_mean": jnp.mean(ratio)}


def check_settings(owner: Any, rates: Sequence[str], shares: Sequence[str], counts: Sequence[str]) -> None:
    """Refuse settings that no such estimator can have, by name."""
    name, infinity = type(owner).__name__, float("inf")
    check_ranges(name, {each: getattr(owner, each) for each in (*rates, "width")}, 0.0, infinity)
    check_ranges(name, {each: getattr(owner, each) for each in shares}, 0.0, 1.0)
    check_ranges(name, {each: getattr(owner, each) for each in counts}, 1.0, infinity)
    check_precision(owner.precision)
    if not owner.hidden:
        raise SappError(f"{name}: hidden sizes are empty; name at least one layer")


def check_continuous(owner: Any, spec: Spec) -> None:
    """Refuse discrete actions: there is no box of standard deviations around a choice."""
    if spec.discrete:
        raise SappError(f"{type(owner).__name__} takes continuous actions only; use DualDICE for discrete ones")
