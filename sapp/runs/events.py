"""What can happen to a member while it trains: rows of events.csv."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sapp.core.errors import SappError
from sapp.runs.members import ID_COLUMNS, MemberId


class RatioHealth(StrEnum):
    """Whether a member's estimator of ratios passes its own checks."""

    RELIABLE = "reliable"
    UNRELIABLE = "unreliable"


class EventKind(StrEnum):
    """The ``kind`` column of events.csv."""

    DIVERGED = "diverged"
    VALUE_BEYOND = "value-beyond-limit"
    VALUE_STOPPED = "value-stopped"
    TARGETS_LOST = "targets-lost"
    RATIO_UNRELIABLE = "ratio-unreliable"
    RATIO_FALLBACK = "ratio-fallback"
    RATIO_RELIABLE = "ratio-reliable"

    @property
    def health(self) -> RatioHealth | None:
        """The state of the estimator from this event on; None where the event is about something else."""
        return _HEALTH.get(self)

    @property
    def sentence(self) -> str:
        """What happened, in words for the terminal and the report."""
        return _SENTENCES[self]


_HEALTH = {
    EventKind.RATIO_UNRELIABLE: RatioHealth.UNRELIABLE,
    EventKind.RATIO_FALLBACK: RatioHealth.UNRELIABLE,
    EventKind.RATIO_RELIABLE: RatioHealth.RELIABLE,
}
_SENTENCES = {
    EventKind.DIVERGED: "diverged: stopped at its last finite state, the others go on",
    EventKind.VALUE_BEYOND: "critic values are larger than rewards and discount allow: do not trust this member",
    EventKind.VALUE_STOPPED: "critic values are ten times what rewards and discount allow: stopped, the others go on",
    EventKind.TARGETS_LOST: "the critics no longer follow their targets (TD error): do not trust this member",
    EventKind.RATIO_UNRELIABLE: "ratio estimate unreliable",
    EventKind.RATIO_FALLBACK: "ratio estimate unreliable: weights are 1 until it is reliable again",
    EventKind.RATIO_RELIABLE: "ratio estimate reliable again",
}
EVENT_COLUMNS = ("step", *ID_COLUMNS, "kind")


@dataclass(frozen=True)
class Event:
    """Something that happened to a member at a step."""

    step: int
    member: MemberId
    kind: EventKind

    def row(self) -> dict[str, Any]:
        """As events.csv holds it."""
        return {"step": self.step, **self.member.row(), "kind": self.kind.value}

    @classmethod
    def of(cls, row: Mapping[str, str]) -> Event:
        """Read a row of events.csv back."""
        kind = row.get("kind")
        if kind not in set(EventKind):
            raise SappError(f"events.csv: 'kind' is {kind!r}; it must be one of {', '.join(EventKind)}")
        return cls(int(row["step"]), MemberId.of(row), EventKind(kind))


def healths(events: Iterable[Event]) -> dict[MemberId, RatioHealth]:
    """The last known state of the estimators that anything was said about."""
    return {event.member: event.kind.health for event in events if event.kind.health is not None}
