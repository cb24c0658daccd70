"""Events: rows of events.csv and what they say of an estimator."""

from __future__ import annotations

import pytest

from sapp.core.errors import SappError
from sapp.runs.events import EVENT_COLUMNS, Event, EventKind, RatioHealth, healths
from sapp.runs.members import MemberId

ONE, TWO = MemberId("cql", "hopper/medium", 0), MemberId("cql", "hopper/medium", 1)


@pytest.mark.parametrize("kind", EventKind)
def test_an_event_is_read_back_from_its_row(kind: EventKind) -> None:
    event = Event(30, ONE, kind)
    assert tuple(event.row()) == EVENT_COLUMNS
    assert Event.of({name: str(value) for name, value in event.row().items()}) == event
    assert kind.sentence


def test_another_kind_is_refused() -> None:
    with pytest.raises(SappError, match=r"events.csv: 'kind' is 'sick'; it must be one of diverged, "):
        Event.of({"step": "1", **{name: str(value) for name, value in ONE.row().items()}, "kind": "sick"})


def test_the_last_word_about_an_estimator_counts() -> None:
    events = [
        Event(10, ONE, EventKind.RATIO_UNRELIABLE), Event(10, TWO, EventKind.RATIO_FALLBACK),
        Event(20, ONE, EventKind.RATIO_RELIABLE), Event(30, ONE, EventKind.DIVERGED),
    ]  # fmt: skip
    assert healths(events) == {ONE: RatioHealth.RELIABLE, TWO: RatioHealth.UNRELIABLE}
