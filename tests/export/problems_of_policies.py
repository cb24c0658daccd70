"""A problem in its own units, for the tests of exports."""

from __future__ import annotations

from sapp.runs.problem import Problem


def problem(discrete: bool, scaled: bool = True) -> Problem:
    offset, scale = ([1.0, 200.0, -3.0, 0.0, 5.0], [1.0, 50.0, 2.0, 0.1, 1.0]) if scaled else (None, None)
    low, high = ([0.0], [2.0]) if discrete else ([-2.0, 0.0, 1.0], [3.0, 10.0, 2.0])
    labels = ["a", "b", "c"] if discrete else None
    return Problem(
        "x", None, "f", None, None, 5, 3, low, high, 0, 0, 3 if discrete else None, labels, offset, scale,
    )  # fmt: skip
