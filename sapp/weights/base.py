"""The plug-in's interface: how pessimism is spread over states."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from sapp.core.spec import Batch, Spec
from sapp.networks import Policy

Metrics = dict[str, Array]


class StateWeights(eqx.Module):
    """Weights w(s) over the states of a batch; an algorithm multiplies its per-state penalty with them.

    Three verbs, like an algorithm: own state (``init``), own learning (``update``), and ``weights``. No weighting knows
    which algorithm it serves.

    A field of one of these names means the same in every subclass.

    Attributes:
        hidden: layer sizes of the networks.
        fallback: weights of 1 while the estimator is sick.
    """

    @property
    def learns(self) -> bool:
        """Whether ``update`` does anything: a run with such weights goes through ratio pre-training."""
        return False

    @property
    def judged(self) -> bool:
        """Whether the weights depend on what is learned, so that an estimator's ill health is worth a word."""
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

    def weights(self, state: Any, batch: Batch, policy: Policy, key: Array) -> tuple[Array, Metrics]:
        """Weights [B] of the batch's states, without gradient, and what to log."""
        raise TypeError(f"{type(self).__name__} must define weights()")


class Uniform(StateWeights):
    """w(s) = 1: the algorithm as published."""

    def weights(self, state: Any, batch: Batch, policy: Policy, key: Array) -> tuple[Array, Metrics]:
        """Ones."""
        return jnp.ones_like(batch.reward), {}
