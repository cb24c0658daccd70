"""Tables of what is behind the scores."""

from __future__ import annotations

from recorded import experiment, member

from sapp.report import run_tables
from sapp.runs.events import EventKind


def texts(table) -> list[list[str]]:
    return [[entry.text for entry in line.entries] for line in table.lines]


def test_events_have_a_column_per_kind_that_occurs() -> None:
    unreliable, reliable, diverged = EventKind.RATIO_UNRELIABLE, EventKind.RATIO_RELIABLE, EventKind.DIVERGED
    one = member(events=[(1, unreliable), (2, reliable), (3, unreliable)])
    other = member(seed=1, events=[(1, diverged)])
    made = run_tables.events(experiment(one, other, member("SA-CQL")))
    assert made.head[3:] == (unreliable.sentence, reliable.sentence, diverged.sentence)
    assert texts(made) == [["hopper-medium", "CQL", "2", "2", "1", "1"]]
    assert run_tables.events(experiment(member())) is None


def test_members_beyond_their_limit_are_listed() -> None:
    metrics = {"critic/value": [(10, 5.0), (20, 40.0)], "critic/value_limit": [(10, 9.0), (20, 9.0)]}
    made = run_tables.beyond(experiment(member(metrics=metrics), member(seed=1)))
    assert texts(made) == [["hopper-medium", "CQL", "0", "20", "50.0", "40.0", "9.0"]]
    assert run_tables.beyond(experiment(member())) is None


def test_only_settings_that_differ_are_shown() -> None:
    a = member("CQL", algorithm={"alpha": 5.0, "hidden": [256, 256], "weights": {"class": "Control", "kind": 4}})
    b = member("SA-CQL", algorithm={"alpha": 5.0, "hidden": [256], "weights": {"class": "Control", "kind": 0}})
    found = texts(run_tables.settings(experiment(a, b)))
    assert found == [["hidden", "256,256", "256"], ["weights.kind", "uniform", "real"]]


def test_the_estimators_diagnostics_are_of_the_last_phase() -> None:
    metrics = {"weights/mean": [(-50, 1.0), (50, 0.6)], "ratio/ess": [(-50, 0.9), (50, 0.1), (100, 0.3)]}
    made = run_tables.estimator(experiment(member("SA-CQL", metrics=metrics)))
    assert texts(made) == [["hopper-medium", "SA-CQL", "0.6", "0.2"]]
