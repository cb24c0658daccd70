"""EDAC and SAC-N: soft actor-critic with many critics, whose minimum is pessimistic where they disagree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.algorithms.actor_critic import (
    Trained,
    actor_loss,
    bootstrap_target,
    entropy_share,
    squared_td,
    td_loss,
    temperature_loss,
)
from sapp.algorithms.base import Algorithm, Metrics, check_no_weights, check_settings
from sapp.core.pytrees import polyak
from sapp.core.spec import Batch, Spec
from sapp.data.benchmark_names import d4rl_parts
from sapp.networks import (
    GaussianActor,
    Precision,
    StateActionNetwork,
    ensemble,
    make_critics,
    small_actor,
    small_head,
    values_and_action_gradients,
)
from sapp.weights import StateWeights, Uniform

LOG_STD_MIN = -5.0
"""Least log standard deviation of the actor in the authors' code; SAC's is −20."""


class EDACState(eqx.Module):
    """Actor, critics (one batched network), their target, and the temperature."""

    actor: Trained[GaussianActor]
    critics: Trained[StateActionNetwork]
    target_critics: StateActionNetwork
    log_temperature: Trained[Array]


class EDAC(Algorithm):
    """SAC with N critics; in this order on one batch, temperature and

        actor    E_B[τ·log π(ã|s) − min_i Q_i(s,ã)]
        critics  Σ_i E_B[(Q_i(s,a) − y)²] + η/(N−1)·E_B[w(s)·Σ_{i≠j} cos(∇_a Q_i(s,a), ∇_a Q_j(s,a))]
                 y = r + γ(1−terminal)·(min_j Q̄_j(s',a') − τ·log π(a'|s')),   a' ~ π(s')

    The last term keeps the critics' gradients from aligning, so that fewer critics are needed. Without it
    (``diversify=False``) this is SAC-N.

    Defaults: the authors' code (An et al. 2021) for halfcheetah, three million steps; presets know N and η by dataset.

    Attributes:
        eta: η, the weight of the critics' alignment.
        critics: N, the number of critics.
        diversify: penalise aligned gradients of the critics; without it this is SAC-N.

    Examples:
        >>> import sapp
        >>> sapp.EDAC(eta=1.0, critics=10).critics
        10
        >>> sapp.preset("sac-n").diversify
        False
    """

    eta: float = 1.0
    discount: float = 0.99
    actor_lr: float = 3e-4
    critic_lr: float = 3e-4
    temperature_lr: float = 3e-4
    initial_temperature: float = 1.0
    tau: float = 0.005
    weights: StateWeights = Uniform()
    critics: int = eqx.field(static=True, default=10)
    diversify: bool = eqx.field(static=True, default=True)
    hidden: tuple[int, ...] = eqx.field(static=True, default=(256, 256, 256))
    batch_size: int = eqx.field(static=True, default=256)
    precision: Precision = eqx.field(static=True, default="auto")

    def __check_init__(self) -> None:
        check_settings(self, "eta", "initial_temperature", counts=("critics",))
        if not self.diversify:
            check_no_weights(self, "without diversification it has no penalty to weight")

    def init(self, key: Array, spec: Spec) -> EDACState:
        """Fresh networks; the target starts as a copy of the critics."""
        actor_key, critic_key, start_key = jax.random.split(key, 3)
        sizes = spec.observation_size, spec.action_size
        actor = small_actor(start_key, GaussianActor(actor_key, *sizes, self.hidden, self.precision, LOG_STD_MIN))
        critics = make_critics(critic_key, spec, self.critics, self.hidden, self.precision, small_head())
        log_temperature = jnp.log(jnp.asarray(self.initial_temperature, jnp.float32))
        return EDACState(Trained.of(actor), Trained.of(critics), critics, Trained.of(log_temperature))

    def largest_target(self, reward: float, action_size: int, row: Mapping[str, float]) -> float | None:
        """The reward and the entropy's share."""
        return reward + entropy_share(action_size, row)

    def policy(self, state: EDACState) -> GaussianActor:
        """The actor as it stands, which is what plays and is exported."""
        return state.actor.network

    def update(self, state: EDACState, batch: Batch, weights: Array, key: Array) -> tuple[EDACState, Metrics]:
        """Temperature, actor, critics and target, once each."""
        actor_key, backup_key = jax.random.split(key)
        _, log_prob = state.actor.network(batch.observation).sample(actor_key)
        log_temperature, _, _ = state.log_temperature.descend(
            lambda log_tau: (temperature_loss(log_tau, log_prob, -float(batch.action.shape[-1])), {}),
            self.temperature_lr,
        )
        temperature = jnp.exp(log_temperature.network)
        actor, policy_loss, mean_log_prob = state.actor.descend(
            actor_loss, self.actor_lr, state.critics.network, temperature, batch, actor_key
        )
        next_action, next_log_prob = actor.network(batch.next_observation).sample(backup_key)
        next_value = jnp.min(ensemble(state.target_critics, batch.next_observation, next_action), axis=0)
        target = bootstrap_target(batch, next_value - temperature * next_log_prob, self.discount)
        critics, critic_loss, metrics = state.critics.descend(
            self.critic_loss, self.critic_lr, batch, target, jax.lax.stop_gradient(weights)
        )
        targets = polyak(state.target_critics, critics.network, self.tau)
        return EDACState(actor, critics, targets, log_temperature), metrics | {
            "loss": critic_loss + policy_loss,
            "actor/loss": policy_loss,
            "actor/entropy": -mean_log_prob,
            "actor/temperature": temperature,
        }

    def critic_loss(self, critics: Any, batch: Batch, target: Array, weights: Array) -> tuple[Array, Metrics]:
        """TD errors of all critics and, unless this is SAC-N, η·E[w(s)·diversity(s)]."""
        if not self.diversify:
            return td_loss(critics, batch, target)
        value, action_gradient = values_and_action_gradients(critics, batch.observation, batch.action)
        loss, metrics = squared_td(value, target)
        similarity = alignment(action_gradient)
        return loss + self.eta * jnp.mean(weights * similarity), metrics | {"critic/alignment": jnp.mean(similarity)}


