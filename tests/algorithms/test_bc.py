"""Behaviour cloning by least squares: one step against NumPy, and the policy that it gives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numpy_reference import SPEC, A, B, close, f64, init, make_batch, mlp, update

from sapp import BC

ALGORITHM = BC(hidden=(16,), actor_lr=1e-3, noise=0.3)


def test_one_update_is_adam_on_the_mean_square() -> None:
    batch, state = make_batch(), init(ALGORITHM, 0)
    new, metrics = update(ALGORITHM, state, batch, jnp.ones(B), jax.random.PRNGKey(1), 0)
    normal = (f64(batch.observation) - f64(SPEC.observation_mean)) / (f64(SPEC.observation_std) + 1e-3)
    loss = np.mean((np.tanh(mlp(state.actor.network.mlp, normal)) - f64(batch.action)) ** 2)
    close(metrics["loss"], loss)
    moved = f64(new.actor.network.mlp.layers[-1].bias) - f64(state.actor.network.mlp.layers[-1].bias)
    assert moved.shape == (A,)
    np.testing.assert_allclose(np.abs(moved), 1e-3, rtol=1e-3)  # Adam's first step is the learning rate


def test_the_policy_takes_raw_observations_and_has_its_noise() -> None:
    state = init(ALGORITHM, 0)
    distribution = ALGORITHM.policy(state)(make_batch().observation)
    np.testing.assert_allclose(distribution.std, 0.3)
    draws, _ = distribution.sample_many(jax.random.PRNGKey(0), 4_000)
    inside = np.abs(np.asarray(distribution.mode())) < 0.1
    spread = np.asarray(draws).std(1)[inside]
    np.testing.assert_allclose(spread, 0.3, rtol=0.1)
    assert np.abs(draws).max() <= 1.0
