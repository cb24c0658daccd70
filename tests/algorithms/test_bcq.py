"""BCQ's proposals, target and losses against NumPy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_reference import A, B, S, close, f64, init, make_batch, mlp, q, target_of, update

from sapp import BCQ, DualDICE, SappError

ALGORITHM = BCQ(hidden=(16, 16), vae_hidden=(16,), next_actions=3, candidates=7, limit=0.2)


def moved(perturbation, state, action) -> np.ndarray:
    pair = np.concatenate([f64(state), action], -1)
    return np.clip(action + 0.2 * np.tanh(mlp(perturbation.mlp, pair)), -1, 1)


def proposed(vae, perturbation, state, latent) -> np.ndarray:
    return moved(perturbation, state, np.tanh(mlp(vae.decoder, np.concatenate([f64(state), f64(latent)], -1))))


def test_one_update_against_numpy() -> None:
    batch, key = make_batch(), jax.random.PRNGKey(3)
    state, other = (init(ALGORITHM, i) for i in (1, 2))
    state = type(state)(state.vae, state.perturbation, state.critics, other.target_perturbation, other.target_critics)
    new, metrics = update(ALGORITHM, state, batch, jnp.ones(B), key)
    _, next_key, actor_key = jax.random.split(key, 3)
    vae = new.vae.network  # the VAE is updated first and used at once
    latent = np.clip(f64(jax.random.normal(next_key, (B, 3, 2 * A))), -0.5, 0.5)
    best = np.full(B, -np.inf)
    for k in range(3):
        action = proposed(vae, state.target_perturbation, batch.next_observation, latent[:, k])
        values = q(state.target_critics, batch.next_observation, action)
        best = np.maximum(best, 0.75 * values.min(0) + 0.25 * values.max(0))
    target = target_of(batch, best, 0.99)
    close(metrics["critic/td"], np.mean((q(state.critics.network, batch.observation, batch.action) - target) ** 2))
    latent = np.clip(f64(jax.random.normal(actor_key, (B, 2 * A))), -0.5, 0.5)
    action = proposed(vae, state.perturbation.network, batch.observation, latent)
    close(metrics["actor/loss"], -q(new.critics.network, batch.observation, action)[0].mean())
    vae_loss = f64(metrics["vae/error"]) + 0.5 * f64(metrics["vae/kl"])
    close(metrics["loss"], vae_loss + 2 * f64(metrics["critic/td"]) + f64(metrics["actor/loss"]))
    for target_, online, after in (
        (state.target_perturbation, new.perturbation.network, new.target_perturbation),
        (state.target_critics, new.critics.network, new.target_critics),
    ):
        for old, fresh, now in zip(*map(jax.tree.leaves, (target_, online, after)), strict=True):
            np.testing.assert_allclose(now, 0.995 * old + 0.005 * fresh, rtol=1e-5, atol=1e-7)


def test_policy_plays_the_best_proposal_and_stays_within_the_limit_of_the_decoder() -> None:
    state = init(ALGORITHM, 1)
    observation = jnp.asarray(np.random.default_rng(0).normal(size=(4, S)), jnp.float32)
    policy = ALGORITHM.policy(state)
    mode = f64(policy(observation).mode())
    latent = np.clip(f64(jax.random.normal(jax.random.PRNGKey(0), (7, 2 * A))), -0.5, 0.5)
    for b in range(4):
        row = np.repeat(f64(observation[b])[None], 7, 0)
        actions = proposed(state.vae.network, state.perturbation.network, row, latent)
        close(mode[b], actions[np.argmax(q(state.critics.network, row, actions)[0])])
    draws, density = policy(observation).sample_many(jax.random.PRNGKey(5), 6)
    assert draws.shape == (4, 6, A)
    assert density.shape == (4, 6)
    assert np.all(np.isnan(density))  # there is none in closed form


def test_a_generators_draws_lie_around_its_mode_and_have_no_density() -> None:
    state = init(ALGORITHM, 1)
    observation = jnp.asarray(np.random.default_rng(0).normal(size=(4, S)), jnp.float32)
    vae, perturbation = state.vae.network, state.perturbation.network
    found = ALGORITHM.generator(vae, perturbation)(observation)
    close(found.mode(), proposed(vae, perturbation, observation, np.zeros((4, 2 * A))))
    draws, density = found.sample(jax.random.PRNGKey(5))
    latent = np.clip(f64(jax.random.normal(jax.random.PRNGKey(5), (4, 2 * A))), -0.5, 0.5)
    close(draws, proposed(vae, perturbation, observation, latent))
    for none in (density, found.log_prob(draws)):
        np.testing.assert_array_equal(none, np.full(4, np.nan))


def test_state_weights_are_refused() -> None:
    with pytest.raises(SappError, match="BCQ takes no state weights"):
        BCQ(weights=DualDICE())
