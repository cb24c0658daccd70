"""What happened to logs on the way in: every column used or not, every row kept, changed or dropped, and why.

A ``Ledger`` is kept with the dataset (``provenance["ledger"]``), printed by ``sapp data check`` and ``sapp data show``,
and stored with every run and exported policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from sapp.core.decode import decode, shown
from sapp.core.errors import SappError

SHARE = 0.01
"""Share of the reward, or of the episodes, that may be lost without anyone having asked for it."""


class Kind(StrEnum):
    """What an entry is about."""

    READ = "read as"
    CHANGED = "changed"
    DROPPED = "dropped"
    WARNING = "warning"


@dataclass(frozen=True)
class Column:
    """What became of a column (or array) of the logs.

    Attributes:
        name: in the logs.
        use: what it is taken for ("reward", "observation 2 to 4"), or None where it is not used.
        note: why it is not used, or how it was read.
    """

    name: str
    use: str | None
    note: str = ""


@dataclass(frozen=True)
class Entry:
    """One thing that was done to rows, or that is worth saying about them.

    Attributes:
        kind: what it is about.
        what: a sentence.
        rows: how many rows.
        episodes: how many episodes these rows are of.
        reward: share of the log's absolute reward that is on them, 0 to 1.
        asked: whether an option asked for it.
    """

    kind: Kind
    what: str
    rows: int = 0
    episodes: int = 0
    reward: float = 0.0
    asked: bool = False

    def __str__(self) -> str:
        return f"{self.what}{self._share()}"

    def _share(self) -> str:
        if self.kind is not Kind.DROPPED or self.reward == 0:
            return ""
        return f" ({self.reward:.2g} of the reward)" if self.reward < 0.001 else f" ({self.reward:.1%} of the reward)"


@dataclass(frozen=True)
class _Parts:
    """A ledger as JSON holds it."""

    rows: int
    columns: list[dict[str, Any]]
    entries: list[dict[str, Any]]


@dataclass
class Ledger:
    """The account of a load; loaders fill it in as they go.

    Attributes:
        rows: how many were read.
        columns: what became of each.
        entries: what was done, in order.
    """

    rows: int = 0
    columns: list[Column] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    def say(self, kind: Kind, what: str, **facts: Any) -> None:
        """Add an entry."""
        self.entries.append(Entry(kind, what, **facts))

    def lines(self, *kinds: Kind) -> list[str]:
        """The sentences of entries of these kinds, or of all but warnings."""
        wanted = kinds or (Kind.READ, Kind.CHANGED, Kind.DROPPED)
        return [str(each) for each in self.entries if each.kind in wanted]

    @property
    def dropped(self) -> int:
        """How many of the rows that were read are not in the dataset."""
        return sum(each.rows for each in self.entries if each.kind is Kind.DROPPED)

    @property
    def used(self) -> list[Column]:
        """Columns that are in the dataset."""
        return [each for each in self.columns if each.use is not None]

    @property
    def unused(self) -> list[Column]:
        """Columns that were read and are not in the dataset."""
        return [each for each in self.columns if each.use is None]

    def to_json(self) -> dict[str, Any]:
        """The ledger as JSON values, for a dataset's provenance."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Ledger:
        """The ledger from what ``to_json`` gave."""
        parts = decode(_Parts, content, "the ledger")
        columns = [decode(Column, each, "a column of the ledger") for each in parts.columns]
        entries = []
        for each in parts.entries:
            if each.get("kind") not in set(Kind):
                raise SappError(f"an entry of the ledger is {shown(each.get('kind'))}; use {', '.join(Kind)}")
            entries.append(decode(Entry, {**each, "kind": Kind(each["kind"])}, "an entry of the ledger"))
        return cls(parts.rows, columns, entries)

    @classmethod
    def of(cls, dataset: HasProvenance) -> Ledger:
        """The ledger of a dataset; of one that was made in memory, an empty one with its rows."""
        content = dataset.provenance.get("ledger")
        return cls(len(dataset.reward)) if content is None else cls.from_json(content)

    def text(self) -> list[str]:
        """Everything in lines, for a terminal or a card."""
        out = [f"rows: {self.rows:,} read, {self.dropped:,} dropped, {self.rows - self.dropped:,} kept"]
        if self.used:
            out.append("columns used: " + "; ".join(f"{each.name} as {each.use}" for each in self.used))
        if self.unused:
            out.append(
                "columns not used: "
                + "; ".join((each.name or "''") + (f" ({each.note})" if each.note else "") for each in self.unused)
            )
        return out + [f"{each.kind}: {each}" for each in self.entries if each.kind is not Kind.WARNING]


class HasProvenance(Protocol):
    """A dataset of vectors or of frames, as far as a ledger needs it."""

    @property
    def provenance(self) -> dict[str, Any]:
        """Where the data came from, with the ledger of what was done to them."""

    @property
    def reward(self) -> np.ndarray:
        """The reward of each row, whose number is what counts here."""


def reward_share(reward: np.ndarray, rows: np.ndarray) -> float:
    """Share of the absolute reward that is on some rows; empty rewards count as 0.

    Args:
        reward: [N].
        rows: bool [N].
    """
    size = np.abs(np.nan_to_num(np.asarray(reward, np.float64).reshape(len(rows), -1)[:, 0]))
    total = float(size.sum())
    return float(size[rows].sum()) / total if total > 0 else 0.0


def refuse_loss(where: str, what: str, cure: str, reward: float, episodes: float) -> None:
    """Raise where something that nobody asked for would lose more than ``SHARE``.

    Args:
        where: what error messages call the logs.
        what: would happen, as the start of a sentence.
        cure: what to do instead.
        reward: share of the reward that would go.
        episodes: share of the episodes that would go.
    """
    if max(reward, episodes) <= SHARE:
        return
    lost = [f"{share:.3g} % of the {name}" for share, name in ((100 * reward, "reward"), (100 * episodes, "episodes"))
            if share > 100 * SHARE]  # fmt: skip
    raise SappError(f"{where}: {what}, and with that {' and '.join(lost)}; {cure}")


def positions(first: int, width: int, role: str) -> str:
    """Where a column went: "observation 2", "observation 2 to 4"."""
    return f"{role} {first}" if width == 1 else f"{role} {first} to {first + width - 1}"


def listed(names: Sequence[str], most: int = 20) -> str:
    """Names with commas, cut where there are many."""
    return ", ".join(map(str, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")
