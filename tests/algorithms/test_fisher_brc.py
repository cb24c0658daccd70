"""Fisher-BRC's gradient penalty against finite differences, its two stages against NumPy and SciPy."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_reference import (
    SPEC,
    A,
    B,
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
from scipy import special, stats

from sapp import FisherBRC

ALGORITHM = FisherBRC(hidden=(16, 16), behaviour_hidden=(16,), components=3, behaviour_steps=10, penalty=0.4)
WEIGHTS = np.linspace(0.0, 2.0, B)


def behaviour_log_prob(behaviour, state, action) -> np.ndarray:
    """The mixture's log-density with SciPy's normal."""
    out = mlp(behaviour.mlp, f64(state))
    logits, mean, log_std = (part.reshape(B, A, 3) for part in np.split(out, 3, -1))
    u = np.arctanh(f64(action))[..., None]
    terms = special.log_softmax(logits, -1) + stats.norm.logpdf(u, mean, np.exp(np.clip(log_std, -20, 2)))
    return np.sum(special.logsumexp(terms, -1) - np.log(1 - f64(action) ** 2), -1)


@pytest.fixture(scope="module")
def stages():
    batch, key = make_batch(), jax.random.PRNGKey(3)
    state = init(ALGORITHM, 1)
    step = functools.partial(update, ALGORITHM)
    weights = jnp.asarray(WEIGHTS, jnp.float32)
    return batch, key, state, step(state, batch, weights, key, 3), step(state, batch, weights, key, 10)


def test_cloning_touches_the_behaviour_only(stages) -> None:
    batch, _, state, (new, metrics), _ = stages
    for name in ("actor", "offsets", "target_offsets", "log_temperature"):
        for old, same in zip(*(jax.tree.leaves(getattr(x, name)) for x in (state, new)), strict=True):
            np.testing.assert_array_equal(old, same)
    expected = behaviour_log_prob(state.behaviour.network, batch.observation, batch.action).mean()
    close(metrics["behaviour/log_prob"], expected, 1e-3)
    close(metrics["loss"], -metrics["behaviour/log_prob"] - metrics["behaviour/entropy"])  # ρ starts at 1
    # entropy above −|A| lowers its multiplier, below raises it
    side = np.sign(float(metrics["behaviour/entropy"]) + A)
    close(new.log_multiplier.network, -1e-3 * side)
    close(new.log_multiplier.optimiser.mu, 0.1 * (metrics["behaviour/entropy"] + A))  # a tenth of the gradient


def test_critic_and_actor_against_numpy(stages) -> None:
    batch, key, state, _, (new, metrics) = stages
    next_key, here_key, actor_key = jax.random.split(key, 3)
    behaviour = state.behaviour.network

    def draw(observation, key):
        mean, log_std = gaussian(state.actor.network, observation)
        action = np.tanh(mean + np.exp(log_std) * f64(jax.random.normal(key, (B, A))))
        return action, log_tanh_normal(action, mean, log_std)

    next_action, _ = draw(batch.next_observation, next_key)
    following = q(state.target_offsets, batch.next_observation, next_action).min(0)
    following = following + behaviour_log_prob(behaviour, batch.next_observation, next_action)
    target = 5.0 + target_of(batch, following, 0.99)
    logged = q(state.offsets.network, batch.observation, batch.action)
    logged = logged + behaviour_log_prob(behaviour, batch.observation, batch.action)
    td = np.sum(np.mean((logged - target) ** 2, -1))
    close(metrics["critic/td"], td / 2, 2e-3)

    # the penalty is on the offset alone, at the policy's action: central differences in float64
    action, _ = draw(batch.observation, here_key)
    slopes = np.stack(
        [
            (
                q(state.offsets.network, batch.observation, action + e)
                - q(state.offsets.network, batch.observation, action - e)
            )
            / 2e-5
            for e in 1e-5 * np.eye(A)
        ],
        -1,
    )
    penalty = np.sum(slopes**2, axis=(0, -1))
    close(metrics["critic/penalty"], penalty.mean(), 2e-3)
    close(metrics["critic/weighted_penalty"], np.mean(WEIGHTS * penalty), 2e-3)

    action, log_prob = draw(batch.observation, actor_key)
    value = q(new.offsets.network, batch.observation, action).min(0)
    value = value + behaviour_log_prob(behaviour, batch.observation, action)
    close(metrics["actor/loss"], np.mean(log_prob - value), 2e-3)
    # the temperature starts at 1; Adam's first moment is a tenth of its gradient
    close(new.log_temperature.optimiser.mu, -0.1 * (log_prob.mean() - A), 2e-3)
    close(metrics["actor/entropy"], -log_prob.mean(), 2e-3)
    close(metrics["loss"], td + 0.4 * np.mean(WEIGHTS * penalty) + np.mean(log_prob - value), 2e-3)
    for old, same in zip(jax.tree.leaves(behaviour), jax.tree.leaves(new.behaviour.network), strict=True):
        np.testing.assert_array_equal(old, same)


def test_the_cloning_rate_falls_in_two_steps() -> None:
    algorithm = FisherBRC(hidden=(8,), behaviour_hidden=(8,), components=2, behaviour_steps=100)
    state = init(algorithm, 0)
    clone = jax.jit(lambda step: algorithm.clone(state, make_batch(), jax.random.PRNGKey(0), step)[0])
    moved = [abs(float(clone(step).log_multiplier.network)) for step in (0, 79, 80, 90)]
    np.testing.assert_allclose(moved, [1e-3, 1e-3, 1e-4, 1e-5], rtol=1e-2)
    assert algorithm.preparation == 100


def test_every_network_begins_near_zero() -> None:
    """The authors' last layers, offsets' among them, have a gain of 0.01: values and their slopes begin at nothing."""
    state = ALGORITHM.init(jax.random.PRNGKey(0), SPEC)
    *hidden, last = state.offsets.network.mlp.layers
    np.testing.assert_allclose(np.linalg.norm(f64(last.weight), axis=1), 1e-2, rtol=1e-4)
    np.testing.assert_allclose(np.linalg.svd(f64(hidden[-1].weight), compute_uv=False), 2**0.5, rtol=1e-4)
    assert not any(np.any(layer.bias) for layer in state.offsets.network.mlp.layers)
    batch = make_batch()
    assert np.abs(q(state.offsets.network, batch.observation, batch.action)).max() < 0.1
    mean, log_std = gaussian(state.actor.network, batch.observation)
    assert max(np.abs(mean).max(), np.abs(log_std).max()) < 0.1
