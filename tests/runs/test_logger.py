"""The three tables that a run writes."""

from __future__ import annotations

from pathlib import Path

from sapp.runs.events import Event, EventKind
from sapp.runs.folders import EVALUATIONS, EVENTS, METRICS
from sapp.runs.logger import EVALUATION_COLUMNS, METRIC_COLUMNS, RunLogger
from sapp.runs.members import MemberId
from sapp.runs.metric_tables import read

MEMBER = MemberId("cql", "hopper", 0)


def test_all_three_tables_are_cut_back_to_a_step(tmp_path: Path) -> None:
    logger = RunLogger(tmp_path, ["loss"])
    logger.rewind(0)
    for step in (10, 20):
        logger.metrics([{"step": step, "phase": "train", "updates": step, "seconds": 1.0, **MEMBER.row(), "loss": 0.5}])
        logger.evaluations([{"step": step, "updates": step, **MEMBER.row(), "episodes": 1, "return_mean": 3.0}])
        logger.events([Event(step, MEMBER, EventKind.DIVERGED)])
    assert [row["step"] for row in read(tmp_path / METRICS)] == ["10", "20"]
    logger.rewind(10)
    for name, columns in ((METRICS, (*METRIC_COLUMNS, "loss")), (EVALUATIONS, EVALUATION_COLUMNS)):
        (row,) = read(tmp_path / name)
        assert tuple(row) == columns
        assert MemberId.of(row) == MEMBER
    assert [Event.of(row) for row in read(tmp_path / EVENTS)] == [Event(10, MEMBER, EventKind.DIVERGED)]
