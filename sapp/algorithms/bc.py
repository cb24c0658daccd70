"""Behaviour cloning by least squares: the floor that every other algorithm must pass."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from sapp.algorithms.actor_critic import Trained
from sapp.algorithms.base import Algorithm, Metrics, check_no_weights, check_settings
from sapp.core.spec import Batch, Spec
from sapp.networks import DeterministicActor, NoisyPolicy, Normalised, Normaliser, Precision
from sapp.weights import StateWeights, Uniform


class BCState(eqx.Module):
    """The actor and the normaliser of its observations."""

    actor: Trained[DeterministicActor]
    normaliser: Normaliser


class BC(Algorithm):
    """E_B[mean_d (μ_d(s) − a_d)²]: TD3+BC without its Q.

    Defaults: TD3+BC's actor and normalisation, as in CORL's BC.

    Attributes:
        noise: standard deviation of the policy's distribution of actions, which DualDICE sees.

    Examples:
        >>> import sapp
        >>> from sapp.envs.point import behaviour_dataset
        >>> data = behaviour_dataset(episodes=6)
        >>> run = sapp.train(sapp.BC(hidden=(8,)), data, steps=4, eval_every=0, progress=False)
        >>> run.predict(data.observation[0]).shape
        (2,)
    """

    actor_lr: float = 3e-4
    discount: float = 0.99
    noise: float = 0.2
    weights: StateWeights = Uniform()
    hidden: tuple[int, ...] = eqx.field(static=True, default=(256, 256))
    batch_size: int = eqx.field(static=True, default=256)
    normalise: bool = eqx.field(static=True, default=True)
    precision: Precision = eqx.field(static=True, default="auto")

    def __check_init__(self) -> None:
        check_settings(self, "noise")
        check_no_weights(self, "it has no pessimism to spread over states")

    def init(self, key: Array, spec: Spec) -> BCState:
        """A fresh actor and its optimiser; there is no critic."""
        actor = DeterministicActor(key, spec.observation_size, spec.action_size, self.hidden, self.precision)
        return BCState(Trained.of(actor), Normaliser.of(spec, self.normalise))

    def policy(self, state: BCState) -> Normalised:
        """The actor; its distribution has ``noise`` around the action."""
        noise = jnp.asarray(self.noise, jnp.float32)
        return Normalised(state.normaliser, NoisyPolicy(state.actor.network, noise, jnp.float32(jnp.inf)))

    def update(self, state: BCState, batch: Batch, weights: Array, key: Array) -> tuple[BCState, Metrics]:
        """One step of least squares."""
        batch = state.normaliser.batch(batch)
        actor, loss, _ = state.actor.descend(clone_loss, self.actor_lr, batch)
        return BCState(actor, state.normaliser), {"loss": loss, "actor/loss": loss}


def clone_loss(actor: DeterministicActor, batch: Batch) -> tuple[Array, Metrics]:
    """E[mean_d (μ_d(s) − a_d)²]."""
    return jnp.mean(jnp.square(actor(batch.observation) - batch.action)), {}
