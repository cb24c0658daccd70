"""One CSV file of everything that is logged, in the long form that spreadsheets and plotting libraries take."""

from __future__ import annotations

from pathlib import Path

from typing_extensions import override

from sapp.core.errors import SappError
from sapp.runs.folders import CSV_LOG
from sapp.runs.hooks import Hook, Moment, member_of, numbers
from sapp.runs.metric_tables import Table
from sapp.runs.run import Run


class CSVLog(Hook):
    """Writes a row for every number: step, algorithm, dataset, seed, name, value.

    The run folder's own metrics.csv and evaluations.csv have a column for each name instead; they are always there.
    """

    def __init__(self, file: str | Path | None = None) -> None:
        """``file``: where to write (default: ``log.csv`` in the run folder). A new run begins it anew."""
        self._file = None if file is None else Path(file)
        self._table: Table | None = None

    @override
    def on_start(self, run: Run) -> None:
        table = Table(self._file or run.path / CSV_LOG, ("step", "algorithm", "dataset", "seed", "name", "value"))
        table.rewind(run.step)  # a resumed run writes again what came after its checkpoint
        self._table = table

    @override
    def on_log(self, at: Moment) -> None:
        if self._table is None:
            raise SappError("its file could not be opened")
        for row in at.rows:
            head = {"step": at.step, **member_of(row).row()}
            self._table.append([head | {"name": name, "value": value} for name, value in numbers(row).items()])

    @override
    def on_evaluate(self, at: Moment) -> None:
        self.on_log(at)
