"""What a run records while it trains: its three tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sapp.runs.events import EVENT_COLUMNS, Event
from sapp.runs.folders import EVALUATIONS, EVENTS, METRICS
from sapp.runs.members import ID_COLUMNS
from sapp.runs.metric_tables import Table

METRIC_COLUMNS = ("step", "phase", "updates", "seconds", *ID_COLUMNS)
"""Of metrics.csv, before the metrics' own."""
EVALUATION_COLUMNS = (
    "step", "updates", *ID_COLUMNS, "episodes", "return_mean", "return_std", "score_mean", "score_std", "length_mean",
    "returns",
)  # fmt: skip


class RunLogger:
    """Writes metrics.csv, evaluations.csv and events.csv of a run."""

    def __init__(self, path: Path, metrics: Iterable[str]) -> None:
        """``metrics`` are the names of everything that any phase logs."""
        self._metrics = Table(path / METRICS, (*METRIC_COLUMNS, *metrics))
        self._evaluations = Table(path / EVALUATIONS, EVALUATION_COLUMNS)
        self._events = Table(path / EVENTS, EVENT_COLUMNS)

    def rewind(self, step: int) -> None:
        """Drop what was written after a step."""
        for table in (self._metrics, self._evaluations, self._events):
            table.rewind(step)

    def metrics(self, rows: Sequence[dict[str, Any]]) -> None:
        """Rows of metrics.csv."""
        self._metrics.append(rows)

    def evaluations(self, rows: Sequence[dict[str, Any]]) -> None:
        """Rows of evaluations.csv."""
        self._evaluations.append(rows)

    def events(self, events: Iterable[Event]) -> None:
        """Rows of events.csv."""
        self._events.append([event.row() for event in events])
