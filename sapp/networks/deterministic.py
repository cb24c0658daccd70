"""Policies given by an action and Gaussian noise around it: TD3's smoothed policy and IQL's Gaussian are both one."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.core.precision import Precision
from sapp.networks.gaussian import log_normal
from sapp.networks.mlp import MLP

IQL_LOG_STD_MIN, IQL_LOG_STD_MAX = -5.0, 2.0


class ClippedGaussian(eqx.Module):
    """Distribution of clip(μ + clip(σ·ε, ±limit), ±1), ε ~ N(0, I), with ``mean`` [B, A].

    ``std`` and ``limit`` broadcast to the mean.

    With TD3's σ = 0.2 and limit = 0.5 a draw is its smoothed target action. The density that ``log_prob`` gives is the
    Gaussian's, without the clips: they move mass to the edges of a box (2.5 standard deviations, and ±1), where the
    true distribution has no density at all.
    """

    mean: Array
    std: Array
    limit: Array

    def mode(self) -> Array:
        """μ, the deterministic action."""
        return self.mean

    def sample(self, key: Array) -> tuple[Array, Array]:
        """One reparameterised action per state and its log-density: [B, A] and [B]."""
        return self._draw(self.mean, jax.random.normal(key, self.mean.shape))

    def sample_many(self, key: Array, count: int) -> tuple[Array, Array]:
        """``count`` actions per state and their log-densities: [B, K, A] and [B, K]."""
        batch, size = self.mean.shape
        return self._draw(self.mean[:, None], jax.random.normal(key, (batch, count, size)))

    def log_prob(self, action: Array) -> Array:
        """Log-density of the Gaussian at given actions [B, A] → [B]."""
        return jnp.sum(log_normal(action, self.mean, jnp.log(self.std)), axis=-1)

    def _draw(self, mean: Array, noise: Array) -> tuple[Array, Array]:
        action = jnp.clip(mean + jnp.clip(self.std * noise, -self.limit, self.limit), -1.0, 1.0)
        return action, jnp.sum(log_normal(action, mean, jnp.log(self.std)), axis=-1)


class DeterministicActor(eqx.Module):
    """μ(s) = tanh(network(s)), [B, A]."""

    mlp: MLP

    def __init__(
        self, key: Array, state_size: int, action_size: int, hidden: Sequence[int], precision: Precision = "float32"
    ) -> None:
        self.mlp = MLP(key, state_size, hidden, action_size, precision)

    def __call__(self, state: Array) -> Array:
        """Actions at states [B, S]."""
        return jnp.tanh(self.mlp(state))


class NoisyPolicy(eqx.Module):
    """A deterministic actor with fixed noise around it: what TD3's target draws from and what DualDICE takes as π."""

    actor: DeterministicActor
    std: Array
    limit: Array

    def __call__(self, state: Array) -> ClippedGaussian:
        """Distribution over actions at states [B, S]."""
        return ClippedGaussian(self.actor(state), self.std, self.limit)


class MeanActor(eqx.Module):
    """IQL's policy: N(tanh network(s), diag σ²) with a learned σ that no state changes, not squashed."""

    actor: DeterministicActor
    log_std: Array

    def __init__(
        self, key: Array, state_size: int, action_size: int, hidden: Sequence[int], precision: Precision = "float32"
    ) -> None:
        self.actor = DeterministicActor(key, state_size, action_size, hidden, precision)
        self.log_std = jnp.zeros(action_size, jnp.float32)

    def __call__(self, state: Array) -> ClippedGaussian:
        """Distribution over actions at states [B, S]."""
        log_std = jnp.clip(self.log_std, IQL_LOG_STD_MIN, IQL_LOG_STD_MAX)
        return ClippedGaussian(self.actor(state), jnp.exp(log_std), jnp.float32(jnp.inf))
