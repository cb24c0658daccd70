"""The plug-in's interface: how pessimism is spread over states."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from typing_extensions import override

from sapp.core.errors import SappError
from sapp.core.spec import Batch, Spec
from sapp.networks import Policy
from sapp.weights.transforms import Transform

Metrics = dict[str, Array]


class StateWeights(eqx.Module):
    """Weights w(s) over the states of a batch; an algorithm multiplies its per-state penalty by them.

    Like algorithms they have ``init`` (their own state) and ``update`` (their own learning), and ``weights``. They do
    not know which algorithm they serve. If they are f of an estimated state ratio, derive from ``RatioWeights``.

    A field of one of these names means the same in every subclass.

    Attributes:
        hidden: layer sizes of the networks.
        f: from ratios to weights.
        fallback: weights of 1 while the ratio estimate is unreliable; the paper has no such rule.

    Examples:
        >>> import jax.numpy as jnp
        >>> import sapp
        >>> class NearOrigin(sapp.StateWeights):
        ...     def weights(self, state, batch, policy, key):
        ...         return jnp.exp(-jnp.sum(batch.observation**2, axis=-1)), {}
        >>> sapp.CQL(weights=NearOrigin()).weights.learns
        False
    """

    @property
    def learns(self) -> bool:
        """Whether ``update`` does anything: a run with such weights goes through ratio pre-training."""
        return False

    @property
    def reports_health(self) -> bool:
        """Whether the weights depend on an estimate, so that the run says when that becomes unreliable."""
        return self.learns

    def bounds(self) -> tuple[Array, Array]:
        """Smallest and largest weight this can give, the range of its random control."""
        return jnp.float32(1.0), jnp.float32(1.0)

    def init(self, key: Array, spec: Spec) -> Any:
        """Initial state of the estimator (nothing, unless it learns)."""
        return ()

    def update(self, state: Any, batch: Batch, policy: Policy, discount: Array, key: Array) -> tuple[Any, Metrics]:
        """One learning step towards the current policy's ratios."""
        return state, {}

    def ratio(self, state: Any, batch: Batch, policy: Policy) -> Array:
        """Estimated state ratios ω(s) = dᵖ(s)/dᴰ(s) [B] at the batch's rows; refused by weights without an estimate."""
        raise SappError(f"{type(self).__name__} estimates no state ratio: use weights such as DualDICE()")

    def weights(self, state: Any, batch: Batch, policy: Policy, key: Array) -> tuple[Array, Metrics]:
        """Weights [B] of the batch's states, without gradient, and what to log."""
        raise TypeError(f"{type(self).__name__} must define weights()")


class Uniform(StateWeights):
    """w(s) = 1: the algorithm as published.

    Examples:
        >>> import sapp
        >>> [float(bound) for bound in sapp.CQL(weights=sapp.Uniform()).weights.bounds()]
        [1.0, 1.0]
    """

    @override
    def weights(self, state: Any, batch: Batch, policy: Policy, key: Array) -> tuple[Array, Metrics]:
        return jnp.ones_like(batch.reward), {}


class RatioWeights(StateWeights):
    """w(s) = f(ω(s)), ω(s) = dᵖ(s)/dᴰ(s) by an estimator that says when it cannot be trusted.

    A subclass defines ``init``, ``update``, ``ratio`` and ``unreliable``; what an unreliable estimate means for the
    weights is decided here, for all estimators alike. ``update`` must log ``ratio/unreliable`` (1 where it is so).

    Examples:
        >>> import sapp
        >>> isinstance(sapp.DualDICE(), sapp.RatioWeights), sapp.DualDICE().learns
        (True, True)
    """

    f: eqx.AbstractVar[Transform]
    fallback: eqx.AbstractVar[bool]

    @property
    @override
    def learns(self) -> bool:
        return True

    @override
    def bounds(self) -> tuple[Array, Array]:
        return self.f.bounds()

    def unreliable(self, state: Any) -> Array:
        """Whether the estimate fails its health checks, a boolean scalar."""
        raise TypeError(f"{type(self).__name__} must define unreliable()")

    @override
    def weights(self, state: Any, batch: Batch, policy: Policy, key: Array) -> tuple[Array, Metrics]:
        """f(ω); 1 for all states of a batch where one is not finite, and with ``fallback`` while ω is unreliable."""
        ratio = self.ratio(state, batch, policy)
        weights, clamped = self.f(ratio)
        fallen = self.unreliable(state) & jnp.asarray(self.fallback, bool)
        weights = jnp.where(fallen | ~jnp.all(jnp.isfinite(weights)), 1.0, weights)
        return weights, {"ratio/clamped": clamped, "ratio/state_ratio_mean": jnp.mean(ratio)}


class WrappedWeights(StateWeights):
    """Weights made of other weights, which learn and report their health as those do."""

    of: eqx.AbstractVar[StateWeights]

    def __post_init__(self) -> None:
        """Refuse what are no weights; a control by name is written as one: ``CQL(weights="shuffled:dualdice")``."""
        if not isinstance(self.of, StateWeights):
            raise SappError(
                f"{type(self).__name__}: of is {self.of!r}; give state weights such as sapp.DualDICE(), or name the "
                "control as a whole, as in weights='shuffled:dualdice'"
            )

    @property
    @override
    def learns(self) -> bool:
        return self.of.learns

    @property
    @override
    def reports_health(self) -> bool:
        return self.of.reports_health

    @override
    def bounds(self) -> tuple[Array, Array]:
        return self.of.bounds()

    @override
    def init(self, key: Array, spec: Spec) -> Any:
        return self.of.init(key, spec)

    @override
    def update(self, state: Any, batch: Batch, policy: Policy, discount: Array, key: Array) -> tuple[Any, Metrics]:
        return self.of.update(state, batch, policy, discount, key)

    @override
    def ratio(self, state: Any, batch: Batch, policy: Policy) -> Array:
        return self.of.ratio(state, batch, policy)


def predicted_reward(ratio: Array, reward: Array) -> Metrics:
    """The reward per step that ratios [n] predict for the policy, plain Σwr/n and self-normalised Σwr/Σw, as metrics.

    Where the mean ratio is off (it should be 1), the second is what is left of the estimate; Figure 2 shows either.
    """
    plain = jnp.mean(ratio * reward)
    return {"ratio/reward": plain, "ratio/reward_normalised": plain / jnp.maximum(jnp.mean(ratio), 1e-12)}
