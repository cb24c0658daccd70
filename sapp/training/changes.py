"""What happens to members between two rows of metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from sapp.runs.events import Event, EventKind, RatioHealth, healths
from sapp.runs.members import Member, MemberId


class Changes:
    """Remembers how members were, and says what has changed."""

    def __init__(
        self, members: Sequence[Member], ids: Sequence[MemberId], alive: np.ndarray, events: Iterable[Event]
    ) -> None:
        """``events`` are those of the run so far: an estimator stays as it was last said to be."""
        self.alive = alive
        self._ids = ids
        self._reports = [member.algorithm.weights.reports_health for member in members]
        earlier = list(events)
        known = healths(earlier)
        self._health = [known.get(each, RatioHealth.RELIABLE) for each in ids]
        self._said = {(event.member, event.kind) for event in earlier}

    def found(self, step: int, findings: Sequence[EventKind | None]) -> list[Event]:
        """What is wrong with members' critics, each thing once per member."""
        new = [
            Event(step, member, kind)
            for member, kind in zip(self._ids, findings, strict=True)
            if kind is not None and (member, kind) not in self._said
        ]
        self._said |= {(event.member, event.kind) for event in new}
        return new

    def since(self, step: int, alive: np.ndarray, unreliable: np.ndarray, fallback: np.ndarray) -> list[Event]:
        """Events up to a step.

        Args:
            step: of the row.
            alive: whether each member is.
            unreliable: whether its estimator has been so for most of the row's steps.
            fallback: whether its weights have been 1 throughout.
        """
        found: list[Event] = []
        for i, member in enumerate(self._ids):
            health = RatioHealth.UNRELIABLE if unreliable[i] and self._reports[i] else RatioHealth.RELIABLE
            if self.alive[i] and not alive[i] and (member, EventKind.VALUE_STOPPED) not in self._said:
                found.append(Event(step, member, EventKind.DIVERGED))
            if health != self._health[i]:
                kind = EventKind.RATIO_RELIABLE
                if health is RatioHealth.UNRELIABLE:
                    kind = EventKind.RATIO_FALLBACK if fallback[i] else EventKind.RATIO_UNRELIABLE
                found.append(Event(step, member, kind))
            self._health[i] = health
        self.alive = alive
        return found
