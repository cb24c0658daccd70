"""RLDS's steps: the last row of an episode holds the last observation and nothing else that means anything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sapp.data.columns import Columns
from sapp.data.field_names import detect
from sapp.data.ledger import Kind, Ledger, reward_share
from sapp.data.table import Table

_MARKS = ("is_first", "is_last", "is_terminal")


def steps_of_rlds(table: Table, columns: Columns, ledger: Ledger) -> tuple[Table, Columns]:
    """One row per step, its next observation beside it, and the mapping of that; others come back as they are.

    Args:
        table: of rows, where RLDS marks the first and the last of each episode.
        columns: what the columns were said to mean.
        ledger: takes down what was done.
    """
    free = [name for name in table.names if name not in columns.ignore]
    if columns.names_all or columns.next_observation or not set(_MARKS) <= set(free):
        return table, columns
    names = detect(free, table.where, ("observation", "next_observation", "reward"))
    observation = columns.observation or names.get("observation", ())
    reward = columns.reward or next(iter(names.get("reward", ())), None)
    if not observation or reward is None or "next_observation" in names:
        return table, columns
    first, last = (np.asarray(table.flags(name, ledger)).reshape(-1) == 1 for name in _MARKS[:2])
    rows = np.flatnonzero(~last)
    if not (len(rows) and len(first) == table.rows and first[0] and last[-1] and np.array_equal(first[1:], last[:-1])):
        return table, columns
    if np.any(share := table.numbers(reward).reshape(-1)[last]):
        ledger.say(
            Kind.WARNING,
            f"{np.count_nonzero(share)} rows marked is_last have a reward, where RLDS has none: they are taken for "
            f"steps like others; if rewards are those of the step before, move them up by a row",
        )
        return table, columns
    after = {f"next {name}": name for name in observation}

    def read(name: str) -> np.ndarray:
        if name in after:
            return table.column(after[name])[rows + 1]
        return table.column(name)[rows + 1 if name in _MARKS[1:] else rows]

    ledger.say(
        Kind.DROPPED,
        f"{np.count_nonzero(last)} rows marked is_last hold an episode's last observation only, as in RLDS: it is the "
        f"next observation of the row before",
        rows=int(np.count_nonzero(last)), episodes=int(np.count_nonzero(last)),
        reward=reward_share(table.numbers(reward), last),
    )  # fmt: skip
    found = Table([*table.names, *after], len(rows), read, table.where)
    return found, replace(columns, next_observation=tuple(after))
