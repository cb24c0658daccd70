"""Implicit Q-learning: values by expectile regression on logged actions only, the policy by weighted cloning."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.algorithms.actor_critic import Trained, bootstrap_target, td_loss
from sapp.algorithms.base import Algorithm, Metrics, check_no_weights, check_settings
from sapp.core.errors import SappError, check_ranges
from sapp.core.pytrees import polyak
from sapp.core.spec import Batch, Spec
from sapp.networks import (
    MLP,
    MeanActor,
    Normalised,
    Normaliser,
    Precision,
    StateActionNetwork,
    ensemble,
    make_critics,
    orthogonal,
)
from sapp.weights import StateWeights, Uniform

ACTION_LIMIT = 1.0 - 1e-5
MAX_ADVANTAGE_WEIGHT = 100.0
RETURN_SCALE = 1000.0
"""``reward_scaling="returns"`` scales rewards so that the data's episode returns span this much."""


class IQLState(eqx.Module):
    """Actor, critics, their target, the value network, and what observations and rewards are scaled with."""

    actor: Trained[MeanActor]
    critics: Trained[StateActionNetwork]
    target_critics: StateActionNetwork
    value: Trained[MLP]
    normaliser: Normaliser
    reward_scale: Array


class IQL(Algorithm):
    """With q = min_i Q̄_i(s,a) of the target critics, in this order on one batch:

        value    E_B[|τ − 1(q − V(s) < 0)|·(q − V(s))²]                                    (τ: ``expectile``)
        actor    −E_B[min(exp(β·(q − V(s))), 100)·log π(a|s)]
        critics  Σ_i E_B[(Q_i(s,a) − y)²],   y = r + γ(1−terminal)·V(s')                   (the new V, no target)

    then the target critics. π = N(tanh μ(s), σ²) with one σ for all states; its learning rate falls to 0 along a cosine
    over ``decay_steps``. Rewards are scaled by 1000/(largest − smallest return of the data) and shifted.

    Defaults: the authors' code for locomotion (Kostrikov et al. 2021), one million steps.

    Attributes:
        expectile: τ of the value's loss: 0.5 is the mean, towards 1 the best action of the data.
        beta: β, how strongly the actor prefers good actions.
        value_lr: learning rate of V.
        decay_steps: updates over which the actor's learning rate falls to 0.
        reward_shift: added to rewards after they are scaled.
        reward_scaling: returns (1000 / their range in the data) or none.

    Examples:
        >>> import sapp
        >>> from sapp.envs.point import behaviour_dataset
        >>> data = behaviour_dataset(episodes=6)
        >>> run = sapp.train(sapp.IQL(hidden=(8,), batch_size=8), data, steps=4, eval_every=0, progress=False)
        >>> run.predict(data.observation[:3]).shape
        (3, 2)
    """

    expectile: float = 0.7
    beta: float = 3.0
    discount: float = 0.99
    actor_lr: float = 3e-4
    critic_lr: float = 3e-4
    value_lr: float = 3e-4
    tau: float = 0.005
    decay_steps: float = 1_000_000.0
    reward_shift: float = 0.0
    weights: StateWeights = Uniform()
    hidden: tuple[int, ...] = eqx.field(static=True, default=(256, 256))
    batch_size: int = eqx.field(static=True, default=256)
    normalise: bool = eqx.field(static=True, default=False)
    reward_scaling: Literal["returns", "none"] = eqx.field(static=True, default="returns")
    precision: Precision = eqx.field(static=True, default="auto")

    def __check_init__(self) -> None:
        check_settings(self, "beta", "decay_steps")
        check_ranges("IQL", {"expectile": self.expectile}, 0.0, 1.0, open_ends=True)
        check_no_weights(self, "it never leaves the logged actions, so it has no penalty to weight")
        if self.reward_scaling not in ("returns", "none"):
            raise SappError(f"reward_scaling {self.reward_scaling!r} is unknown: use returns or none")

    def init(self, key: Array, spec: Spec) -> IQLState:
        """Fresh networks, orthogonal as the authors'; the target starts as a copy of the critics."""
        actor_key, head_key, critic_key, value_key, first_key = jax.random.split(key, 5)
        actor = MeanActor(actor_key, spec.observation_size, spec.action_size, self.hidden, self.precision)
        actor = eqx.tree_at(lambda a: a.actor.mlp, actor, orthogonal()(head_key, actor.actor.mlp))
        critics = make_critics(critic_key, spec, 2, self.hidden, self.precision, orthogonal())
        value = orthogonal()(first_key, MLP(value_key, spec.observation_size, self.hidden, 1, self.precision))
        scaled = self.reward_scaling == "returns"
        span = jnp.asarray(spec.return_span, jnp.float32)
        scale = jnp.where(span > 0.0, RETURN_SCALE / jnp.maximum(span, 1e-6), 1.0) if scaled else jnp.float32(1.0)
        return IQLState(
            Trained.of(actor), Trained.of(critics), critics, Trained.of(value), Normaliser.of(spec, self.normalise),
            scale,
        )  # fmt: skip

    def largest_target(self, reward: float, action_size: int, row: Mapping[str, float]) -> float | None:
        """The reward as it is scaled and shifted."""
        return reward * row.get("critic/reward_scale", 1.0) + abs(float(self.reward_shift))

    def policy(self, state: IQLState) -> Normalised:
        """The Gaussian actor on raw observations."""
        return Normalised(state.normaliser, state.actor.network)

    def scheduled_update(
        self, state: IQLState, batch: Batch, weights: Array, key: Array, step: Array
    ) -> tuple[IQLState, Metrics]:
        """Value, actor, critics and target, once each."""
        batch = state.normaliser.batch(batch)
        batch = eqx.tree_at(
            lambda b: (b.action, b.reward),
            batch,
            (
                jnp.clip(batch.action, -ACTION_LIMIT, ACTION_LIMIT),
                batch.reward * state.reward_scale + self.reward_shift,
            ),
        )
        logged_value = jnp.min(ensemble(state.target_critics, batch.observation, batch.action), axis=0)
        value, value_loss, value_metrics = state.value.descend(
            expectile_loss, self.value_lr, batch, logged_value, self.expectile
        )
        advantage = logged_value - value.network(batch.observation)[:, 0]
        rate = self.actor_lr * cosine_decay(step, self.decay_steps)
        actor, actor_loss, actor_metrics = state.actor.descend(regression_loss, rate, batch, advantage, self.beta)
        target = bootstrap_target(batch, value.network(batch.next_observation)[:, 0], self.discount)
        critics, critic_loss, critic_metrics = state.critics.descend(td_loss, self.critic_lr, batch, target)
        targets = polyak(state.target_critics, critics.network, self.tau)
        new = IQLState(actor, critics, targets, value, state.normaliser, state.reward_scale)
        return new, value_metrics | actor_metrics | critic_metrics | {
            "loss": value_loss + actor_loss + critic_loss,
            "critic/reward_scale": jnp.asarray(state.reward_scale, jnp.float32),
            "value/loss": value_loss,
            "actor/loss": actor_loss,
        }


