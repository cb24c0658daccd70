"""Pieces shared by actor-critic algorithms: the target, the actor's and the temperature's losses, an Adam step."""

from __future__ import annotations

from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import optax
from jax import Array

from sapp.networks import GaussianActor, StateActionNetwork, ensemble
from sapp.spec import Batch
from sapp.tree import all_finite, select

T = TypeVar("T")
ADAM = optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-8)
"""Adam's direction; the learning rate is a number of the member and multiplies it in ``adam_step``."""


def adam_step(parameters: T, gradients: T, optimiser: Any, lr: Array | float) -> tuple[T, Any]:
    """One Adam step with a learning rate that may be traced; a step whose gradient is not finite is not taken.

    So parameters stay finite whatever happens, and a member that diverges is stopped in a state that can be looked at.
    """
    directions, new = ADAM.update(gradients, optimiser)
    stepped = jax.tree.map(lambda p, d: p - lr * d, parameters, directions)
    return select(all_finite(gradients), (stepped, new), (parameters, optimiser))


def bootstrap_target(batch: Batch, next_value: Array, discount: Array | float) -> Array:
    """y = r + γ(1 − terminal)·V(s'): a terminal stops bootstrapping, a time-out does not."""
    return jax.lax.stop_gradient(batch.reward + discount * (1.0 - batch.terminal) * next_value)


def actor_loss(
    actor: GaussianActor, critics: StateActionNetwork, temperature: Array, batch: Batch, key: Array
) -> tuple[Array, Array]:
    """SAC's E[τ·log π(ã|s) − min_i Q_i(s,ã)], ã ~ π reparameterised; also returns E[log π]."""
    action, log_prob = actor(batch.observation).sample(key)
    value = jnp.min(ensemble(critics, batch.observation, action), axis=0)
    return jnp.mean(temperature * log_prob - value), jnp.mean(log_prob)


def temperature_loss(log_temperature: Array, log_prob: Array, target_entropy: float) -> Array:
    """−E[e^{log τ}·(log π(ã|s) + H̄)] with log π detached; H̄ = −|A| is the target entropy."""
    return -jnp.mean(jnp.exp(log_temperature) * (jax.lax.stop_gradient(log_prob) + target_entropy))
