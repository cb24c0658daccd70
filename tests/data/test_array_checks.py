"""Checks of arrays: what is wrong is named by field, row and dimension."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.data.array_checks import (
    bounds,
    check_rows,
    checked,
    choices,
    chosen_actions,
    finite,
    flags,
    matrix,
    units,
    vector,
    within,
)

ONE, LOW = np.ones((2, 3), np.float32), np.full(3, -1, np.float32)


def test_values_take_their_final_types() -> None:
    assert matrix([1, 2], "x", "log").shape == (2, 1)
    assert vector(np.ones((3, 1), int), "x", "log").dtype == np.float32
    np.testing.assert_array_equal(flags([0, 1.0], "x", "log"), [False, True])
    np.testing.assert_array_equal(chosen_actions([[2.0], [0.0]], 3, "log"), np.array([2, 0], np.int32))
    assert choices(None, ["a", "b"], "log") == (2, ("a", "b"))
    low, high = bounds(-2, [1, 2, 3], 3, "log")
    assert (low.tolist(), high.tolist()) == ([-2, -2, -2], [1, 2, 3])


def test_overshoot_by_rounding_is_clipped() -> None:
    found = within(ONE * np.float32(1 + 5e-6), LOW, -LOW, "log")
    assert found.max() == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: finite(np.array([[1, 2], [3, np.nan], [np.inf, 0]]), "x", "log"),
         "log: x is nan at row 1, dimension 1 (2 such rows); remove or repair that episode"),
        (lambda: matrix(np.ones((2, 2, 2)), "x", "log"), "log: x has shape (2, 2, 2); it must be (rows, width)"),
        (lambda: vector(ONE, "x", "log"), "log: x has shape (2, 3); it must be (rows,) or (rows, 1)"),
        (lambda: flags([0, 2], "x", "log"), "log: x is 2 at row 1; flags must be 0 or 1"),
        (lambda: chosen_actions([0, 1.5], 3, "log"), "action is 1.5 at row 1; the 3 discrete actions are whole"),
        (lambda: choices(3, ["a", "b"], "log"), "2 action labels for num_actions 3; give one label per action"),
        (lambda: choices(None, ["a", "a"], "log"), "action label 'a' appears more than once"),
        (lambda: bounds(1, [2, 0.5, 3], 3, "log"), "action_low 1.0 is not below action_high 0.5 in dimension 1"),
        (lambda: within(1.5 * ONE, LOW, -LOW, "log"), "action is 1.5 at row 0, dimension 0, outside [-1, 1]"),
        (lambda: check_rows({"observation": ONE, "reward": np.ones(3)}, "log"),
         "reward has 3 rows but observation has 2; all fields need the same length"),
        (lambda: units([0.0], None, 1, "log"), "give observation_offset and observation_scale together"),
        (lambda: units([0.0], [0.0], 1, "log"), "observation_scale needs 1 numbers, scales above 0"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(SappError) as caught:
        call()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_discrete_actions_are_bounded_by_their_first_and_last_number() -> None:
    given = {"observation": ONE, "action": [2, 0], "reward": [1.0, 2.0], "terminal": [0, 1]}
    found = checked(given, {}, 4, ("a", "b", "c", "d"), -1, 1, "log")
    assert (found.low.tolist(), found.high.tolist()) == ([0], [3])
    assert (found.num_actions, found.labels) == (4, ("a", "b", "c", "d"))
