from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.data import Dataset, Ledger
from sapp.data.action_units import from_unit, rescaled, to_unit

LOW, HIGH = np.array([-2.0, 0.0], np.float32), np.array([2.0, 10.0], np.float32)


def test_there_and_back() -> None:
    action = np.random.default_rng(0).uniform(-1, 1, (50, 2)).astype(np.float32)
    there = from_unit(action, LOW, HIGH)
    np.testing.assert_allclose(there[:, 1], 5 * action[:, 1] + 5, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(to_unit(there, LOW, HIGH), action, atol=1e-6)
    assert there.dtype == to_unit(there, LOW, HIGH).dtype == np.float32


def test_nothing_is_done_where_the_units_are_the_same() -> None:
    action = np.random.default_rng(0).uniform(-1, 1, (50, 2)).astype(np.float32)
    np.testing.assert_array_equal(from_unit(action, -np.ones(2), np.ones(2)), action)  # bit for bit
    assert to_unit(action, -np.ones(2), np.ones(2)) is action


def test_both_ways_clip_and_one_may_not() -> None:
    assert to_unit([[9.0, -1.0]], LOW, HIGH).tolist() == [[1, -1]]
    assert to_unit([[9.0, -1.0]], LOW, HIGH, clip=False).tolist() == [[4.5, pytest.approx(-1.2)]]
    for given, kept in ((3.0, 1), (1.5, 1), (-1.5, -1), (-3.0, -1), (0.5, 0.5)):
        assert to_unit([[given]], -1, 1).tolist() == [[kept]]
        assert to_unit([[given]], -1, 1, clip=False).tolist() == [[given]]
    assert from_unit(np.array([[3.0, -3.0]], np.float32), LOW, HIGH).tolist() == [[2, 0]]


def test_it_is_the_same_in_jax() -> None:
    action = np.random.default_rng(0).uniform(-1.1, 1.1, (50, 2)).astype(np.float32)
    low, high = jnp.asarray(LOW), jnp.asarray(HIGH)
    traced = jax.jit(lambda x: from_unit(x, low, high))(action)
    np.testing.assert_allclose(np.asarray(traced), from_unit(action, LOW, HIGH), atol=1e-6)


def logged() -> Dataset:
    return Dataset.from_arrays(
        np.arange(4.0), [[-1.0], [0.0], [0.5], [1.0]], [1, 2, 3, 4], [0, 0, 0, 1], extras={"log_prob": np.zeros(4)}
    )


def test_logs_in_shares_are_stretched_to_the_environment() -> None:
    data = rescaled(logged(), -2, 2)
    assert data.action[:, 0].tolist() == [-2, 0, 1, 2]
    assert (data.action_low.tolist(), data.action_high.tolist()) == ([-2], [2])
    np.testing.assert_array_equal(data.scaled_action(), logged().action)
    np.testing.assert_allclose(data.extras["log_prob"], -np.log(2))
    assert "actions were stretched from the logs' bounds (-1 to 1)" in Ledger.of(data).lines()[-1]


def test_choices_cannot_be_stretched() -> None:
    choices = Dataset.from_arrays([[0.0]], [1], [1.0], [1], num_actions=2)
    with pytest.raises(SappError, match="actions are discrete, so there is nothing to rescale"):
        rescaled(choices, -2, 2)
