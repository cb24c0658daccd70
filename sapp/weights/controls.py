"""Controls: weights that share everything with the real ones except what they know of the states.

A claim that state-aware pessimism helps is a claim against these (their mean weight is the same), not against CQL.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from typing_extensions import override

from sapp.core.errors import SappError, check_ranges
from sapp.core.pytrees import select
from sapp.core.spec import Batch, Spec
from sapp.networks import Policy
from sapp.weights.base import Metrics, StateWeights, WrappedWeights
from sapp.weights.transforms import LogMinMax, Transform


class ControlKind(IntEnum):
    """What a control does with the real weights.

    Examples:
        >>> import sapp
        >>> [kind.label for kind in sapp.ControlKind]
        ['real', 'shuffled', 'matched', 'random', 'uniform', 'frozen']
    """

    REAL = 0
    """Keep the weights as they are."""
    SHUFFLED = 1
    """Permute them over the batch: same histogram, no knowledge of the state."""
    MATCHED = 2
    """Replace each by their batch mean: the base algorithm at the matched mean weight."""
    RANDOM = 3
    """Draw uniformly from their range."""
    UNIFORM = 4
    """Ignore them: weights of 1, the base algorithm."""
    FROZEN = 5
    """Keep them, by an estimator that stops learning (see ``Control``)."""

    @property
    def label(self) -> str:
        """The kind as commands and reports write it, such as "shuffled"."""
        return self.name.lower()


class ConstantWeights(StateWeights):
    """w(s) = value: the base algorithm at weight α·value.

    Examples:
        >>> import sapp
        >>> sapp.CQL(alpha=5.0, weights=sapp.ConstantWeights(0.5)).weights.value  # CQL with alpha 2.5
        0.5
    """

    value: float = 1.0
    """The weight of every state."""

    def __check_init__(self) -> None:
        check_ranges("ConstantWeights", {"value": self.value}, 0.0, float("inf"))

    @override
    def bounds(self) -> tuple[Array, Array]:
        return jnp.asarray(self.value, jnp.float32), jnp.asarray(self.value, jnp.float32)

    @override
    def weights(self, state: Any, batch: Batch, policy: Policy, key: Array) -> tuple[Array, Metrics]:
        return jnp.full_like(batch.reward, self.value), {}


class RandomWeights(StateWeights):
    """w(s) drawn uniformly from the range of f at each step: the control for weights f(ω(s)) with the same f.

    The paper's s-SA-CQL draws from (b0, b1) literally: ``RandomWeights(LogMinMax(b0, b1, span="upper"))``.

    Attributes:
        f: the transform from whose range weights are drawn; no ratio is estimated.

    Examples:
        >>> import sapp
        >>> [float(bound) for bound in sapp.RandomWeights(sapp.LogMinMax(b0=0.5, b1=2.0)).bounds()]
        [0.5, 2.5]
    """

    f: Transform = LogMinMax()

    def __check_init__(self) -> None:
        _check_bounded(self.f)

    @override
    def bounds(self) -> tuple[Array, Array]:
        return self.f.bounds()

    @override
    def weights(self, state: Any, batch: Batch, policy: Policy, key: Array) -> tuple[Array, Metrics]:
        low, high = self.bounds()
        return low + (high - low) * jax.random.uniform(key, batch.reward.shape), {}


class Control(WrappedWeights):
    """The weights of ``of``, or one of its controls, chosen by ``kind`` (a ``ControlKind``).

    The kind is a number, not structure: real weights and all their controls train together in one compiled
    population, with the same estimator, the same batches and the same health rule.

    ``frozen`` uses the real weights of an estimator that does not learn in this run: for the policy as it was where the
    run was forked (``train(start_from=…)``), for example after the ratio phase. In a run that starts from scratch, use
    ``FrozenWeights``.

    Attributes:
        of: the weights that are controlled.
        kind: 0 real, 1 shuffled, 2 matched, 3 random, 4 uniform, 5 frozen.

    Examples:
        >>> import sapp
        >>> kinds = [sapp.Control(sapp.DualDICE(), kind) for kind in sapp.ControlKind]
        >>> [weights.reports_health for weights in kinds]
        [True, True, True, False, False, True]
    """

    of: StateWeights
    kind: int = 0

    def __check_init__(self) -> None:
        if isinstance(self.kind, int) and not 0 <= self.kind < len(ControlKind):
            labels = ", ".join(f"{kind.value} {kind.label}" for kind in ControlKind)
            raise SappError(f"control kind {self.kind} is unknown: use one of {labels}")

    @property
    @override
    def reports_health(self) -> bool:
        """As the controlled weights, but for two kinds that only carry their estimator along."""
        return self.of.reports_health and self.kind not in (ControlKind.RANDOM, ControlKind.UNIFORM)

    @override
    def update(self, state: Any, batch: Batch, policy: Policy, discount: Array, key: Array) -> tuple[Any, Metrics]:
        """Learning step of the controlled weights; its result is dropped where they are frozen."""
        new, metrics = self.of.update(state, batch, policy, discount, key)
        return select(jnp.asarray(self.kind, jnp.int32) == ControlKind.FROZEN, state, new), metrics

    @override
    def weights(self, state: Any, batch: Batch, policy: Policy, key: Array) -> tuple[Array, Metrics]:
        real_key, own_key = jax.random.split(key)
        real, metrics = self.of.weights(state, batch, policy, real_key)
        low, high = self.bounds()
        by_kind = jnp.stack(
            [
                real,
                jax.random.permutation(own_key, real),
                jnp.full_like(real, jnp.mean(real)),
                low + (high - low) * jax.random.uniform(own_key, real.shape),
                jnp.ones_like(real),
                real,
            ]
        )
        return by_kind[jnp.asarray(self.kind, jnp.int32)], metrics


class FrozenWeights(WrappedWeights):
    """The weights of ``of`` as its estimator was after ``updates`` learning steps: the paper's ratio phase by default.

    The advantage of the real weights over these shows what following the policy adds.

    Attributes:
        of: the weights that are frozen.
        updates: learning steps of the estimator before it stops.

    Examples:
        >>> import sapp
        >>> sapp.FrozenWeights(sapp.OccupancyModel(), updates=50_000).updates
        50000
    """

    of: StateWeights
    updates: int = 100_000

    def __check_init__(self) -> None:
        check_ranges("FrozenWeights", {"updates": self.updates}, 0, float("inf"))

    @override
    def init(self, key: Array, spec: Spec) -> Any:
        """State of the weights, and the number of updates it has had."""
        return self.of.init(key, spec), jnp.int32(0)

    @override
    def update(self, state: Any, batch: Batch, policy: Policy, discount: Array, key: Array) -> tuple[Any, Metrics]:
        """A learning step, the first ``updates`` times."""
        inner, done = state
        new, metrics = self.of.update(inner, batch, policy, discount, key)
        return (select(done < self.updates, new, inner), done + 1), metrics

    @override
    def ratio(self, state: Any, batch: Batch, policy: Policy) -> Array:
        return self.of.ratio(state[0], batch, policy)

    @override
    def weights(self, state: Any, batch: Batch, policy: Policy, key: Array) -> tuple[Array, Metrics]:
        return self.of.weights(state[0], batch, policy, key)


class RescaledWeights(WrappedWeights):
    """The weights of ``of``, multiplied so that their mean over the batch is ``mean``.

    Wrapped around the real weights and each control, it makes all of them equally pessimistic on average at every
    step: what remains of a difference is due to the states. With a mean of 1 the matched control is the base algorithm.

    Attributes:
        of: the weights that are rescaled.
        mean: of the weights over a batch.

    Examples:
        >>> import sapp
        >>> of = sapp.DualDICE(f=sapp.LogMinMax(b0=0.0, b1=1.0))
        >>> [float(bound) for bound in sapp.RescaledWeights(of, mean=1.0).bounds()]
        [0.0, 2.0]
    """

    of: StateWeights
    mean: float = 1.0

    def __check_init__(self) -> None:
        check_ranges("RescaledWeights", {"mean": self.mean}, 0.0, float("inf"))

    @override
    def bounds(self) -> tuple[Array, Array]:
        """The range of the weights that are rescaled, moved so that its middle is the mean."""
        low, high = self.of.bounds()
        scale = 2.0 * jnp.asarray(self.mean, jnp.float32) / (low + high)
        return scale * low, scale * high

    @override
    def weights(self, state: Any, batch: Batch, policy: Policy, key: Array) -> tuple[Array, Metrics]:
        """The weights times ``mean`` over their own; all equal to ``mean`` where they are all zero."""
        found, metrics = self.of.weights(state, batch, policy, key)
        own = jnp.mean(found)
        scaled = jnp.where(own > 0.0, found / jnp.where(own > 0.0, own, 1.0), 1.0) * self.mean
        return scaled, metrics | {"weights/unscaled_mean": own}


def control(of: StateWeights, kind: str | ControlKind) -> Control:
    """A control of the given weights, by its kind or the kind's label.

    Examples:
        >>> import sapp
        >>> sapp.control(sapp.DualDICE(), "matched").kind
        2
    """
    labels = [each.label for each in ControlKind]
    if not isinstance(kind, ControlKind):
        if kind not in labels:
            raise SappError(f"control {kind!r} is unknown: use one of {', '.join(labels)}")
        kind = ControlKind(labels.index(kind))
    made = Control(of, kind.value)
    if kind is ControlKind.RANDOM:
        _check_bounded(of)
    return made


def _check_bounded(what: StateWeights | Transform) -> None:
    """Refuse a range without an end, which nothing can be drawn from uniformly."""
    high = what.bounds()[1]
    if not isinstance(high, jax.core.Tracer) and not jnp.isfinite(high):
        raise SappError(f"{type(what).__name__} has no largest weight to draw random weights up to; use LogMinMax")


def ShuffledWeights(of: StateWeights) -> Control:
    """The real weights permuted over the batch: same histogram, no knowledge of the state.

    Examples:
        >>> import sapp
        >>> sapp.ShuffledWeights(sapp.DualDICE()).kind == sapp.ControlKind.SHUFFLED
        True
    """
    return control(of, ControlKind.SHUFFLED)


def MatchedWeights(of: StateWeights) -> Control:
    """Every weight is the batch mean of the real ones: the base algorithm at the matched mean weight.

    Examples:
        >>> import sapp
        >>> sapp.MatchedWeights(sapp.DualDICE()).kind == sapp.ControlKind.MATCHED
        True
    """
    return control(of, ControlKind.MATCHED)
