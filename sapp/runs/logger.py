"""What a run records while it trains: its three tables, and TensorBoard if asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sapp.core.extras import require
from sapp.runs.events import EVENT_COLUMNS, Event
from sapp.runs.folders import BOARD, EVALUATIONS, EVENTS, METRICS
from sapp.runs.members import ID_COLUMNS, MemberId
from sapp.runs.metric_tables import Table

METRIC_COLUMNS = ("step", "phase", "updates", "seconds", *ID_COLUMNS)
"""Of metrics.csv, before the metrics' own."""
EVALUATION_COLUMNS = (
    "step", "updates", *ID_COLUMNS, "episodes", "return_mean", "return_std", "score_mean", "score_std", "length_mean",
    "returns",
)  # fmt: skip
_NOT_SCALARS = {*METRIC_COLUMNS, "episodes", "returns"}


class RunLogger:
    """Writes metrics.csv, evaluations.csv and events.csv of a run."""

    def __init__(self, path: Path, metrics: Iterable[str], tensorboard: bool) -> None:
        """``metrics`` are the names of everything that any phase logs."""
        self._metrics = Table(path / METRICS, (*METRIC_COLUMNS, *metrics))
        self._evaluations = Table(path / EVALUATIONS, EVALUATION_COLUMNS)
        self._events = Table(path / EVENTS, EVENT_COLUMNS)
        self._board = board_writer()(str(path / BOARD)) if tensorboard else None

    def __enter__(self) -> RunLogger:
        return self

    def __exit__(self, *_: object) -> None:
        if self._board is not None:
            self._board.close()

    def rewind(self, step: int) -> None:
        """Drop what was written after a step."""
        for table in (self._metrics, self._evaluations, self._events):
            table.rewind(step)

    def metrics(self, rows: Sequence[dict[str, Any]]) -> None:
        """Rows of metrics.csv."""
        self._metrics.append(rows)
        self._scalars(rows)

    def evaluations(self, rows: Sequence[dict[str, Any]]) -> None:
        """Rows of evaluations.csv."""
        self._evaluations.append(rows)
        self._scalars(rows)

    def events(self, events: Iterable[Event]) -> None:
        """Rows of events.csv."""
        self._events.append([event.row() for event in events])

    def _scalars(self, rows: Sequence[dict[str, Any]]) -> None:
        if self._board is not None:
            for row in rows:
                member = MemberId(*(row[name] for name in ID_COLUMNS))
                for name, value in row.items():
                    if name not in _NOT_SCALARS:
                        self._board.add_scalar(f"{member}/{name}", value, row["step"])


def board_writer() -> Any:
    """TensorBoard's writer, or what to install for it."""
    return require("tensorboardX", "writing TensorBoard events").SummaryWriter
