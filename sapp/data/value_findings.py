"""Values that stand for something else: codes for missing ones, rows never filled, names written in two ways."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sapp.data.dataset import Dataset
from sapp.data.finding import Finding, Sure

CODES = (-1e6, -99999, -9999, -999, -99, 999, 9999, 99999, 1e6)
"""Numbers that often stand for a missing value."""
_SAMPLE = 200_000
"""Rows that are looked at."""
_DISTINCT = 10
"""A feature with fewer other values is no measurement."""


def codes_of_missing(data: Dataset) -> Iterator[Finding]:
    """Numbers such as -999 that stand for a missing value."""
    seen = data.raw(data.observation[:: max(1, data.size // _SAMPLE)])
    for i in range(data.observation_size):
        value, count = _code(seen[:, i].astype(np.float64))
        if count:
            yield Finding(
                f"feature {i} is {value:g} in {count} row{'s' if count > 1 else ''}, far from all its other values",
                Sure.LIKELY if value in CODES else Sure.POSSIBLE,
                "if that stands for a missing value, leave these cells empty (and say missing = 'fill' or 'drop')",
            )  # fmt: skip


def _code(values: np.ndarray) -> tuple[float, int]:
    """The lowest or highest value, if it is further from the others than they are apart, and how often it occurs."""
    for value in (float(values.min()), float(values.max())):
        others = values[values != value]
        count = len(values) - len(others)
        # standardised and back, -999 is nearly so
        known = next((code for code in CODES if np.isclose(value, code, rtol=1e-4)), None)
        if count > len(others) or (count < 2 and known is None) or len(np.unique(others[:1_000])) < _DISTINCT:
            continue
        if np.abs(others - value).min() > np.ptp(others):
            return known or value, count
    return 0.0, 0


def never_filled(data: Dataset) -> Iterator[Finding]:
    """Rows of zeros at the end, as in a buffer that is larger than what was put in."""
    action = data.action.reshape(data.size, -1)
    held = data.raw(data.observation).any(axis=1) | data.raw(data.next_observation).any(axis=1)
    held |= action.any(axis=1) | (data.reward != 0) | data.terminal
    empty = data.size - 1 - int(np.flatnonzero(held)[-1]) if held.any() else 0
    if empty >= 10:
        yield Finding(
            f"the last {empty} rows are zero throughout", Sure.LIKELY,
            "they look like the part of a buffer that was never filled: leave them out",
        )  # fmt: skip


def bare_ends(data: Dataset) -> Iterator[Finding]:
    """Last rows that hold nothing but the last observation."""
    bare = ~data.action.reshape(data.size, -1).any(axis=1) & (data.reward == 0)
    ends = data.episode_ends[data.terminal[data.episode_ends]]
    if len(ends) >= 5 and bare[ends].all() and bare.sum() - len(ends) < 0.3 * (data.size - len(ends)):
        yield Finding(
            f"action and reward are 0 in the last rows of all {len(ends)} episodes that end", Sure.POSSIBLE,
            "if these rows hold the last observation only, leave action and reward empty there",
        )  # fmt: skip


def names_alike(data: Dataset) -> Iterator[Finding]:
    """Actions whose names differ in capitals or blanks only."""
    groups: dict[str, list[str]] = {}
    for label in data.action_labels or ():
        groups.setdefault(" ".join(label.lower().split()), []).append(repr(label))
    if several := [", ".join(group) for group in groups.values() if len(group) > 1]:
        yield Finding(
            f"actions differ in capitals or blanks only: {'; '.join(several[:5])}", Sure.LIKELY,
            "each counts as an action of its own: write one action in one way",
        )  # fmt: skip
