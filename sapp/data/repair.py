"""What is done about logs as they come: each function repairs one thing and says so in a sentence, or refuses."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence

import numpy as np

from sapp.core.errors import SappError

CHOICES: dict[str, tuple[str, ...]] = {
    "action_kind": ("continuous", "discrete"),
    "missing": ("error", "fill", "drop"),
    "gaps": ("split", "cut", "keep", "error"),
    "scale": ("auto", "standard", "none"),
}
"""What the options of a column mapping may say; the first is the default (``action_kind``: by the column)."""

TRUE, FALSE = ("true", "yes", "y", "t", "1", "1.0"), ("false", "no", "n", "f", "0", "0.0")
REGULAR = 0.7
"""Share of steps in time that must be equal for the others to count as gaps."""
SPARSE = 0.5
"""Share of rows before the ends of episodes beyond which empty rewards are 0."""
MANY_CODES = 20
"""Codes of actions beyond which messages do not list them."""
FAR, UNEVEN = 100.0, 1_000.0
"""Features beyond this size, or with deviations this far apart, are standardised."""


def flags_of_text(values: Sequence[str | None], name: str, where: str) -> np.ndarray:
    """Yes and no in words as 0 and 1; None is NaN."""
    out = np.full(len(values), np.nan)
    for row, value in enumerate(values):
        if value is None:
            continue
        text = str(value).strip().lower()
        if text not in TRUE + FALSE:
            raise SappError(
                f"{where}: column {name!r} is {value!r} at row {row}; flags must be 0/1, true/false or yes/no"
            )
        out[row] = text in TRUE
    return out


def labels_of(
    values: Sequence[object], given: Sequence[str] | None, name: str, where: str
) -> tuple[np.ndarray, list[str]]:
    """Actions in words as numbers: the place in the given list, or in the sorted list of all that occur.

    Empty values are NaN. A whole number such as 7.0 also goes by "7".
    """
    known = [(row, value) for row, value in enumerate(values) if value is not None and value == value]
    labels = [str(each) for each in given] if given is not None else sorted({str(value) for _, value in known})
    number = {label: index for index, label in enumerate(labels)}
    out = np.full(len(values), np.nan)
    for row, value in known:
        text = str(value)
        place = number.get(text, number.get(code_text(value)) if isinstance(value, float) else None)
        if place is None:
            raise SappError(
                f"{where}: column {name!r} is {text!r} at row {row}, which action_labels does not list "
                f"({', '.join(labels[:10])}); add it or fix that row"
            )
        out[row] = place
    return (out if len(known) < len(values) else out.astype(np.int64)), labels


def code_text(value: float) -> str:
    """A number as a label: 7.0 is "7"."""
    return str(int(value)) if float(value).is_integer() else str(value)


def labels_advice(codes: Sequence[float]) -> str:
    """The line of a column mapping that makes these codes the actions, in words where there are many."""
    if len(codes) > MANY_CODES:
        return f"all {len(codes)} codes as action_labels"
    return f"action_labels = {json.dumps([code_text(code) for code in codes])}"


def codes_of(values: np.ndarray, name: str, where: str) -> int:
    """How many actions there are, where they are numbers from 0; NaN does not count."""
    if values.ndim == 2 and values.shape[1] > 1:
        raise SappError(f"{where}: column {name!r} is {values.shape[1]} wide; a discrete action is one number")
    flat = values.reshape(-1)
    known = np.flatnonzero(~np.isnan(flat))
    wrong = known[(flat[known] < 0) | (flat[known] != np.floor(flat[known]))]
    if len(wrong):
        advice = labels_advice(np.unique(flat[known]).tolist())
        raise SappError(
            f"{where}: column {name!r} is {flat[wrong[0]]} at row {wrong[0]}, but discrete actions are whole numbers "
            f"from 0; if these are codes, set {advice} in the column mapping"
        )
    return int(flat[known].max()) + 1 if len(known) else 1


def sparse_rewards(reward: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, int]:
    """Rewards with 0 for the empty ones before the ends of episodes, if most there are empty; and how many they are.

    A single empty reward among others is a hole in the log, not a 0: it stays empty.
    """
    empty = np.isnan(reward) & ~last
    if np.count_nonzero(empty) <= SPARSE * np.count_nonzero(~last):
        return reward, 0
    return np.where(empty, 0.0, reward), int(np.count_nonzero(empty))


def drop_copies(
    order: np.ndarray, code: np.ndarray, time: np.ndarray, columns: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, int, tuple[int, int] | None]:
    """Rows in order without exact copies (same episode, time and everything else).

    Returns the order, how many copies were left out, and the first two rows that share episode and time but differ
    otherwise (None if there are none).
    """
    same = (code[order][1:] == code[order][:-1]) & (time[order][1:] == time[order][:-1])
    if not same.any():
        return order, 0, None
    keep = np.ones(len(order), bool)
    for place in np.flatnonzero(same) + 1:
        row, before = order[place], order[place - 1]
        equal = all(_equal(values[row], values[before]) for values in columns.values())
        if not equal:
            return order, 0, (int(before), int(row))
        keep[place] = False
    return order[keep], int(np.count_nonzero(~keep)), None


def _equal(one: object, other: object) -> bool:
    first, second = np.asarray(one), np.asarray(other)
    if first.dtype.kind == "f":
        return bool(np.array_equal(first, second, equal_nan=True))
    return bool(np.array_equal(first, second))


def gap_rows(episode: np.ndarray, time: np.ndarray) -> tuple[np.ndarray, float | None]:
    """Rows before which steps are missing, and the usual step in time (None where times are irregular).

    Rows are sorted. Where at least seven in ten steps in time are equal, a longer one is a gap.
    """
    seconds = (
        time.astype("datetime64[us]").astype(np.int64) * 1e-6 if time.dtype.kind == "M" else time.astype(np.float64)
    )
    inside = episode[1:] == episode[:-1]
    steps = np.diff(seconds)[inside]
    if not len(steps):
        return np.zeros(0, np.int64), None
    usual = float(np.median(steps))
    if usual <= 0 or np.mean(np.abs(steps - usual) <= 1e-3 * usual) < REGULAR:
        return np.zeros(0, np.int64), None
    long = inside & (np.diff(seconds) > 1.5 * usual)
    return np.flatnonzero(long) + 1, usual


def split_at(episode: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Episode numbers [N] that change where the id does and, besides, before each of ``rows``."""
    change = np.concatenate([[False], episode[1:] != episode[:-1]])
    change[rows] = True
    return np.cumsum(change)