def cosine_decay(step: Array | int, length: Array | float) -> Array:
    """½(1 + cos(π·step/length)), 0 from ``length`` on."""
    return 0.5 * (1.0 + jnp.cos(math.pi * jnp.minimum(jnp.asarray(step, jnp.float32) / length, 1.0)))


def expectile_loss(network: MLP, batch: Batch, target: Array, expectile: Array | float) -> tuple[Array, Metrics]:
    """E[|τ − 1(u < 0)|·u²], u = target − V(s): its minimiser is the τ-expectile of the target."""
    value = network(batch.observation)[:, 0]
    difference = jax.lax.stop_gradient(target) - value
    loss = jnp.mean(jnp.abs(expectile - (difference < 0.0)) * jnp.square(difference))
    return loss, {"value/mean": jnp.mean(value)}


def regression_loss(actor: MeanActor, batch: Batch, advantage: Array, beta: Array | float) -> tuple[Array, Metrics]:
    """−E[min(exp(β·A), 100)·log π(a|s)]; the advantage carries no gradient."""
    advantage = jax.lax.stop_gradient(advantage)
    weight = jnp.minimum(jnp.exp(beta * advantage), MAX_ADVANTAGE_WEIGHT)
    log_prob = actor(batch.observation).log_prob(batch.action)
    return -jnp.mean(weight * log_prob), {
        "actor/advantage": jnp.mean(advantage),
        "actor/weight": jnp.mean(weight),
        "actor/log_prob": jnp.mean(log_prob),
    }
