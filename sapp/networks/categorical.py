"""Distributions over discrete actions, and the softmax policy of any network that scores them."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array


class Categorical(eqx.Module):
    """Distribution over n discrete actions for a batch of states, int32: ``logits`` [B, n], not always normalised."""

    logits: Array

    @property
    def log_probs(self) -> Array:
        """log π(a|s) of every action [B, n]."""
        return jax.nn.log_softmax(self.logits)

    @property
    def probs(self) -> Array:
        """π(a|s) of every action [B, n]: expectations over actions are exact sums."""
        return jax.nn.softmax(self.logits)

    def mode(self) -> Array:
        """The likeliest action, the lowest number where several tie: int32 [B]."""
        return jnp.argmax(self.logits, axis=-1).astype(jnp.int32)

    def sample(self, key: Array) -> tuple[Array, Array]:
        """One action per state and its log-probability: int32 [B] and [B]."""
        action = jax.random.categorical(key, self.logits).astype(jnp.int32)
        return action, self.log_prob(action)

    def sample_many(self, key: Array, count: int) -> tuple[Array, Array]:
        """``count`` actions per state and their log-probabilities: int32 [B, K] and [B, K]."""
        batch = self.logits.shape[0]
        action = jax.random.categorical(key, self.logits[:, None], shape=(batch, count)).astype(jnp.int32)
        return action, jnp.take_along_axis(self.log_probs, action, axis=-1)

    def log_prob(self, action: Array) -> Array:
        """Log-probability of given actions [B] → [B]."""
        return jnp.take_along_axis(self.log_probs, action[:, None], axis=-1)[:, 0]


class CategoricalActor(eqx.Module):
    """Softmax policy π(a|s) ∝ exp(network(s)_a / temperature).

    ``network`` is any callable pytree from states [B, …] to scores [B, n], so that a multilayer perceptron and an image
    encoder make the same kind of policy. With a Q-function and temperature 1 it is the maximiser inside CQL(H).
    """

    network: Any
    temperature: Array

    def __init__(self, network: Any, temperature: Array | float = 1.0) -> None:
        self.network = network
        self.temperature = jnp.asarray(temperature, jnp.float32)

    def __call__(self, state: Array) -> Categorical:
        """Distribution over discrete actions at states [B, …]."""
        return Categorical(self.network(state) / self.temperature)

    def log_prob(self, state: Array, action: Array) -> Array:
        """Log-probability of actions [B] at states → [B], as ``BehaviourDensity`` has it for vectors."""
        return self(state).log_prob(action)


def one_hot(action: Array, size: int) -> Array:
    """Discrete actions int [...] as the vectors [..., n] that a network of state and action takes."""
    return jax.nn.one_hot(action, size, dtype=jnp.float32)
