"""What every algorithm is: an immutable pytree of hyper-parameters with three verbs."""

from __future__ import annotations

from typing import Any

import equinox as eqx
from jax import Array

from sapp.networks import GaussianActor
from sapp.ratios import StateWeights
from sapp.spec import Batch, Spec

Metrics = dict[str, Array]


class Algorithm(eqx.Module):
    """Hyper-parameters and how to learn with them.

    Numbers are leaves, so members of one population may differ in them; fields marked ``static`` are structure and make
    another compiled program. An algorithm receives the weights of the batch's states and multiplies its per-state
    penalty with them; it does not know where they come from. A subclass has the fields ``discount``, ``batch_size``
    (static) and ``weights``.
    """

    discount: eqx.AbstractVar[float]
    batch_size: eqx.AbstractVar[int]
    weights: eqx.AbstractVar[StateWeights]

    def init(self, key: Array, spec: Spec) -> Any:
        """Initial parameters and optimiser states."""
        raise TypeError(f"{type(self).__name__} must define init()")

    def update(self, state: Any, batch: Batch, weights: Array, key: Array) -> tuple[Any, Metrics]:
        """One gradient step on a batch with state weights [B]; the metrics must contain ``loss``."""
        raise TypeError(f"{type(self).__name__} must define update()")

    def policy(self, state: Any) -> GaussianActor:
        """The current policy."""
        raise TypeError(f"{type(self).__name__} must define policy()")
