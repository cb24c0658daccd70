"""What actor-critic algorithms share: targets, and gradients that are not finite."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_reference import SPEC, B, make_batch

from sapp import CQL
from sapp.algorithms.actor_critic import bootstrap_target
from sapp.core.spec import Batch


@pytest.fixture
def batch() -> Batch:
    return make_batch()


def test_target_stops_at_terminals_only(batch: Batch) -> None:
    next_value = jnp.arange(B, dtype=jnp.float32)
    target = bootstrap_target(batch, next_value, 0.9)
    expected = np.asarray(batch.reward) + 0.9 * (1 - np.asarray(batch.terminal)) * np.arange(B)
    np.testing.assert_allclose(target, expected, rtol=1e-6)


def test_a_gradient_that_is_not_finite_counts_as_zero(batch: Batch) -> None:
    algorithm = CQL(hidden=(8, 8))
    state = algorithm.init(jax.random.PRNGKey(0), SPEC)
    broken = Batch(batch.observation, batch.action, batch.reward.at[3].set(jnp.inf), *jax.tree.leaves(batch)[3:])
    new, metrics = algorithm.update(state, broken, jnp.ones(B), jax.random.PRNGKey(1))
    assert not np.isfinite(metrics["loss"])
    old, kept = state.critics.mlp.layers[-1], new.critics.mlp.layers[-1]
    np.testing.assert_array_equal(old.bias, kept.bias)  # its gradient is a sum over the whole batch
    for leaf in jax.tree.leaves((new.critics, new.critic_optimiser)):
        assert np.all(np.isfinite(leaf))
    for before, after in zip(jax.tree.leaves(state.critics), jax.tree.leaves(new.critics), strict=True):
        assert np.max(np.abs(before - after)) < 1.01 * algorithm.critic_lr
