"""Fisher-BRC: critics as a learned offset from the behaviour's log-density, with a gradient penalty on the offset."""

from __future__ import annotations

from collections.abc import Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.algorithms.actor_critic import (
    Trained,
    actor_loss,
    bootstrap_target,
    branch,
    squared_td,
    temperature_loss,
)
from sapp.algorithms.base import Algorithm, Metrics, check_settings
from sapp.core.pytrees import polyak
from sapp.core.spec import Batch, Spec
from sapp.networks import (
    BehaviourDensity,
    GaussianActor,
    Precision,
    StateActionNetwork,
    action_gradients,
    ensemble,
    make_critics,
    orthogonal,
)
from sapp.weights import StateWeights, Uniform

LAST_GAIN = 1e-2
"""Gain of the last layers: actor and behaviour begin wide and near zero, offsets near zero."""


class FisherBRCState(eqx.Module):
    """Actor, offsets O_i, their target, temperature; the behaviour density and the multiplier of its entropy."""

    actor: Trained[GaussianActor]
    offsets: Trained[StateActionNetwork]
    target_offsets: StateActionNetwork
    log_temperature: Trained[Array]
    behaviour: Trained[BehaviourDensity]
    log_multiplier: Trained[Array]


class FisherBRC(Algorithm):
    """With Q_i(s,a) = O_i(s,a) + log β(a|s), β a mixture of tanh-Gaussians per dimension:

        critics  Σ_i E_B[(Q_i(s,a) − y)²] + λ·E_B[w(s)·Σ_i ‖∇_a O_i(s,ã)‖²],   ã ~ π(s)
                 y = r + bonus + γ(1−terminal)·min_i Q̄_i(s',a'),   a' ~ π(s'), no entropy
        actor    E_B[τ·log π(ã|s) − min_i Q_i(s,ã)],   through log β too; τ learned towards entropy −|A|

    The first ``behaviour_steps`` updates fit β instead, by −E_B[log β(a|s) + ρ·H(β(·|s))] with ρ learned towards
    entropy −|A| and a learning rate that falls to a tenth after 80 % and to a hundredth after 90 %.
    ``FisherBRC(weights=DualDICE())`` is SA-Fisher-BRC.

    Defaults: the authors' code (Kostrikov et al. 2021) and its training flags (λ = 0.1), 1M + 1M steps.

    Attributes:
        penalty: λ, the weight of the offset's squared gradient.
        reward_bonus: added to every reward.
        behaviour_hidden: layer sizes of the cloned behaviour.
        components: mixture components per dimension of the cloned behaviour.

    Examples:
        >>> import sapp
        >>> sapp.FisherBRC(penalty=0.1, behaviour_steps=50_000).preparation
        50000
    """

    penalty: float = 0.1
    reward_bonus: float = 5.0
    discount: float = 0.99
    actor_lr: float = 3e-4
    critic_lr: float = 3e-4
    temperature_lr: float = 3e-4
    behaviour_lr: float = 1e-3
    tau: float = 0.005
    weights: StateWeights = Uniform()
    hidden: tuple[int, ...] = eqx.field(static=True, default=(256, 256, 256))
    behaviour_hidden: tuple[int, ...] = eqx.field(static=True, default=(256, 256))
    components: int = eqx.field(static=True, default=5)
    behaviour_steps: int = eqx.field(static=True, default=1_000_000)
    batch_size: int = eqx.field(static=True, default=256)
    precision: Precision = eqx.field(static=True, default="auto")

    def __check_init__(self) -> None:
        check_settings(self, "penalty", "behaviour_steps", counts=("components",))

    @property
    def preparation(self) -> int:
        """Updates that fit the behaviour."""
        return self.behaviour_steps

    def init(self, key: Array, spec: Spec) -> FisherBRCState:
        """Fresh networks, orthogonal as the authors'; the target starts as a copy of the offsets."""
        keys = jax.random.split(key, 5)
        sizes = spec.observation_size, spec.action_size
        actor = GaussianActor(keys[0], *sizes, self.hidden, self.precision)
        actor = eqx.tree_at(lambda a: a.trunk, actor, orthogonal()(keys[1], actor.trunk))
        heads = tuple(jax.tree.map(lambda leaf: LAST_GAIN * leaf, head) for head in (actor.mean, actor.log_std))
        actor = eqx.tree_at(lambda a: (a.mean, a.log_std), actor, heads)
        offsets = make_critics(keys[2], spec, 2, self.hidden, self.precision, orthogonal(last=LAST_GAIN))
        behaviour = BehaviourDensity(
            keys[3], *sizes, self.behaviour_hidden, self.components, self.precision, log_std_min=-20.0
        )
        behaviour = eqx.tree_at(lambda b: b.mlp, behaviour, orthogonal(last=LAST_GAIN)(keys[4], behaviour.mlp))
        zero = jnp.float32(0.0)
        return FisherBRCState(
            Trained.of(actor), Trained.of(offsets), offsets, Trained.of(zero), Trained.of(behaviour), Trained.of(zero)
        )

    def largest_target(self, reward: float, action_size: int, row: Mapping[str, float]) -> float | None:
        """None: a divergence from the behaviour has no bound."""
        return None

    def policy(self, state: FisherBRCState) -> GaussianActor:
        """The actor as it stands, which is what plays and is exported."""
        return state.actor.network

    def scheduled_update(
        self, state: FisherBRCState, batch: Batch, weights: Array, key: Array, step: Array
    ) -> tuple[FisherBRCState, Metrics]:
        """One step of cloning, or one of the algorithm proper."""
        return branch(
            jnp.asarray(step) < self.behaviour_steps,
            lambda: self.clone(state, batch, key, step),
            lambda: self.learn(state, batch, weights, key),
        )

    def clone(self, state: FisherBRCState, batch: Batch, key: Array, step: Array) -> tuple[FisherBRCState, Metrics]:
        """The behaviour density and the multiplier of its entropy, once each."""
        first, second = 8 * self.behaviour_steps // 10, 9 * self.behaviour_steps // 10
        rate = self.behaviour_lr * jnp.where(step < first, 1.0, jnp.where(step < second, 0.1, 0.01))
        multiplier = jnp.exp(state.log_multiplier.network)
        behaviour, loss, metrics = state.behaviour.descend(behaviour_loss, rate, batch, multiplier, key)
        log_multiplier, _, _ = state.log_multiplier.descend(
            lambda log_rho: (temperature_loss(log_rho, -metrics["behaviour/entropy"], target_entropy(batch)), {}), rate
        )
        new = eqx.tree_at(lambda s: (s.behaviour, s.log_multiplier), state, (behaviour, log_multiplier))
        return new, metrics | {"loss": loss, "behaviour/multiplier": multiplier}

    def learn(self, state: FisherBRCState, batch: Batch, weights: Array, key: Array) -> tuple[FisherBRCState, Metrics]:
        """Offsets, their target, actor and temperature, once each."""
        next_key, here_key, actor_key = jax.random.split(key, 3)
        actor, behaviour = state.actor.network, state.behaviour.network
        next_action, _ = actor(batch.next_observation).sample(next_key)
        next_value = jnp.min(ensemble(state.target_offsets, batch.next_observation, next_action), axis=0)
        next_value = next_value + behaviour.log_prob(batch.next_observation, next_action)
        target = self.reward_bonus + bootstrap_target(batch, next_value, self.discount)
        action, _ = jax.lax.stop_gradient(actor(batch.observation).sample(here_key))
        offsets, critic_loss, metrics = state.offsets.descend(
            self.critic_loss, self.critic_lr, behaviour, batch, target, action, jax.lax.stop_gradient(weights)
        )
        temperature = jnp.exp(state.log_temperature.network)
        new_actor, policy_loss, log_prob = state.actor.descend(
            actor_loss, self.actor_lr, offsets.network, temperature, batch, actor_key, behaviour.log_prob
        )
        log_temperature, _, _ = state.log_temperature.descend(
            lambda log_tau: (temperature_loss(log_tau, log_prob, target_entropy(batch)), {}), self.temperature_lr
        )
        targets = polyak(state.target_offsets, offsets.network, self.tau)
        new = FisherBRCState(new_actor, offsets, targets, log_temperature, state.behaviour, state.log_multiplier)
        return new, metrics | {
            "loss": critic_loss + policy_loss,
            "actor/loss": policy_loss,
            "actor/entropy": -log_prob,
            "actor/temperature": temperature,
        }

    def critic_loss(
        self, offsets: StateActionNetwork, behaviour: BehaviourDensity, batch: Batch, target: Array, action: Array,
        weights: Array,
    ) -> tuple[Array, Metrics]:  # fmt: skip
        """Σ_i E[(O_i(s,a) + log β(a|s) − y)²] + λ·E[w(s)·Σ_i ‖∇_a O_i(s,ã)‖²]."""
        value = ensemble(offsets, batch.observation, batch.action)
        td, metrics = squared_td(value + behaviour.log_prob(batch.observation, batch.action), target)
        gradients = action_gradients(offsets, batch.observation, action)
        penalty = jnp.sum(jnp.square(gradients), axis=(0, -1))
        weighted = jnp.mean(weights * penalty)
        return td + self.penalty * weighted, metrics | {
            "critic/penalty": jnp.mean(penalty),
            "critic/weighted_penalty": weighted,
        }


def target_entropy(batch: Batch) -> float:
    """−|A|."""
    return -float(batch.action.shape[-1])


def behaviour_loss(behaviour: BehaviourDensity, batch: Batch, multiplier: Array, key: Array) -> tuple[Array, Metrics]:
    """−E[log β(a|s) + ρ·H(β(·|s))]."""
    likelihood = jnp.mean(behaviour.log_prob(batch.observation, batch.action))
    entropy = jnp.mean(behaviour.entropy(batch.observation, key))
    return -likelihood - multiplier * entropy, {"behaviour/log_prob": likelihood, "behaviour/entropy": entropy}
