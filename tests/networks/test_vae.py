"""The VAE's bound against NumPy and SciPy, and what it generates."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from sapp.core.spec import Batch
from sapp.networks import CVAE, vae_loss

S, A, B = 4, 2, 8


@pytest.fixture(scope="module")
def vae() -> CVAE:
    return CVAE(jax.random.PRNGKey(0), S, A, (16, 16))


@pytest.fixture(scope="module")
def batch() -> Batch:
    rng = np.random.default_rng(0)
    observation, action = rng.normal(size=(B, S)), np.tanh(rng.normal(size=(B, A)))
    none = np.zeros(B)
    return Batch(*(jnp.asarray(x, jnp.float32) for x in (observation, action, none, observation, none, observation)))


def forward(network, x: np.ndarray) -> np.ndarray:
    for layer in network.layers[:-1]:
        x = np.maximum(x @ np.asarray(layer.weight, np.float64) + np.asarray(layer.bias, np.float64), 0)
    return x @ np.asarray(network.layers[-1].weight, np.float64) + np.asarray(network.layers[-1].bias, np.float64)


def kl(mean: float, std: float) -> float:
    """KL(N(mean, std²) ‖ N(0, 1)) by quadrature."""
    own, prior = stats.norm(mean, std), stats.norm()
    return integrate.quad(lambda z: own.pdf(z) * (own.logpdf(z) - prior.logpdf(z)), mean - 12 * std, mean + 12 * std)[0]


def test_loss_is_reconstruction_plus_half_the_divergence_by_quadrature(vae: CVAE, batch: Batch) -> None:
    key = jax.random.PRNGKey(1)
    loss, metrics = vae_loss(vae, batch, key)
    out = forward(vae.encoder, np.concatenate([batch.observation, batch.action], -1).astype(np.float64))
    mean, log_std = np.split(out, 2, -1)
    log_std = np.clip(log_std, -4, 15)
    assert mean.shape == (B, 2 * A)
    latent = mean + np.exp(log_std) * np.asarray(jax.random.normal(key, mean.shape), np.float64)
    decoded = np.tanh(forward(vae.decoder, np.concatenate([np.asarray(batch.observation, np.float64), latent], -1)))
    error = np.mean((decoded - np.asarray(batch.action)) ** 2)
    divergence = np.mean([kl(m, np.exp(s)) for m, s in zip(mean.ravel(), log_std.ravel(), strict=True)])
    assert float(metrics["vae/error"]) == pytest.approx(error, rel=1e-4)
    assert float(metrics["vae/kl"]) == pytest.approx(divergence, rel=1e-4)
    assert float(loss) == pytest.approx(error + 0.5 * divergence, rel=1e-4)


def test_generated_actions_come_from_clipped_latents(vae: CVAE, batch: Batch) -> None:
    latent = vae.latents(jax.random.PRNGKey(2), 4000)
    assert float(jnp.max(jnp.abs(latent))) == 0.5
    # a standard normal lies beyond ±½ with probability 0.617
    assert float(jnp.mean(jnp.abs(latent) == 0.5)) == pytest.approx(2 * stats.norm.sf(0.5), abs=0.01)
    raw = vae.generate(batch.observation, jax.random.PRNGKey(3), 5)
    assert raw.shape == (B, 5, A)
    one = vae.decode_raw(batch.observation, jnp.zeros((B, 2 * A)))
    many = vae.decode_raw(batch.observation, jnp.zeros((B, 3, 2 * A)))
    np.testing.assert_allclose(many, np.repeat(one[:, None], 3, 1), rtol=1e-5, atol=1e-6)
