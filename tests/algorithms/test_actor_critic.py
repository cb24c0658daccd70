"""What actor-critic algorithms share: targets, and gradients that are not finite."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_reference import SPEC, B, make_batch

from sapp import CQL
from sapp.algorithms.actor_critic import (
    bootstrap_target,
    entropy_share,
    every,
    mixed_minimum,
    squared_td,
    temperature_loss,
)
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


@pytest.mark.parametrize("temperature", [0.05, 1.0, 4.0])
def test_the_temperatures_loss_and_its_slope_in_the_logarithm_are_the_same_number(temperature: float) -> None:
    log_prob = jnp.array([0.5, -2.0, 4.0])
    expected = -temperature * (2.5 / 3 - 2.0)
    value, slopes = jax.value_and_grad(temperature_loss, (0, 1))(jnp.log(temperature), log_prob, -2.0)
    assert float(value) == pytest.approx(expected, rel=1e-5)
    assert float(slopes[0]) == pytest.approx(expected, rel=1e-5)
    assert not np.any(slopes[1])


def test_an_entropy_adds_its_size_and_that_of_uniform_actions_times_the_temperature() -> None:
    for entropy in (-3.0, 3.0):
        row = {"actor/temperature": 0.5, "actor/entropy": entropy}
        assert entropy_share(2, row) == pytest.approx(0.5 * (3.0 - np.log(0.25)))
    assert entropy_share(2, {"actor/temperature": 0.5}) == pytest.approx(0.5 * np.log(4.0))
    assert entropy_share(2, {}) == 0.0


def test_squared_errors_are_summed_over_critics_and_logged_by_critic() -> None:
    value, target, trust = jnp.array([[1.0, 2.0], [3.0, 0.0], [0.0, 0.0]]), jnp.array([1.0, 4.0]), jnp.array([2.0, 0.5])
    loss, metrics = squared_td(value, target, trust)
    # errors times trust: (0, -1), (4, -2), (-2, -2)
    assert float(loss) == pytest.approx((0 + 1) / 2 + (16 + 4) / 2 + (4 + 4) / 2)
    assert float(metrics["critic/td"]) == pytest.approx(14.5 / 3)
    assert float(metrics["critic/value"]) == pytest.approx(1.0)
    assert float(metrics["critic/target"]) == pytest.approx(2.5)
    plain, _ = squared_td(value, target)
    assert float(plain) == pytest.approx((0 + 4) / 2 + (4 + 16) / 2 + (1 + 16) / 2)
    slope = jax.grad(lambda own, other: squared_td(own, other)[0], (0, 1))(value, target)
    np.testing.assert_allclose(slope[0], value - target)  # 2·error, of which each state has half
    assert not np.any(slope[1])


def test_the_mixed_minimum_lies_between_the_least_and_the_most() -> None:
    values = jnp.array([[1.0, 5.0], [3.0, -5.0], [2.0, 0.0]])
    np.testing.assert_allclose(mixed_minimum(values, 0.75), [1.5, -2.5])


def test_what_is_done_now_and_then_has_metrics_whose_mean_over_time_is_right() -> None:
    found = [every(3, step, lambda: (jnp.int32(1), {"x": jnp.float32(2.0)}), jnp.int32(0)) for step in range(6)]
    assert [int(state) for state, _ in found] == [0, 0, 1, 0, 0, 1]
    assert [float(metrics["x"]) for _, metrics in found] == [0.0, 0.0, 6.0, 0.0, 0.0, 6.0]
    assert every(1, 0, lambda: (7, {"x": 2.0}), 0) == (7, {"x": 2.0})
