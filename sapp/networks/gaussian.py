"""Tanh-squashed diagonal Gaussians: the one place where their density is computed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.core.precision import Precision
from sapp.networks.mlp import MLP, Linear

LOG_STD_MIN, LOG_STD_MAX = -20.0, 2.0
ACTION_LIMIT = 1.0 - 1e-6
"""Logged actions are pulled inside ±this before atanh: at ±1 the pre-image is infinite."""


def log_tanh_derivative(u: Array) -> Array:
    """log(1 − tanh²u) = 2(log 2 − u − softplus(−2u)), stable for every u."""
    return 2.0 * (math.log(2.0) - u - jax.nn.softplus(-2.0 * u))


def log_normal(u: Array, mean: Array, log_std: Array) -> Array:
    """Elementwise log N(u; mean, exp(log_std)²)."""
    return -0.5 * jnp.square((u - mean) * jnp.exp(-log_std)) - log_std - 0.5 * math.log(2.0 * math.pi)


def unsquash(action: Array) -> Array:
    """Pre-image of an action under tanh."""
    return jnp.arctanh(jnp.clip(action, -ACTION_LIMIT, ACTION_LIMIT))


class TanhGaussian(eqx.Module):
    """Distribution of tanh(u), u ~ N(mean, diag exp(log_std)²), for a batch of states: both [B, A]."""

    mean: Array
    log_std: Array

    def mode(self) -> Array:
        """tanh of the Gaussian's mean, the deterministic action."""
        return jnp.tanh(self.mean)

    def sample(self, key: Array) -> tuple[Array, Array]:
        """One reparameterised action per state and its log-density: [B, A] and [B]."""
        return self._squash(self.mean, self.log_std, jax.random.normal(key, self.mean.shape))

    def sample_many(self, key: Array, count: int) -> tuple[Array, Array]:
        """``count`` actions per state and their log-densities: [B, K, A] and [B, K]."""
        batch, size = self.mean.shape
        noise = jax.random.normal(key, (batch, count, size))
        return self._squash(self.mean[:, None], self.log_std[:, None], noise)

    def draw_raw(self, key: Array, count: int) -> Array:
        """``count`` reparameterised draws per state before tanh, [B, K, A]."""
        batch, size = self.mean.shape
        noise = jax.random.normal(key, (batch, count, size))
        return self.mean[:, None] + jnp.exp(self.log_std)[:, None] * noise

    def candidates(self, count: int) -> Array:
        """``count`` actions per state, [B, K, A], from noise that is the same at every state and every call."""
        noise = jax.random.normal(jax.random.PRNGKey(0), (count, self.mean.shape[-1]))
        return jnp.tanh(self.mean[:, None] + jnp.exp(self.log_std)[:, None] * noise)

    def log_prob(self, action: Array) -> Array:
        """Log-density of given actions [B, A] → [B]."""
        u = unsquash(action)
        return jnp.sum(log_normal(u, self.mean, self.log_std) - log_tanh_derivative(u), axis=-1)

    @staticmethod
    def _squash(mean: Array, log_std: Array, noise: Array) -> tuple[Array, Array]:
        u = mean + jnp.exp(log_std) * noise
        density = -0.5 * jnp.square(noise) - log_std - 0.5 * math.log(2.0 * math.pi) - log_tanh_derivative(u)
        return jnp.tanh(u), jnp.sum(density, axis=-1)


class GaussianActor(eqx.Module):
    """Stochastic policy: a trunk and separate linear heads for the mean and the log standard deviation."""

    trunk: MLP
    mean: Linear
    log_std: Linear
    log_std_min: float = eqx.field(static=True)

    def __init__(
        self, key: Array, state_size: int, action_size: int, hidden: Sequence[int], precision: Precision = "float32",
        log_std_min: float = LOG_STD_MIN,
    ) -> None:  # fmt: skip
        trunk_key, mean_key, std_key = jax.random.split(key, 3)
        self.trunk = MLP(trunk_key, state_size, hidden[:-1], hidden[-1], precision, trunk=True)
        self.mean = Linear(mean_key, hidden[-1], action_size)
        self.log_std = Linear(std_key, hidden[-1], action_size)
        self.log_std_min = log_std_min

    def heads(self, state: Array) -> tuple[Array, Array]:
        """Outputs of the two heads at states [B, S], float32 [B, A] each."""
        features = jax.nn.relu(self.trunk(state))
        precision = self.trunk.precision
        return self.mean.output(features, precision), self.log_std.output(features, precision)

    def __call__(self, state: Array) -> TanhGaussian:
        """Distribution over actions at states [B, S]."""
        mean, log_std = self.heads(state)
        return TanhGaussian(mean, jnp.clip(log_std, self.log_std_min, LOG_STD_MAX))


class NarrowGaussianActor(eqx.Module):
    """BRAC's policy: as ``GaussianActor``, with log σ = −5 + 2.5·(tanh x + 1) between −5 and 0."""

    actor: GaussianActor

    def __init__(
        self, key: Array, state_size: int, action_size: int, hidden: Sequence[int], precision: Precision = "float32"
    ) -> None:
        self.actor = GaussianActor(key, state_size, action_size, hidden, precision)

    def __call__(self, state: Array) -> TanhGaussian:
        """Distribution over actions at states [B, S]."""
        mean, raw = self.actor.heads(state)
        return TanhGaussian(mean, -5.0 + 2.5 * (jnp.tanh(raw) + 1.0))
