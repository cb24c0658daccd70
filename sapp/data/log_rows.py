"""The rows of a log on their way to a dataset: sorted, and repaired as the mapping says, all of it accounted for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from sapp.core.errors import SappError
from sapp.data.columns import Columns, named
from sapp.data.last_rows import last_of, settle_last_rows, wholly_missing
from sapp.data.ledger import Kind, Ledger, refuse_loss, reward_share
from sapp.data.repair import SPARSE, drop_copies, forward_fill, gap_rows, rows_after, sparse_rewards, split_at
from sapp.data.streams import late_starts
from sapp.data.table import Table

_FILLED = ("observation", "next_observation")
_NOT_NUMBERS = ("episode",)


@dataclass
class LogRows:
    """Arrays of N rows, by our names, and what must stay beside them when rows are moved or left out.

    Attributes:
        table: that they were read from.
        mapping: what means what, and which repairs are wanted.
        ledger: takes down what is done.
        arrays: by name; observation, action and reward at least.
        uses: what each used column is used as.
        extras: further arrays of N rows.
    """

    table: Table
    mapping: Columns
    ledger: Ledger
    arrays: dict[str, np.ndarray]
    uses: dict[str, str]
    extras: dict[str, np.ndarray] = field(default_factory=dict)
    time: np.ndarray | None = None
    """What orders the rows of an episode, where the mapping names it; known once rows are sorted."""
    row: np.ndarray = field(init=False)
    """Which row of the table each one is."""
    holes: np.ndarray = field(init=False)
    """Rows [N] after which steps are missing."""
    moved: str = ""
    """What to say of row numbers where rows were moved."""

    def __post_init__(self) -> None:
        self.row, self.holes = np.arange(self.table.rows), np.zeros(self.table.rows, bool)

    def repair(self) -> None:
        """Sort, and repair what can be."""
        self._sort()
        # before episodes are split at gaps: what comes before a gap is not the end that a sparse reward is given at
        self._repair_sparse_rewards()
        self._repair_gaps()
        settle_last_rows(self)
        self._repair_missing()
        if (density := self.arrays.pop("log_prob", None)) is not None:
            self.extras["log_prob"] = density

    def take(self, rows: np.ndarray) -> None:
        """Keep these rows, in this order."""
        self.arrays = {key: value[rows] for key, value in self.arrays.items()}
        self.extras = {key: value[rows] for key, value in self.extras.items()}
        self.time = None if self.time is None else self.time[rows]
        self.row, self.holes = self.row[rows], self.holes[rows]

    def drop(self, gone: np.ndarray, what: str, asked: bool) -> None:
        """Leave rows out and take it down."""
        episode = self.arrays.get("episode")
        self.ledger.say(
            Kind.DROPPED, what, rows=int(gone.sum()), reward=reward_share(self.arrays["reward"], gone), asked=asked,
            episodes=0 if episode is None else len(np.unique(episode[gone])),
        )  # fmt: skip
        self.take(np.flatnonzero(~gone))

    def _sort(self) -> None:
        """Bring episodes together, in time; leave out exact copies of rows."""
        episode, mapping = self.arrays.get("episode"), self.mapping
        if episode is None or mapping.one_row_episodes:
            return
        _, first, code = np.unique(episode, return_index=True, return_inverse=True)
        runs = 1 + np.count_nonzero(code[1:] != code[:-1])
        if mapping.time is None and len(first) < runs <= 0.2 * len(code):
            self.ledger.say(
                Kind.WARNING,
                f"{runs} runs of rows share {len(first)} ids of {mapping.episode or 'episodes'}, and each id's rows "
                f"are read as one episode, in the order of the file: if an id is used again for another episode, give "
                f"each its own; else map what orders them (--map time=NAME)",
            )
        if mapping.time is None:
            order = np.argsort(first[code], kind="stable")
        else:
            time = self.time = self.table.times(mapping.time)
            order = np.lexsort((time, code))
            kept, copies, conflict = drop_copies(order, code, time, {**self.arrays, **self.extras})
            if conflict is not None:
                before, row = conflict
                date = "; where clocks were set back, log UTC" if time.dtype.kind == "M" else ""
                raise SappError(
                    f"{self.table.where}: {mapping.episode} {episode[row]} has {mapping.time} {time[row]} twice, in "
                    f"row {before} and row {row}, which differ; give each episode an id of its own, correct the rows, "
                    f"or map another time column{date}"
                )
            if copies:
                gone = np.ones(len(order), bool)
                gone[kept] = False
                self.ledger.say(Kind.DROPPED, f"{copies} exact copies of rows were left out", rows=copies)
                order = kept
        if np.any(np.diff(order) < 0):
            self.moved = " (rows counted after sorting by episode)"
            who = next((name for name, use in self.uses.items() if use == "who acts"), None)
            by = " and ".join(name for name in (mapping.episode, who, mapping.time) if name)
            self.ledger.say(Kind.READ, f"rows were sorted by {by}")
        elif len(order) < len(self.row):
            self.moved = " (rows counted without copies)"
        self.take(order)
        if self.time is not None:
            first = self.time[np.append(True, self.arrays["episode"][1:] != self.arrays["episode"][:-1])]
            self.ledger.entries += late_starts(str(mapping.time), first)

    def _repair_gaps(self) -> None:
        """Missing steps in time, by the mapping's choice."""
        mapping = self.mapping
        episode, what = self.arrays.get("episode"), mapping.gaps or "split"
        if episode is None or self.time is None or what == "keep":
            return
        rows, usual = gap_rows(episode, self.time)
        if usual is None and np.any(episode[1:] == episode[:-1]):
            self.ledger.say(Kind.READ, f"{mapping.time} goes on in uneven steps: every row counts as one step")
        if not len(rows):
            return
        row = int(rows[0])
        count = len(np.unique(episode[rows]))
        place = (
            f"{len(rows)} gaps in time in {count} episodes (the first before row {self.row[row]}, "
            f"{mapping.episode} {episode[row]}, {mapping.time} {self.time[row]}; steps are usually {usual:g} apart)"
        )
        if what == "error":
            raise SappError(f"{self.table.where}: {place}; fix them, or choose gaps = 'split', 'cut' or 'keep'")
        if what == "cut":
            gone = rows_after(episode, rows)
            self.holes[rows - 1] = True
            # the step before the gap has no successor in the log: the episode ends there without a terminal
            self.drop(gone, f"{place}: what follows a gap was cut off, {np.count_nonzero(gone)} rows", asked=True)
            return
        if mapping.gaps is None and "next_observation" not in self.arrays:
            before = np.isin(np.arange(len(episode)), rows - 1)
            refuse_loss(
                self.table.where, f"{place}: the rows before them would be dropped",
                "say what is meant: gaps = 'split', 'cut' or 'keep' (--map gaps=split)",
                reward_share(self.arrays["reward"], before), 0,
            )  # fmt: skip
        self.holes[rows - 1] = True
        self.ledger.say(
            Kind.CHANGED,
            f"{place}: episodes were split there; what follows a gap counts as an episode of its own",
            rows=len(rows), episodes=count, asked=mapping.gaps is not None,
        )  # fmt: skip
        self.arrays["episode"] = split_at(episode, rows)

    def _repair_sparse_rewards(self) -> None:
        """Rewards that are logged at the ends of episodes, and empty on most rows before, are 0 there."""
        reward = self.arrays["reward"]
        if reward.dtype.kind != "f" or reward.ndim != 1:
            return
        last = np.zeros(len(reward), bool)
        last[-1] = True
        if "episode" in self.arrays:
            last[:-1] |= self.arrays["episode"][1:] != self.arrays["episode"][:-1]
        else:
            for key in ("terminal", "done", "timeout"):
                if key in self.arrays:
                    last |= self.arrays[key] == 1
        self.arrays["reward"], count = sparse_rewards(reward, last)
        if count:
            self.ledger.say(
                Kind.CHANGED, f"{count} empty rewards before the ends of episodes were taken as 0", rows=count
            )

    def _repair_missing(self) -> None:
        """Empty values, by the mapping's choice."""
        what = self.mapping.missing or "error"
        episode = self.arrays.get("episode")
        if episode is None and what != "error":
            raise SappError(
                f"{self.table.where}: missing = {what!r} needs an episode column; name it, or fix the empty values"
            )
        if episode is not None and what == "fill":
            for key in _FILLED:
                if key in self.arrays:
                    unknown = wholly_missing(self.arrays[key]) & last_of(episode) & (key == "next_observation")
                    self.arrays[key], filled = forward_fill(self.arrays[key], episode)
                    self.arrays[key][unknown] = np.nan  # what followed the last step is no repetition of it
                    filled -= int(unknown.sum()) * self.arrays[key][0].size
                    if filled:
                        self.ledger.say(
                            Kind.CHANGED, f"{filled} empty values of {key} were filled with the last known ones",
                            rows=filled, asked=True,
                        )  # fmt: skip
        if episode is None or what != "drop":
            self._refuse_missing()
            return
        bad = np.zeros(len(episode), bool)
        for key, value in self.arrays.items():
            if key not in _NOT_NUMBERS:
                bad |= _missing(value).any(1)
        if bad.any():
            lost = np.unique(episode[bad])
            gone = np.isin(episode, lost)
            if gone.all():
                raise SappError(f"{self.table.where}: every episode has empty values; fix them, nothing would be left")
            self.drop(
                gone,
                f"{len(lost)} of {len(np.unique(episode))} episodes were dropped for empty values, "
                f"{np.count_nonzero(gone)} rows (the first empty value is at row {self.row[np.argmax(bad)]})",
                asked=True,
            )

    def _refuse_missing(self) -> None:
        """Raise at the first empty value that is left."""
        for key, value in self.arrays.items():
            missing = _missing(value)
            if key in _NOT_NUMBERS or not missing.any():
                continue
            row, dimension = (int(i) for i in np.argwhere(missing)[0])
            names = named(getattr(self.mapping, key))
            name = names[0] if len(names) == 1 else self._column_at(names, dimension)
            fix = "; fix it, or choose missing = 'fill' or 'drop' (--map missing=fill)"
            if self.mapping.missing == "fill" or key not in _FILLED:
                fix = " and cannot be filled; fix it, or choose missing = 'drop' (--map missing=drop): such episodes go"
            if key in ("terminal", "done", "timeout") and missing.mean() > SPARSE:
                fix = ", as in most rows; write 0 where empty means no"
            raise SappError(f"{self.table.where}: column {name!r} is empty or NaN at row {self.row[row]}{fix}")

    def _column_at(self, names: Sequence[str], dimension: int) -> str:
        """The column that holds a dimension of a vector; a column of lists holds several."""
        widths = [1 if self.table.is_text(name) else self.table.numbers(name).reshape(self.table.rows, -1).shape[1]
                  for name in names]  # fmt: skip
        return names[min(int(np.searchsorted(np.cumsum(widths), dimension, "right")), len(names) - 1)]


def _missing(values: np.ndarray) -> np.ndarray:
    """Which numbers [N, width] are missing."""
    if values.dtype.kind != "f":
        return np.zeros((len(values), 1), bool)
    return np.isnan(values).reshape(len(values), -1)