def alignment(gradients: Array) -> Array:
    """(1/(N−1))·Σ_{i≠j} cos(g_i, g_j) a state, for gradients [N, B, A] → [B].

    By ‖Σ_i ĝ_i‖² − Σ_i ‖ĝ_i‖² over unit vectors ĝ: N terms instead of N².
    """
    squares = jnp.sum(jnp.square(gradients), axis=-1, keepdims=True)
    # the root of a sum that may be 0 has no gradient there
    unit = gradients / (jnp.sqrt(jnp.maximum(squares, 1e-30)) + 1e-10)
    pairs = jnp.sum(jnp.square(jnp.sum(unit, axis=0)), axis=-1) - jnp.sum(jnp.square(unit), axis=(0, -1))
    return pairs / max(1, gradients.shape[0] - 1)


def edac(dataset: str) -> EDAC:
    """EDAC: N = 50 on hopper, 10 elsewhere; η = 5 on the mixed halfcheetah and walker2d sets and walker2d-expert, 0 on
    random data of halfcheetah and hopper, else 1."""
    environment, quality = d4rl_parts(dataset) or ("", "")
    strong = quality == "medium-expert" and environment in ("halfcheetah", "walker2d")
    strong |= (environment, quality) == ("walker2d", "expert")
    none = quality == "random" and environment in ("halfcheetah", "hopper")
    return EDAC(critics=50 if environment == "hopper" else 10, eta=5.0 if strong else 0.0 if none else 1.0)


def sac_n(dataset: str) -> EDAC:
    """SAC-N: N = 10 on halfcheetah, 20 on walker2d, 500 on hopper-medium, 200 on hopper's other sets."""
    environment, quality = d4rl_parts(dataset) or ("", "")
    counts = {"walker2d": 20, "hopper": 500 if quality == "medium" else 200}
    return EDAC(critics=counts.get(environment, 10), diversify=False)
