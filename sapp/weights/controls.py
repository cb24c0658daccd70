"""Controls: weights that share everything with the real ones except what they know of the states.

A claim that state-aware pessimism helps is a claim against these (their mean weight is the same), not against CQL.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from sapp.core.errors import SappError, check_ranges
from sapp.core.pytrees import select
from sapp.core.spec import Batch, Spec
from sapp.networks import Policy
from sapp.weights.base import Metrics, StateWeights

KINDS = ("real", "shuffled", "matched", "random", "uniform", "frozen")
"""What a control does with the real weights: keep them, permute them over the batch, replace each by their batch mean,
draw uniformly from their range, ignore them (CQL), or stop their estimator where it is (see ``Control``)."""
FROZEN = KINDS.index("frozen")


class ConstantWeights(StateWeights):
    """w(s) = value: the base algorithm at weight α·value."""

    value: float = 1.0

    def bounds(self) -> tuple[Array, Array]:
        """The value, twice."""
        return jnp.asarray(self.value, jnp.float32), jnp.asarray(self.value, jnp.float32)

    def weights(self, state: Any, batch: Batch, policy: Policy, key: Array) -> tuple[Array, Metrics]:
        """The value for every state."""
        return jnp.full_like(batch.reward, self.value), {}


class RandomWeights(StateWeights):
    """w(s) ~ U(low, high), drawn anew each step: the paper's s-SA-CQL.

    Attributes:
        low: least weight.
        high: largest weight.
    """

    low: float = 0.0
    high: float = 1.0

    def bounds(self) -> tuple[Array, Array]:
        """[low, high]."""
        return jnp.asarray(self.low, jnp.float32), jnp.asarray(self.high, jnp.float32)

    def weights(self, state: Any, batch: Batch, policy: Policy, key: Array) -> tuple[Array, Metrics]:
        """Uniform draws."""
        low, high = self.bounds()
        return low + (high - low) * jax.random.uniform(key, batch.reward.shape), {}


class Control(StateWeights):
    """The weights of ``of``, or one of its controls, chosen by ``kind`` (an index into ``KINDS``).

    The kind is a number, not structure: real weights and all their controls train side by side in one compiled
    population, with the same estimator, the same batches and the same health rule.

    ``frozen`` uses the real weights of an estimator that does not learn in this run: of the policy as it was where the
    run was forked (``train(start_from=…)``), after the ratio phase, say. In a run that starts from nothing take
    ``FrozenWeights``.

    Attributes:
        of: the weights that are controlled.
        kind: 0 real, 1 shuffled, 2 matched, 3 random, 4 uniform, 5 frozen.
    """

    of: StateWeights
    kind: int = 0

    def __check_init__(self) -> None:
        if isinstance(self.kind, int) and not 0 <= self.kind < len(KINDS):
            raise SappError(f"control kind {self.kind} is unknown: use 0..{len(KINDS) - 1} for {', '.join(KINDS)}")

    @property
    def learns(self) -> bool:
        """As the controlled weights: a control is trained through the same phases."""
        return self.of.learns

    @property
    def judged(self) -> bool:
        """As the controlled weights, but for two kinds that only carry their estimator along."""
        return self.of.judged and KINDS[self.kind] not in ("random", "uniform")

    def bounds(self) -> tuple[Array, Array]:
        """As the controlled weights."""
        return self.of.bounds()

    def init(self, key: Array, spec: Spec) -> Any:
        """State of the controlled weights."""
        return self.of.init(key, spec)

    def update(self, state: Any, batch: Batch, policy: Policy, discount: Array, key: Array) -> tuple[Any, Metrics]:
        """Learning step of the controlled weights; its result is dropped where they are frozen."""
        new, metrics = self.of.update(state, batch, policy, discount, key)
        return select(jnp.asarray(self.kind, jnp.int32) == FROZEN, state, new), metrics

    def weights(self, state: Any, batch: Batch, policy: Policy, key: Array) -> tuple[Array, Metrics]:
        """The chosen control of the real weights."""
        real_key, own_key = jax.random.split(key)
        real, metrics = self.of.weights(state, batch, policy, real_key)
        low, high = self.bounds()
        choices = jnp.stack(
            [
                real,
                jax.random.permutation(own_key, real),
                jnp.full_like(real, jnp.mean(real)),
                low + (high - low) * jax.random.uniform(own_key, real.shape),
                jnp.ones_like(real),
                real,
            ]
        )
        return choices[jnp.asarray(self.kind, jnp.int32)], metrics


class FrozenWeights(StateWeights):
    """The weights of ``of`` as its estimator was after ``updates`` learning steps: the paper's ratio phase by default.

    What following the policy adds is what the real weights have over these.
    """

    of: StateWeights
    updates: int = 100_000

    def __check_init__(self) -> None:
        check_ranges("FrozenWeights", {"updates": self.updates}, 0, float("inf"))

    @property
    def learns(self) -> bool:
        """As the weights that are frozen."""
        return self.of.learns

    @property
    def judged(self) -> bool:
        """As the weights that are frozen."""
        return self.of.judged

    def bounds(self) -> tuple[Array, Array]:
        """As the weights that are frozen."""
        return self.of.bounds()

    def init(self, key: Array, spec: Spec) -> Any:
        """State of the weights, and the number of updates it has had."""
        return self.of.init(key, spec), jnp.int32(0)

    def update(self, state: Any, batch: Batch, policy: Policy, discount: Array, key: Array) -> tuple[Any, Metrics]:
        """A learning step, the first ``updates`` times."""
        inner, done = state
        new, metrics = self.of.update(inner, batch, policy, discount, key)
        return (select(done < self.updates, new, inner), done + 1), metrics

    def weights(self, state: Any, batch: Batch, policy: Policy, key: Array) -> tuple[Array, Metrics]:
        """The weights by the estimator as it is."""
        return self.of.weights(state[0], batch, policy, key)


class RescaledWeights(StateWeights):
    """The weights of ``of``, multiplied so that their mean over the batch is ``mean``.

    Around the real weights and around each of their controls it makes all of them as pessimistic on average, at every
    step: what is left of a difference is the states'. With a mean of 1 the matched control is the base algorithm.

    Attributes:
        of: the weights that are rescaled.
        mean: of the weights over a batch.
    """

    of: StateWeights
    mean: float = 1.0

    def __check_init__(self) -> None:
        check_ranges("RescaledWeights", {"mean": self.mean}, 0.0, float("inf"))

    @property
    def learns(self) -> bool:
        """As the weights that are rescaled."""
        return self.of.learns

    @property
    def judged(self) -> bool:
        """As the weights that are rescaled."""
        return self.of.judged

    def bounds(self) -> tuple[Array, Array]:
        """The range of the weights that are rescaled, moved so that its middle is the mean."""
        low, high = self.of.bounds()
        scale = 2.0 * jnp.asarray(self.mean, jnp.float32) / (low + high)
        return scale * low, scale * high

    def init(self, key: Array, spec: Spec) -> Any:
        """State of the weights."""
        return self.of.init(key, spec)

    def update(self, state: Any, batch: Batch, policy: Policy, discount: Array, key: Array) -> tuple[Any, Metrics]:
        """Learning step of the weights."""
        return self.of.update(state, batch, policy, discount, key)

    def weights(self, state: Any, batch: Batch, policy: Policy, key: Array) -> tuple[Array, Metrics]:
        """The weights times ``mean`` over their own; all equal to ``mean`` where they are all zero."""
        found, metrics = self.of.weights(state, batch, policy, key)
        own = jnp.mean(found)
        scaled = jnp.where(own > 0.0, found / jnp.where(own > 0.0, own, 1.0), 1.0) * self.mean
        return scaled, metrics | {"weights/unscaled_mean": own}


def control(of: StateWeights, kind: str) -> Control:
    """The named control (see ``KINDS``) of the given weights."""
    if kind not in KINDS:
        raise SappError(f"control {kind!r} is unknown: use one of {', '.join(KINDS)}")
    return Control(of, KINDS.index(kind))


def ShuffledWeights(of: StateWeights) -> Control:
    """The real weights permuted over the batch: same histogram, no knowledge of the state."""
    return control(of, "shuffled")


def MatchedWeights(of: StateWeights) -> Control:
    """Every weight is the batch mean of the real ones: the base algorithm at the matched mean weight."""
    return control(of, "matched")
