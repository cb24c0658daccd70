"""Where episodes begin in logs that say so by no id: a counter that starts again, or several who act by turns."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from sapp.data.ledger import Entry, Kind

_WHO = re.compile(r"(agent|env|environment|worker|actor|player|robot|vehicle)(_?(id|idx|index|number|rank|name))?")
_FIRST = re.compile(r"is_first|first_step|(is_)?episode_starts?|start_of_episode|is_start")


def names_who_acts(name: str) -> bool:
    """Whether a column, by its name, says which agent or copy of an environment a row is of.

    Args:
        name: of the column.
    """
    return _WHO.fullmatch(name.strip().lower()) is not None


def marks_starts(name: str) -> bool:
    """Whether a column, by its name, marks the first rows of episodes.

    Args:
        name: of the column.
    """
    return _FIRST.fullmatch(name.strip().lower()) is not None


def codes(values: np.ndarray) -> np.ndarray:
    """Values [N] of any kind as numbers in the order of their first rows.

    Args:
        values: numbers or text.
    """
    plain = values.reshape(len(values), -1)[:, 0]
    plain = plain.astype(str) if plain.dtype.kind == "O" else plain
    _, first, code = np.unique(plain, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[code]


def changes_within(code: np.ndarray, ends: np.ndarray, episode: np.ndarray | None) -> bool:
    """Whether who acts changes before an episode has ended.

    Args:
        code: [N], who acts.
        ends: bool [N], rows that are marked as the last of an episode.
        episode: [N] ids, where there are some.
    """
    if episode is not None:
        ids = codes(episode)
        return len(np.unique(ids * (int(code.max(initial=0)) + 1) + code)) > len(np.unique(ids))
    return bool(np.any((code[1:] != code[:-1]) & ~ends[:-1]))


def goes_on(
    code: np.ndarray, episode: np.ndarray | None, time: np.ndarray | None, observation: np.ndarray,
    after: np.ndarray | None,
) -> bool:  # fmt: skip
    """Whether an episode goes on where who acts changes, as in a hand-over, and no two act by turns.

    Args:
        code: [N], who acts.
        episode: [N] ids, where there are some.
        time: [N], where the log has it: those who act by turns share it.
        observation: [N, O].
        after: [N, O], the next observations, where the log has them.
    """
    if episode is not None and time is not None:
        when = codes(episode).astype(np.int64) * (len(time) + 1) + codes(time)
        return len(np.unique(when)) == len(when)
    if after is None or after.shape != observation.shape:
        return False
    change = np.flatnonzero(code[1:] != code[:-1])
    own = np.array([np.argmax(code[row + 1 :] == code[row]) + row + 1 for row in change[:1_000]], int)
    rows = change[:1_000]
    next_row, next_own = (np.all(np.isclose(after[rows], observation[to]), axis=1).mean() for to in (rows + 1, own))
    return bool(next_row > next_own)


def ids_of(code: np.ndarray, ends: np.ndarray, episode: np.ndarray | None) -> np.ndarray:
    """Ids [N] of the episodes of each who acts: the log's, or from one marked end to the next.

    Args:
        code: [N], who acts.
        ends: bool [N], rows that are marked as the last of an episode.
        episode: [N] ids, where there are some.
    """
    part = np.zeros(len(code), np.int64)
    if episode is not None:
        part = codes(episode)
    else:
        for each in np.unique(code):
            rows = np.flatnonzero(code == each)
            part[rows] = np.cumsum(np.append(False, ends[rows][:-1]))
    return codes(part * (int(code.max(initial=0)) + 1) + code)


def restarts(time: np.ndarray) -> np.ndarray | None:
    """Rows [N] at which a counter starts again from its lowest value; None where it is no such counter.

    Args:
        time: [N], increasing within an episode.
    """
    if len(time) < 2:
        return None
    back = np.append(False, time[1:] <= time[:-1])
    often = np.count_nonzero(back) > len(time) / 2
    return back if back.any() and not often and bool(np.all(time[back] == time.min())) else None


def late_starts(name: str, first: np.ndarray) -> list[Entry]:
    """A warning of episodes that begin later than others do by a counter of steps, whose first rows are missing.

    Args:
        name: of the counter.
        first: [E], what it says in the first row of each episode.
    """
    if first.dtype.kind not in "iuf" or len(first) < 3:
        return []
    late = first > first.min()
    if not late.any() or np.mean(late) > 0.3:
        return []
    return [
        Entry(
            Kind.WARNING,
            f"{np.count_nonzero(late)} of {len(first)} episodes begin at {name} {first[late].min()} or later, the "
            f"others at {first.min()}: their first rows are missing, but where they begin counts as a start; leave "
            f"them out if starts matter",
        )
    ]


def looks_like_ids(values: np.ndarray, ends: np.ndarray) -> bool:
    """Whether a column keeps one value over each of several runs of rows, and changes where no end is marked.

    Args:
        values: [N], of any kind.
        ends: bool [N], rows that are marked as the last of an episode.
    """
    if values.ndim != 1 or values.dtype.kind not in "iuO" or len(values) < 6:
        return False
    code = codes(values)
    change = code[1:] != code[:-1]
    runs = 1 + int(np.count_nonzero(change))
    return 3 <= runs == int(code.max()) + 1 <= len(code) / 2 and bool(np.any(change & ~ends[:-1]))


def looks_like_successor(values: np.ndarray, observation: np.ndarray) -> bool:
    """Whether most rows of a column hold the next row's observation.

    Args:
        values: [N, ...], of any kind.
        observation: [N, O].
    """
    if values.dtype.kind not in "biuf" or values.ndim < 2 or len(values) < 6:
        return False
    flat = values.reshape(len(values), -1)
    if flat.shape[1] != observation.shape[1]:
        return False
    ahead, still = (np.all(np.isclose(flat[:-1], each, rtol=1e-5, atol=1e-6), axis=1)
                    for each in (observation[1:], observation[:-1]))  # fmt: skip
    return bool(np.mean(ahead & ~still) > 0.5)


def first_that(names: Sequence[str], used: Sequence[str]) -> list[str]:
    """Columns that say who acts and are not used otherwise.

    Args:
        names: of all columns.
        used: those that have a use, or mean nothing.
    """
    return [name for name in names if names_who_acts(name) and name not in used]
