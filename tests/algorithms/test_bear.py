"""BEAR's target, constraint, multiplier and warm start against NumPy."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_reference import SPEC, A, B, brute, close, f64, gaussian, init, make_batch, mlp, q, target_of, update

from sapp import BEAR, preset
from sapp.algorithms.bear import mmd
from sapp.algorithms.divergences import Kernel

SMALL = {"hidden": (16, 16), "vae_hidden": (16,), "next_actions": 3, "warm_steps": 5.0}
WEIGHTS = np.linspace(0.0, 2.0, B)


def raw_draws(actor, state, key, count: int) -> np.ndarray:
    mean, log_std = gaussian(actor, state)
    return mean[:, None] + np.exp(log_std)[:, None] * f64(jax.random.normal(key, (B, count, A)))


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
def test_one_update_against_numpy(kernel: str) -> None:
    algorithm = BEAR(**SMALL, kernel=kernel, initial_alpha=2.0)
    batch, key = make_batch(), jax.random.PRNGKey(3)
    state = init(algorithm, 1)
    step = functools.partial(update, algorithm)
    weights = jnp.asarray(WEIGHTS, jnp.float32)
    new, metrics = step(state, batch, weights, key, 5)
    _, next_key, _, _, actor_key = jax.random.split(key, 5)
    next_action = np.tanh(raw_draws(state.actor.network, batch.next_observation, next_key, 3))
    values = np.stack([q(state.target_critics, batch.next_observation, next_action[:, k]) for k in range(3)], -1)
    following = (0.75 * values.min(0) + 0.25 * values.max(0)).max(-1)
    target = target_of(batch, following, 0.99)
    close(metrics["critic/td"], np.mean((q(state.critics.network, batch.observation, batch.action) - target) ** 2))

    own_key, data_key, _ = jax.random.split(actor_key, 3)
    own = raw_draws(state.actor.network, batch.observation, own_key, 4)
    latent = np.clip(f64(jax.random.normal(data_key, (B, 4, 2 * A))), -0.5, 0.5)
    repeated = np.repeat(f64(batch.observation)[:, None], 4, 1)
    logged = mlp(new.vae.network.decoder, np.concatenate([repeated, latent], -1))  # before tanh, the new VAE
    distance = np.sqrt([brute(own[b], logged[b], 20.0, kernel) + 1e-6 for b in range(B)])
    close(metrics["actor/mmd"], distance.mean(), 1e-3)
    violation = np.mean(WEIGHTS * (distance - 0.05))
    close(metrics["actor/violation"], violation, 1e-3)
    value = q(new.critics.network, batch.observation, np.tanh(own[:, 0])).min(0)
    close(metrics["actor/loss"], 2.0 * violation - value.mean(), 1e-3)
    vae_loss = f64(metrics["vae/error"]) + 0.5 * f64(metrics["vae/kl"])
    close(metrics["loss"], vae_loss + 2 * f64(metrics["critic/td"]) + f64(metrics["actor/loss"]))
    # the multiplier ascends the violation: Adam's first step is its learning rate
    close(new.log_alpha.network, np.log(2.0) + 1e-3 * np.sign(violation), 1e-5)
    _, cold = step(state, batch, weights, key, 4)
    close(cold["actor/loss"], 2.0 * violation, 1e-3)


def test_the_multiplier_stays_within_its_bounds() -> None:
    for alpha, threshold in ((np.exp(10.0), 0.0), (np.exp(-5.0), 10.0)):
        algorithm = BEAR(**SMALL, initial_alpha=float(alpha), threshold=threshold, alpha_lr=3.0)
        state = init(algorithm, 1)
        new, _ = update(algorithm, state, make_batch(), jnp.ones(B), jax.random.PRNGKey(0), 0)
        assert float(new.log_alpha.network) == pytest.approx(np.log(alpha), abs=1e-3)


@pytest.mark.parametrize(
    ("kernel", "actions", "spread", "least"), [("gaussian", 6, 0.2, 0.07), ("laplacian", 3, 0.1, 0.06)]
)
def test_four_draws_of_one_law_are_further_apart_than_the_threshold(
    kernel: Kernel, actions: int, spread: float, least: float
) -> None:
    """So no actor of such a spread meets the constraint, and α runs to its bound; with many draws one would."""

    def distance(draws: int) -> float:
        x, y = (spread * jax.random.normal(jax.random.PRNGKey(i), (1000, draws, actions)) for i in range(2))
        return float(jnp.mean(mmd(x, y, 20.0, kernel)))

    assert distance(BEAR().mmd_samples) > least > BEAR().threshold > distance(64)


def test_the_multiplier_starts_at_one_unless_told_and_the_target_as_a_copy() -> None:
    for told, expected in (({}, 0.0), ({"initial_alpha": 3.0}, np.log(3.0))):
        state = BEAR(**SMALL, **told).init(jax.random.PRNGKey(0), SPEC)
        assert float(state.log_alpha.network) == pytest.approx(expected, abs=1e-6)
        for mine, copied in zip(*map(jax.tree.leaves, (state.critics.network, state.target_critics)), strict=True):
            np.testing.assert_array_equal(mine, copied)


def test_kernel_by_dataset() -> None:
    assert preset("bear", "halfcheetah-medium-v2").kernel == "gaussian"
    assert preset("bear", "hopper-medium-v2", "dualdice").kernel == "laplacian"
