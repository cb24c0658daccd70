"""What is said of members between two rows: each thing once, and what was said before a resume is remembered."""

from __future__ import annotations

import numpy as np

from sapp.algorithms import CQL
from sapp.runs.events import Event, EventKind
from sapp.runs.members import Member, MemberId
from sapp.training.changes import Changes
from sapp.weights import DualDICE

PLAIN, AWARE = CQL(hidden=(4,)), CQL(hidden=(4,), weights=DualDICE(hidden=(4,)))
MEMBERS = [Member("cql", PLAIN, 0, 0), Member("sa", AWARE, 0, 0), Member("sa", AWARE, 0, 1)]
IDS = [MemberId(each.name, "x", each.seed) for each in MEMBERS]
YES, NO = np.ones(3, bool), np.zeros(3, bool)


def said(events: list[Event]) -> list[tuple[int, str, str]]:
    return [(event.step, str(event.member), event.kind.value) for event in events]


def test_an_estimate_is_reported_when_its_state_changes_and_only_where_there_is_one() -> None:
    changes = Changes(MEMBERS, IDS, YES, [])
    assert changes.since(10, YES, NO, NO) == []
    assert said(changes.since(20, YES, YES, np.array([False, False, True]))) == [
        (20, "sa/x/0", "ratio-unreliable"), (20, "sa/x/1", "ratio-fallback"),
    ]  # fmt: skip
    assert changes.since(30, YES, YES, NO) == []
    assert said(changes.since(40, YES, np.array([True, True, False]), NO)) == [(40, "sa/x/1", "ratio-reliable")]


def test_after_a_resume_nothing_is_said_again() -> None:
    earlier = [Event(10, IDS[1], EventKind.RATIO_UNRELIABLE), Event(10, IDS[0], EventKind.VALUE_BEYOND)]
    changes = Changes(MEMBERS, IDS, YES, earlier)
    assert changes.since(20, YES, np.array([False, True, False]), NO) == []
    assert changes.found(20, [EventKind.VALUE_BEYOND, None, None]) == []
    beyond = [None, EventKind.VALUE_BEYOND, None]
    assert said(changes.found(20, beyond)) == [(20, "sa/x/0", "value-beyond-limit")]
    assert changes.found(30, beyond) == []


def test_a_member_that_stops_has_diverged_unless_its_values_stopped_it() -> None:
    changes = Changes(MEMBERS, IDS, YES, [])
    changes.found(10, [EventKind.VALUE_STOPPED, None, None])
    assert said(changes.since(10, np.array([False, False, True]), NO, NO)) == [(10, "sa/x/0", "diverged")]
    assert changes.since(20, np.array([False, False, True]), NO, NO) == []
