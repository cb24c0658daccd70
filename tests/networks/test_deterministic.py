"""Policies given by an action and noise around it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from sapp.networks import (
    ClippedGaussian,
    MeanActor,
)

S, A, B = 4, 2, 6
OBSERVATION = jnp.asarray(np.random.default_rng(0).normal(size=(B, S)), jnp.float32)


def test_clipped_gaussian_against_scipy() -> None:
    mean = jnp.asarray([[0.0, 0.9]])
    distribution = ClippedGaussian(mean, jnp.float32(0.2), jnp.float32(0.5))
    action = jnp.asarray([[0.3, 0.7]])
    expected = stats.norm.logpdf(np.asarray(action), np.asarray(mean), 0.2).sum()
    assert float(distribution.log_prob(action)[0]) == pytest.approx(expected, rel=1e-5)
    draws, density = distribution.sample_many(jax.random.PRNGKey(0), 20000)
    draws = np.asarray(draws[0])
    np.testing.assert_allclose(
        density[0, :5], [float(distribution.log_prob(a[None])[0]) for a in jnp.asarray(draws[:5])], rtol=1e-4
    )
    assert draws.max() == 1.0
    assert np.mean(draws[:, 1] == 1.0) == pytest.approx(stats.norm.sf(0.5), abs=0.01)
    assert np.mean(draws[:, 0] == 0.5) == pytest.approx(stats.norm.sf(2.5), abs=0.003)
    one, _ = distribution.sample(jax.random.PRNGKey(1))
    assert one.shape == (1, A)
    np.testing.assert_array_equal(distribution.mode(), mean)


def test_mean_actor_has_one_deviation_for_all_states_within_its_bounds() -> None:
    import equinox as eqx

    actor = eqx.tree_at(lambda a: a.log_std, MeanActor(jax.random.PRNGKey(0), S, A, (8, 8)), jnp.asarray([-9.0, 0.5]))
    distribution = actor(OBSERVATION)
    np.testing.assert_allclose(distribution.std, np.exp([-5.0, 0.5]), rtol=1e-6)
    assert np.all(np.abs(distribution.mode()) < 1.0)
