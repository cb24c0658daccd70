"""Behaviour cloning of discrete actions by maximum likelihood."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from sapp.algorithms.actor_critic import Trained
from sapp.algorithms.base import Metrics, check_no_weights, check_settings
from sapp.algorithms.dqn import ScoreLearner
from sapp.core.spec import Batch, Spec
from sapp.networks.categorical import CategoricalActor
from sapp.networks.conv import DefaultScores
from sapp.weights import StateWeights, Uniform


class DiscreteBCState(eqx.Module):
    """The network and its optimiser."""

    actor: Trained[Any]

    @property
    def scores(self) -> Any:
        """The network, whose scores are log-probabilities up to a constant."""
        return self.actor.network


class DiscreteBC(ScoreLearner):
    """−E_B[log β(a|s)], β = softmax(network(s)). It plays the likeliest action.

    Defaults: the settings of ``DiscreteCQL``, so that they differ in nothing but the loss.

    Examples:
        >>> import numpy as np
        >>> import sapp
        >>> seen, action = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
        >>> data = sapp.Dataset.from_arrays(seen, action, np.ones(20), np.arange(20) == 19, num_actions=2)
        >>> run = sapp.train(sapp.DiscreteBC(batch_size=8), data, steps=4, eval_every=0, progress=False)
        >>> run.predict(seen[:5]).shape
        (5,)
    """

    discount: float = 0.99
    lr: float = 6.25e-5
    weights: StateWeights = Uniform()
    network: Any = DefaultScores()
    batch_size: int = eqx.field(static=True, default=64)

    def __check_init__(self) -> None:
        check_settings(self, "lr")
        check_no_weights(self, "it has no pessimism to spread over states")

    def init(self, key: Array, spec: Spec) -> DiscreteBCState:
        """A fresh network of logits and its optimiser."""
        self.check_problem(spec)
        return DiscreteBCState(Trained.of(self.network.build(key, spec)))

    def update(
        self, state: DiscreteBCState, batch: Batch, weights: Array, key: Array
    ) -> tuple[DiscreteBCState, Metrics]:
        """One step of maximum likelihood."""
        actor, loss, metrics = state.actor.descend(likelihood_loss, self.lr, batch)
        return DiscreteBCState(actor), {"loss": loss, **metrics}


def likelihood_loss(scores: Any, batch: Batch) -> tuple[Array, Metrics]:
    """−E_B[log β(a|s)]; also the share of logged actions that are the likeliest."""
    distribution = CategoricalActor(scores)(batch.observation)
    loss = -jnp.mean(distribution.log_prob(batch.action))
    agreement = jnp.mean(distribution.mode() == batch.action, dtype=jnp.float32)
    return loss, {"actor/nll": loss, "actor/agreement": agreement}
