"""A conditional variational auto-encoder of actions: the behaviour model of BCQ, BEAR and UWAC."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.core.precision import Precision
from sapp.core.spec import Batch
from sapp.networks.mlp import MLP

LOG_STD_MIN, LOG_STD_MAX = -4.0, 15.0
LATENT_CLIP = 0.5
"""Latents are clipped to ± this when actions are generated: only the likely part of the data."""
KL_WEIGHT = 0.5


class CVAE(eqx.Module):
    """a ≈ tanh(decoder(s, z)), z ~ N(encoder(s, a)), prior N(0, I); as many latents as twice the action's width."""

    encoder: MLP
    decoder: MLP
    latent_size: int = eqx.field(static=True)

    def __init__(
        self, key: Array, state_size: int, action_size: int, hidden: Sequence[int], precision: Precision = "float32"
    ) -> None:
        encoder_key, decoder_key = jax.random.split(key)
        self.latent_size = 2 * action_size
        self.encoder = MLP(encoder_key, state_size + action_size, hidden, 2 * self.latent_size, precision)
        self.decoder = MLP(decoder_key, state_size + self.latent_size, hidden, action_size, precision)

    def encode(self, state: Array, action: Array) -> tuple[Array, Array]:
        """Mean and log standard deviation of the latent, [B, L] each."""
        mean, log_std = jnp.split(self.encoder(jnp.concatenate([state, action], axis=-1)), 2, axis=-1)
        return mean, jnp.clip(log_std, LOG_STD_MIN, LOG_STD_MAX)

    def decode_raw(self, state: Array, latent: Array) -> Array:
        """Actions before tanh: of latents [B, L] → [B, A], or of [B, K, L] → [B, K, A]."""
        if latent.ndim == 3:
            state = jnp.broadcast_to(state[:, None], (*latent.shape[:2], state.shape[-1]))
        return self.decoder(jnp.concatenate([state, latent], axis=-1))

    def latents(self, key: Array, *shape: int) -> Array:
        """Draws of the clipped prior, [*shape, L]."""
        return jnp.clip(jax.random.normal(key, (*shape, self.latent_size)), -LATENT_CLIP, LATENT_CLIP)

    def generate(self, state: Array, key: Array, count: int) -> Array:
        """``count`` actions per state before tanh, [B, K, A], from clipped latents."""
        return self.decode_raw(state, self.latents(key, state.shape[0], count))


def vae_loss(vae: CVAE, batch: Batch, key: Array) -> tuple[Array, dict[str, Array]]:
    """mean (a − â)² + ½·mean KL(N(μ, σ²) ‖ N(0, 1)), both over states and dimensions: the negative bound, scaled."""
    mean, log_std = vae.encode(batch.observation, batch.action)
    latent = mean + jnp.exp(log_std) * jax.random.normal(key, mean.shape)
    reconstruction = jnp.tanh(vae.decode_raw(batch.observation, latent))
    error = jnp.mean(jnp.square(reconstruction - batch.action))
    divergence = jnp.mean(-0.5 * (1.0 + 2.0 * log_std - jnp.square(mean) - jnp.exp(2.0 * log_std)))
    return error + KL_WEIGHT * divergence, {"vae/error": error, "vae/kl": divergence}
