"""What tells of episodes without being their id, used on the way from a table to a dataset: see ``streams``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from sapp.data.columns import Columns
from sapp.data.field_names import detect
from sapp.data.ledger import Kind, Ledger
from sapp.data.streams import (
    changes_within,
    codes,
    first_that,
    goes_on,
    ids_of,
    late_starts,
    looks_like_ids,
    looks_like_successor,
    marks_starts,
    restarts,
)
from sapp.data.table import FILE, Table, empty


class Log(Protocol):
    """A table's columns as arrays of N rows, by our names, as far as they have been read."""

    table: Table
    mapping: Columns
    ledger: Ledger
    arrays: dict[str, np.ndarray]
    uses: dict[str, str]


def tell_episodes_apart(log: Log, only_warn: bool) -> None:
    """Use what tells of episodes without being their id: who acts, where several do by turns; a counter.

    Args:
        log: as far as it has been read.
        only_warn: whether the mapping says which columns are used, so that others may only be spoken of.
    """
    if log.mapping.one_row_episodes:
        return
    if log.mapping.episode == FILE and len(log.table.files) > 1:  # a file may hold several
        log.arrays["episode"] = ids_of(codes(log.table.column(FILE)), _marked_ends(log), None)
    for name in first_that(log.table.names, [*log.uses, *log.mapping.ignore]):
        who = log.table.glance(name)
        if who is None or who.dtype.kind not in "biufO" or who.size != log.table.rows:
            continue
        code, ends, episode = codes(who), _marked_ends(log), log.arrays.get("episode")
        if not changes_within(code, ends, episode):
            continue
        time = None if log.mapping.time is None else log.table.glance(log.mapping.time)
        after = log.arrays.get("next_observation")
        handed_over = goes_on(code, episode, time, log.arrays["observation"], after)
        if handed_over and time is None:
            continue  # the next observations say so
        what = f"column {name!r} changes within episodes: {int(code.max()) + 1} act by turns"
        if only_warn or handed_over:
            why = "every time occurs once, so episodes go on" if handed_over else "the mapping does not use it"
            log.ledger.say(
                Kind.WARNING,
                f"{what}, and {why}: if several act at once, give each one's steps episode ids of their own, or "
                f"list it in ignore",
            )
            continue
        log.arrays["episode"] = ids_of(code, ends, episode)
        log.uses[name] = "who acts"
        log.ledger.say(Kind.READ, f"{what}, so each one's rows are episodes of their own", rows=log.table.rows)
    _find_restarts(log, only_warn)
    _check_files(log)


def _check_files(log: Log) -> None:
    """Say where episodes go on from file to file, as nothing tells whether they do."""
    files = [rows for rows in log.table.files if rows]
    told = {"episode", "timeout", "next_observation"} & set(log.arrays) or log.mapping.max_episode_steps is not None
    if len(files) < 2 or told:
        return
    last = np.cumsum(files)[:-1] - 1
    if open_at := int(np.count_nonzero(~_marked_ends(log)[last])):
        log.ledger.say(
            Kind.WARNING,
            f"{open_at} of {len(last) + 1} files stop within an episode, which goes on in the next file: if every file "
            f"begins a new one, say so (--map episode={FILE})",
        )


def _find_restarts(log: Log, only_warn: bool) -> None:
    """A counter of steps tells where episodes begin, where nothing else does."""
    if "episode" in log.arrays:
        return
    free = [name for name in log.table.names if name not in log.uses and name not in log.mapping.ignore]
    if not only_warn and _find_first_rows(log, [name for name in free if marks_starts(name)]):
        return
    for name in detect(free, log.table.where, ("time",)).get("time", ()):
        time, ends = log.table.glance(name), _marked_ends(log)
        if time is None or time.dtype.kind not in "iufM" or time.size != log.table.rows or empty(time).any():
            continue
        time = time.reshape(-1)
        if _counts_steps(time):
            log.ledger.entries += late_starts(name, time[np.append(True, ends[:-1] | (time[1:] <= time[:-1]))])
        back = np.append(False, time[1:] <= time[:-1])
        if not np.any(back[1:] & ~ends[:-1]):
            continue
        start = restarts(time)
        if start is not None and not only_warn:
            log.arrays["episode"] = np.cumsum(start | np.append(False, ends[:-1]))
            log.uses[name] = "where episodes begin"
            log.ledger.say(
                Kind.READ,
                f"column {name!r} starts again at {time.min()} in {np.count_nonzero(start)} rows, "
                f"{np.count_nonzero(start[1:] & ~ends[:-1])} of them after rows that are not marked as ends: "
                f"episodes begin there",
            )
            continue
        log.ledger.say(
            Kind.WARNING,
            f"column {name!r} does not go on in {np.count_nonzero(back[1:] & ~ends[:-1])} rows in the middle of "
            f"episodes: rows are out of order, or episodes begin there; name the column of episodes "
            f"(--map episode=NAME), or list {name!r} in ignore",
        )


def _counts_steps(time: np.ndarray) -> bool:
    """Whether a column goes up by 1 from row to row, but where it starts again."""
    return time.dtype.kind in "iu" and bool(np.mean(np.diff(time) == 1) > 0.5)


def _find_first_rows(log: Log, names: Sequence[str]) -> bool:
    """Use a flag that is set on the first row of every episode."""
    for name in names:
        values = log.table.glance(name)
        if values is None or values.dtype.kind not in "biuf" or values.size != log.table.rows:
            continue
        if set(np.unique(values)) != {0, 1}:
            continue
        start, ends = values.reshape(-1) == 1, _marked_ends(log)
        log.uses[name] = "where episodes begin"
        if not np.any(start[1:] & ~ends[:-1]):
            return True
        log.arrays["episode"] = np.cumsum(start | np.append(False, ends[:-1]))
        log.ledger.say(
            Kind.READ,
            f"column {name!r} marks {np.count_nonzero(start)} first rows of episodes, "
            f"{np.count_nonzero(start[1:] & ~ends[:-1])} of them after rows that are not marked as ends",
        )
        return True
    return False


def _marked_ends(log: Log) -> np.ndarray:
    """Rows [N] that the log marks as the last of an episode."""
    ends = np.zeros(log.table.rows, bool)
    for key in ("terminal", "done", "timeout"):
        if key in log.arrays and log.arrays[key].size == len(ends):  # others are refused later
            ends |= log.arrays[key].reshape(-1) == 1
    return ends


def looks_like_field(log: Log, name: str) -> str | None:
    """What an unused column seems to be by what it holds, where that would change what the data mean.

    Args:
        log: as far as it has been read.
        name: of the column.
    """
    ids, after = "episode" not in log.arrays, "next_observation" not in log.arrays
    if not (ids and "timeout" not in log.arrays) and not after:
        return None
    values = log.table.glance(name)
    if values is None or len(values) != log.table.rows:
        return None
    if ids and "timeout" not in log.arrays and looks_like_ids(values, _marked_ends(log)):
        return "keeps one value over runs of rows and changes where no end is marked: is it episode?"
    if after and looks_like_successor(values, log.arrays["observation"]):
        return "holds the next row's observation in most rows: is it next_observation?"
    return None
