"""State ratios by classification: a network that tells states of the policy from states of the data.

Where every kind counts the same, the difference of two kinds' logits is the log of the ratio of their distributions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array
from typing_extensions import override

from sapp.core.errors import SappError, check_ranges
from sapp.core.precision import Precision, check_precision
from sapp.core.pytrees import polyak, select, usable
from sapp.core.spec import Batch, Spec
from sapp.networks import MLP, Policy
from sapp.weights.base import RatioWeights

LOG_RATIO_LIMIT = 15.0
"""Log-ratios are bounded so that their exponentials stay finite."""
T = TypeVar("T")
ADAM = optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-8)


def make_classifier(key: Array, size: int, hidden: Sequence[int], kinds: int, precision: Precision) -> MLP:
    """A logit per kind; it starts where it gives all kinds the same probability."""
    return MLP(key, size, hidden, kinds, precision, scale=1e-2, bias=0.0)


def contrast(logits: Array) -> Array:
    """l₀ − l₁ (+ l₂ − l₃) of logits [..., K]: the log of p₀/p₁·(p₂/p₃), p being the distributions of the kinds."""
    return jnp.sum(logits[..., ::2] - logits[..., 1::2], axis=-1)


def log_ratio(classifier: MLP, state: Array) -> Array:
    """c(s) [...] at standardised states [..., S]: the contrast of the classifier's logits, bounded."""
    return jnp.clip(contrast(classifier(state)), -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)


def classifier_loss(classifier: MLP, states: Array, shares: Array) -> tuple[Array, Array]:
    """−Σᵢ Σₖ shareᵢₖ·log softmax(l(sᵢ))ₖ, and the contrasts [n]. Shares [n, K]: each kind's sum to 1.

    Its minimiser has lₖ − lⱼ = log pₖ/pⱼ. With two kinds it is logistic regression. The bound ±``LOG_RATIO_LIMIT`` is
    not applied here: where it binds there would be no gradient to come back.
    """
    logits = classifier(states)
    return -jnp.sum(shares * jax.nn.log_softmax(logits)), contrast(logits)


def against(share: Array, data: int) -> Array:
    """Shares of two kinds: states of the first with the given shares [n], then ``data`` states of the second."""
    first, second = jnp.stack([share, jnp.zeros_like(share)], -1), jnp.asarray([0.0, 1.0 / data])
    return jnp.concatenate([first, jnp.broadcast_to(second, (data, 2))])


def accuracy(ours: Array, share: Array, theirs: Array) -> Array:
    """How often the sign of c is right at states of the policy and of the data: ½ where it cannot distinguish them."""
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

    A step on a loss that is not finite is not taken, so that an unreliable estimator can recover.
    """
    directions, new = ADAM.update(usable(gradients), optimiser)
    stepped = tuple(
        jax.tree.map(lambda p, d, lr=lr: p - lr * d, parameter, direction)
        for parameter, direction, lr in zip(parameters, directions, rates, strict=True)
    )
    finite = jnp.isfinite(loss)
    return select(finite, stepped, parameters), select(finite, new, optimiser), finite


def averaged(mean: T, network: T, rate: Array | float, steps: Array) -> T:
    """The running mean of a network's parameters over about its last 1/``rate`` steps, or over the last eighth of
    the ``steps`` before this one while those are fewer.

    A ratio that is nearly flat is smaller than the noise of single steps; their mean has little of it.
    """
    return polyak(mean, network, jnp.maximum(rate, 8.0 / (steps + 8.0)))


def running(health: T, seen: T, rate: Array | float, finite: Array) -> T:
    """Running means of an estimator's health; what a step that was not taken has seen does not count."""
    return jax.tree.map(lambda old, new: jnp.where(finite, old + rate * (new - old), old), health, seen)


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


class ClassifierWeights(RatioWeights):
    """f(exp c(s)) for estimators whose read-out is a classifier; their states hold ``readout`` (the
    classifier averaged over its recent steps), ``standard``, ``mass`` (the share of probability that has not ended in a
    terminal) and ``unreliable``.

    Attributes:
        behaviour_lr: learning rate of β̂, the cloned behaviour.
        classifier_lr: learning rate of the classifier.
        average: rate of the classifier's running mean, which the ratio is read from.
        width: standard deviations of β̂ that the policy's actions are kept within.
        max_error: largest error, relative to a model or critic that knows nothing, that is healthy.
        max_accuracy: largest accuracy of the classifier that is healthy: above it there is no overlap.
        max_clipped: largest share of clipped action dimensions that is healthy; 1: not asked.
        health_rate: share of a new batch in the running means of health.
        precision: of matrix products: auto, float32, tf32 or mixed.
    """

    @override
    def ratio(self, state: Any, batch: Batch, policy: Policy) -> Array:
        """State ratio ω [B] at the batch's rows: mass·exp c(s)."""
        return state.mass * jnp.exp(log_ratio(state.readout, state.standard(batch.observation)))

    @override
    def unreliable(self, state: Any) -> Array:
        return state.unreliable


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
    """Refuse discrete actions: there is no box of standard deviations around a discrete action."""
    if spec.discrete:
        raise SappError(f"{type(owner).__name__} takes continuous actions only; use DualDICE for discrete ones")
