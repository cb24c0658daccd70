"""Soft actor-critic, online: how the policies behind the benchmark's data are learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.algorithms.actor_critic import (
    SoftState,
    actor_loss,
    adam_step,
    bootstrap_target,
    entropy_share,
    soft_networks,
    td_loss,
    temperature_loss,
)
from sapp.algorithms.base import Algorithm, Metrics, check_settings
from sapp.core.errors import check_ranges
from sapp.core.pytrees import polyak
from sapp.core.spec import Batch, Spec
from sapp.networks import GaussianActor, Precision, StateActionNetwork, ensemble
from sapp.networks.padded import PaddedActor, Padding
from sapp.weights import StateWeights, Uniform


class SAC(Algorithm):
    """Soft actor-critic with two critics and a learned temperature τ.

        critics:      Σ_i E_B[(Q_i(s,a) − y)²],   y = r + γ(1−terminal)·(min_j Q̄_j(s', a') − τ log π(a'|s')),  a' ~ π
        actor:        E_B[τ log π(ã|s) − min_i Q_i(s, ã)],   ã ~ π reparameterised
        temperature:  −E_B[τ (log π(ã|s) + H̄)],   H̄ = −|A|

    Order within a step: temperature, critics, actor, target networks, all on one batch; the same order and the same
    random numbers as in CQL, so that ``CQL(alpha=0, backup="soft", action_samples=1)`` is SAC number for number.
    State weights have nothing to weigh here and are ignored.

    Defaults: the settings behind D4RL's behaviour policies (rlkit's SAC): two layers of 256, batches of 256, all
    learning rates 3e-4, γ = 0.99, targets moved by 0.005 per step.
    """

    discount: float = 0.99
    critic_lr: float = 3e-4
    actor_lr: float = 3e-4
    temperature_lr: float = 3e-4
    initial_temperature: float = 1.0
    tau: float = 0.005
    weights: StateWeights = Uniform()
    padding: Padding | None = None
    hidden: tuple[int, ...] = eqx.field(static=True, default=(256, 256))
    batch_size: int = eqx.field(static=True, default=256)
    precision: Precision = eqx.field(static=True, default="auto")

    def __check_init__(self) -> None:
        check_settings(self)
        positive = {"initial_temperature": self.initial_temperature}
        check_ranges("SAC", positive, 0.0, float("inf"), open_ends=True)

    def init(self, key: Array, spec: Spec) -> SoftState:
        """Fresh networks; the targets start as copies of the critics."""
        actor, critics = soft_networks(key, spec, self.hidden, self.precision)
        if self.padding is not None:
            actor, critics = _rescale(actor, critics, self.padding)
        return SoftState.fresh(actor, critics, self.initial_temperature)

    def largest_target(self, reward: float, action_size: int, row: Mapping[str, float]) -> float | None:
        """The reward and the entropy's share."""
        return reward + entropy_share(action_size, row)

    def policy(self, state: SoftState) -> GaussianActor:
        """The actor as it stands, which is what plays and is exported."""
        return state.actor

    def update(self, state: SoftState, batch: Batch, weights: Array, key: Array) -> tuple[SoftState, Metrics]:
        """Temperature, critics, actor and targets, once each."""
        del weights
        here_key, _, _, actor_key, backup_key = jax.random.split(key, 5)
        temperature_gradient = jax.grad(temperature_loss)(
            state.log_temperature, self._acting(state.actor)(batch.observation).sample(here_key)[1],
            self._target_entropy(batch),
        )  # fmt: skip
        log_temperature, temperature_optimiser = adam_step(
            state.log_temperature, temperature_gradient, state.temperature_optimiser, self.temperature_lr
        )
        temperature = jnp.exp(log_temperature)

        next_action, next_log_prob = self._acting(state.actor)(batch.next_observation).sample(backup_key)
        next_value = jnp.min(ensemble(state.targets, batch.next_observation, next_action), axis=0)
        target = bootstrap_target(batch, next_value - temperature * next_log_prob, self.discount)
        (loss, td), gradient = jax.value_and_grad(td_loss, has_aux=True)(state.critics, batch, target)
        critics, critic_optimiser = adam_step(state.critics, gradient, state.critic_optimiser, self.critic_lr)

        def policy_objective(actor: GaussianActor) -> tuple[Array, Array]:
            return actor_loss(self._acting(actor), critics, temperature, batch, actor_key)

        (policy_loss, log_prob), gradient = jax.value_and_grad(policy_objective, has_aux=True)(state.actor)
        actor, actor_optimiser = adam_step(state.actor, gradient, state.actor_optimiser, self.actor_lr)
        new = SoftState(
            actor, critics, polyak(state.targets, critics, self.tau), log_temperature,
            actor_optimiser, critic_optimiser, temperature_optimiser,
        )  # fmt: skip
        return new, {
            "loss": loss + policy_loss,
            "critic/td": td["critic/td"],
            "critic/value": td["critic/value"],
            "actor/entropy": -log_prob,
            "actor/temperature": temperature,
        }

    def _acting(self, actor: GaussianActor) -> Any:
        """The actor, with padded actions taken out."""
        return actor if self.padding is None else PaddedActor(actor, self.padding.action)

    def _target_entropy(self, batch: Batch) -> Any:
        """H̄ = −|A|, over real dimensions."""
        return -float(batch.action.shape[-1]) if self.padding is None else -jnp.sum(self.padding.action)


def _rescale(
    actor: GaussianActor, critics: StateActionNetwork, padding: Padding
) -> tuple[GaussianActor, StateActionNetwork]:
    """Initial first layers within ±1/√(real inputs), as networks of the task's own size would have them."""
    observation, action = padding.observation, padding.action
    widths = {
        "actor": (observation.shape[0], jnp.sum(observation)),
        "critics": (observation.shape[0] + action.shape[0], jnp.sum(observation) + jnp.sum(action)),
    }
    scale = {name: jnp.sqrt(padded / real) for name, (padded, real) in widths.items()}

    def first(layers: Any, factor: Array) -> Any:
        return (jax.tree.map(lambda leaf: leaf * factor, layers[0]), *layers[1:])

    return (
        eqx.tree_at(lambda net: net.trunk.layers, actor, first(actor.trunk.layers, scale["actor"])),
        eqx.tree_at(lambda net: net.mlp.layers, critics, first(critics.mlp.layers, scale["critics"])),
    )
