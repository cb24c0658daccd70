"""BRAC's divergences, penalties in values and policy, warm start and dual ascent, against NumPy."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_reference import (
    A,
    B,
    brute,
    close,
    f64,
    gaussian,
    init,
    log_tanh_normal,
    make_batch,
    mlp,
    q,
    target_of,
    update,
)

from sapp import BRAC, SappError, preset
from sapp.algorithms.divergences import mean_kernel, mmd_squared

SMALL = {"hidden": (16, 16), "critic_hidden": (16, 16), "behaviour_steps": 10, "warm_steps": 5.0, "alpha": 0.6}
WEIGHTS = np.linspace(0.0, 2.0, B)


def distribution(network, state) -> tuple[np.ndarray, np.ndarray]:
    actor = network.actor
    features = np.maximum(mlp(actor.trunk, f64(state)), 0.0)
    mean, _ = gaussian(actor, state)
    raw = features @ f64(actor.log_std.weight) + f64(actor.log_std.bias)
    return mean, -5.0 + 2.5 * (np.tanh(raw) + 1.0)


def draws(network, state, key) -> tuple[np.ndarray, np.ndarray]:
    mean, log_std = distribution(network, state)
    noise = f64(jax.random.normal(key, (B, 4, A)))
    action = np.tanh(mean[:, None] + np.exp(log_std)[:, None] * noise)
    return action, log_tanh_normal(action, mean[:, None], log_std[:, None])


def distance(algorithm: BRAC, state, network, behaviour, key) -> np.ndarray:
    own_key, other_key = jax.random.split(key)
    action, log_prob = draws(network, state, own_key)
    if algorithm.divergence == "kl":
        mean, log_std = distribution(behaviour, state)
        return np.mean(log_prob - log_tanh_normal(action, mean[:, None], log_std[:, None]), -1)
    logged, _ = draws(behaviour, state, other_key)
    return np.array([brute(action[b], logged[b], 10.0, "laplacian") for b in range(B)])


@pytest.mark.parametrize(("divergence", "value_penalty"), [("kl", True), ("mmd", False)])
def test_one_update_against_numpy(divergence: str, value_penalty: bool) -> None:
    algorithm = BRAC(**SMALL, divergence=divergence, value_penalty=value_penalty)
    batch, key = make_batch(), jax.random.PRNGKey(3)
    state = init(algorithm, 1)
    step = functools.partial(update, algorithm)
    weights = jnp.asarray(WEIGHTS, jnp.float32)
    new, metrics = step(state, batch, weights, key, 15)
    next_key, penalty_key, actor_key = jax.random.split(key, 3)
    actor, behaviour = state.actor.network, state.behaviour.network
    mean, log_std = distribution(actor, batch.next_observation)
    next_action = np.tanh(mean + np.exp(log_std) * f64(jax.random.normal(next_key, (B, A))))
    following = q(state.target_critics, batch.next_observation, next_action).min(0)
    if value_penalty:
        following = following - 0.6 * WEIGHTS * distance(
            algorithm, batch.next_observation, actor, behaviour, penalty_key
        )
    target = target_of(batch, following, 0.99)
    close(
        metrics["critic/td"], np.mean((q(state.critics.network, batch.observation, batch.action) - target) ** 2), 2e-3
    )

    action_key, own_key = jax.random.split(actor_key)
    mean, log_std = distribution(actor, batch.observation)
    action = np.tanh(mean + np.exp(log_std) * f64(jax.random.normal(action_key, (B, A))))
    value = q(new.critics.network, batch.observation, action).min(0)
    away = distance(algorithm, batch.observation, actor, behaviour, own_key)
    close(metrics["actor/loss"], np.mean(0.6 * WEIGHTS * away - value), 2e-3)
    close(metrics["actor/divergence"], away.mean(), 2e-3)
    close(metrics["loss"], 2 * metrics["critic/td"] + metrics["actor/loss"])
    _, cold = step(state, batch, weights, key, 14)  # four steps after cloning: the values do not count yet
    close(cold["actor/loss"], 0.6 * np.mean(WEIGHTS * away), 2e-3)


def test_cloning_maximises_the_likelihood_of_logged_actions() -> None:
    algorithm = BRAC(**SMALL)
    batch = make_batch()
    state = init(algorithm, 1)
    new, metrics = update(algorithm, state, batch, jnp.ones(B), jax.random.PRNGKey(0), 0)
    behaviour = distribution(state.behaviour.network, batch.observation)
    close(metrics["loss"], -log_tanh_normal(batch.action, *behaviour).mean(), 1e-3)
    for old, same in zip(jax.tree.leaves(state.actor), jax.tree.leaves(new.actor), strict=True):
        np.testing.assert_array_equal(old, same)


def test_dual_ascent_follows_the_divergence_within_its_bounds() -> None:
    batch = make_batch()
    for target, sign in ((-1e6, 1.0), (1e6, -1.0)):
        algorithm = BRAC(**SMALL | {"alpha": 0.5}, alpha_lr=1.0, target_divergence=target)
        state = init(algorithm, 1)
        new, _ = update(algorithm, state, batch, jnp.ones(B), jax.random.PRNGKey(0), 20)
        assert float(new.alpha.network) == pytest.approx(max(0.0, 0.5 + sign), abs=1e-3)
    fixed = dataclasses.replace(algorithm, alpha_lr=0.0)
    new, metrics = update(fixed, state, batch, jnp.ones(B), jax.random.PRNGKey(0), 20)
    assert float(new.alpha.network) == 0.5
    # weights of 2 count for the target as they do for the divergence: 2·D < 2·(1.5·D), whatever 1.5·D itself is
    away = float(metrics["actor/divergence"])
    above = dataclasses.replace(algorithm, target_divergence=1.5 * away)
    new, _ = update(above, state, batch, jnp.full(B, 2.0), jax.random.PRNGKey(0), 20)
    assert (float(new.alpha.network) - 0.5) * away < 0.0


def test_the_squared_mmd_of_one_law_with_itself_is_worth_more_than_a_reward() -> None:
    """Its mean is (2/n)·(1 − E k), because draws are compared with themselves, too. In the values the preset's α would
    make that dearer than walker2d's reward, some 3 a step, and falling over a gain: so it is in the policy alone."""
    algorithm = preset("brac-mmd", "walker2d-medium-v2")
    settings = algorithm.sigma, algorithm.kernel
    x, y = (jnp.tanh(0.3 * jax.random.normal(jax.random.PRNGKey(i), (20_000, algorithm.samples, 6))) for i in range(2))
    floor = float(jnp.mean(mmd_squared(x, y, *settings)))
    expected = 2.0 / algorithm.samples * (1.0 - float(jnp.mean(mean_kernel(x, y, *settings))))
    assert floor == pytest.approx(expected, rel=0.01)
    assert algorithm.alpha * floor > 15.0
    assert not algorithm.value_penalty
    assert preset("brac", "walker2d-medium-v2").value_penalty


def test_unknown_divergence_is_named() -> None:
    with pytest.raises(SappError, match="kl or mmd"):
        BRAC(divergence="tv")
    with pytest.raises(SappError, match="alpha is 600"):
        BRAC(alpha=600.0)
