"""Cloning of discrete actions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.algorithms import DiscreteBC, MLPScores
from sapp.core.spec import Batch, Spec


def test_cloning_finds_the_frequencies() -> None:
    spec = Spec(2, 3, jnp.zeros(2), jnp.ones(2), True)
    algorithm = DiscreteBC(lr=3e-2, network=MLPScores((8,)))
    state = algorithm.init(jax.random.PRNGKey(0), spec)
    action = jnp.array([0, 0, 0, 1, 2, 2, 2, 2], jnp.int32)
    where = jnp.eye(2)[jnp.array([0, 0, 0, 0, 1, 1, 1, 1])]
    batch = Batch(where, action, jnp.zeros(8), where, jnp.zeros(8), where)
    step = jax.jit(lambda state, key: algorithm.update(state, batch, jnp.ones(8), key))
    _, before = step(state, jax.random.PRNGKey(0))
    for i in range(300):
        state, metrics = step(state, jax.random.PRNGKey(i))
    probs = algorithm.policy(state)(jnp.eye(2)).probs
    np.testing.assert_allclose(probs, [[0.75, 0.25, 0.0], [0.0, 0.0, 1.0]], atol=0.03)
    assert float(metrics["loss"]) == pytest.approx(0.5 * -(0.75 * np.log(0.75) + 0.25 * np.log(0.25)), abs=0.01)
    assert float(metrics["actor/agreement"]) == pytest.approx(7 / 8)
    assert float(before["loss"]) > float(metrics["loss"])
