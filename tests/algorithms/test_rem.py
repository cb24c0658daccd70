"""REM: one mixture of heads for Q and its target."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_dqn import BATCH, Heads

from sapp.algorithms import REM, MLPScores
from sapp.algorithms.dqn import DQNState, estimates
from sapp.core.spec import Batch, Spec


def test_rem_mixes_online_and_target_alike_and_takes_the_maximum() -> None:
    online = Heads([[[1.0, 3.0], [0.0, 0.0]], [[2.0, 4.0], [8.0, 0.0]]])
    target = Heads([[[0.0, 0.0], [0.0, 0.0]], [[4.0, 0.0], [1.0, 2.0]]])
    state = DQNState(online, target, None, jnp.int32(0))
    c = jnp.array([0.25, 0.75])
    algorithm = REM(ensemble=2, discount=1.0)
    found = algorithm.bootstrap(state, BATCH, c)
    # Q̄_c(state 1, ·) = (1, 1.75)
    np.testing.assert_allclose(found, [[0.5 + 1.75], [-1.0]])
    loss, _ = algorithm.loss(online, BATCH, found, jnp.ones(2), c)
    # Q_c(0, 1) = 0, Q_c(1, 0) = 3.5
    assert float(loss) == pytest.approx(((2.25 - 0.5) + (4.5 - 0.5)) / 2)
    mixture = algorithm.mixture(jax.random.PRNGKey(3))
    drawn = jax.random.uniform(jax.random.PRNGKey(3), (2,))
    np.testing.assert_allclose(mixture, drawn / drawn.sum())
    np.testing.assert_allclose(estimates(online, jnp.eye(2)[1:], mixture)[0, 0, 0], mixture @ jnp.array([2.0, 4.0]))


def test_rems_update_has_one_mixture_for_q_and_its_target() -> None:
    """Tables of five heads: what the update logs and where its gradient points, by the mixture of the update's key."""
    algorithm, key = REM(ensemble=5, discount=0.9), jax.random.PRNGKey(4)
    online, target = (Heads(np.random.default_rng(seed).normal(0, 3, (2, 2, 5))) for seed in (0, 1))
    new, metrics = algorithm.update(
        DQNState(online, target, algorithm.direction().init(online), jnp.int32(0)), BATCH, jnp.ones(2), key
    )
    drawn = np.asarray(jax.random.uniform(key, (5,)), np.float64)
    mixture = drawn / drawn.sum()
    q, following = (np.asarray(each.table, np.float64) @ mixture for each in (online, target))
    y = np.array([0.5 + 0.9 * following[1].max(), -1.0])
    error = np.array([q[0, 1], q[1, 0]]) - y
    loss = np.where(np.abs(error) <= 1, 0.5 * error**2, np.abs(error) - 0.5).mean()
    assert float(metrics["critic/target"]) == pytest.approx(y.mean(), rel=1e-5)
    assert float(metrics["loss"]) == pytest.approx(loss, rel=1e-5)
    slope = np.zeros((2, 2, 5))  # by state, action and head
    slope[0, 1], slope[1, 0] = (np.clip(e, -1, 1) / 2 * mixture for e in error)
    np.testing.assert_allclose(new.optimiser.mu.table, 0.1 * slope, rtol=1e-4, atol=1e-7)  # Adam's first moment


def test_rem_acts_by_the_mean_of_its_heads() -> None:
    spec = Spec(3, 2, jnp.zeros(3), jnp.ones(3), True)
    algorithm = REM(ensemble=7, network=MLPScores((8,)))
    state = algorithm.init(jax.random.PRNGKey(0), spec)
    observation = jax.random.normal(jax.random.PRNGKey(1), (5, 3))
    heads = state.scores.many(observation)
    assert heads.shape == (5, 2, 7)
    np.testing.assert_allclose(algorithm.policy(state)(observation).logits, heads.mean(-1), rtol=1e-6)
    moved, metrics = jax.jit(algorithm.update)(
        state, Batch(observation, jnp.zeros(5, jnp.int32), jnp.ones(5), observation, jnp.zeros(5), observation),
        jnp.ones(5), jax.random.PRNGKey(2),
    )  # fmt: skip
    assert np.isfinite(float(metrics["loss"]))
    assert int(moved.updates) == 1