def rows_after(episode: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Which rows [N] lie at or after a gap of their episode."""
    gap = np.zeros(len(episode), bool)
    gap[rows] = True
    starts = np.concatenate([[True], episode[1:] != episode[:-1]])
    total = np.cumsum(gap)
    before = np.maximum.accumulate(np.where(starts, total - gap, 0))
    return total > before


def forward_fill(values: np.ndarray, episode: np.ndarray) -> tuple[np.ndarray, int]:
    """Missing numbers [N, O] replaced by the last known ones of the episode; leading ones by the first known.

    What an episode never knows stays missing. Returns the values and how many were filled.
    """
    out = values.copy()
    starts = np.concatenate([[0], np.flatnonzero(episode[1:] != episode[:-1]) + 1, [len(episode)]])
    filled = 0
    for first, last in itertools.pairwise(starts):
        part = out[first:last]
        for column in np.flatnonzero(np.isnan(part).any(0)):
            known = np.flatnonzero(~np.isnan(part[:, column]))
            if not len(known):
                continue
            missing = np.flatnonzero(np.isnan(part[:, column]))
            place = np.searchsorted(known, missing, "right") - 1
            part[missing, column] = part[known[np.maximum(place, 0)], column]
            filled += len(missing)
    return out, filled


def needs_scaling(observation: np.ndarray) -> str | None:
    """Why features should be standardised, in words; None where they need not be."""
    mean, std = np.abs(observation.mean(0, dtype=np.float64)), observation.std(0, dtype=np.float64)
    size = np.maximum(mean, std)
    if size.max() > FAR:
        return f"one is of size {size.max():.3g}"
    alive = std[std > 1e-6 * np.maximum(1.0, mean)]
    if len(alive) and alive.max() > UNEVEN * alive.min():
        return f"their deviations range from {alive.min():.3g} to {alive.max():.3g}"
    return None
