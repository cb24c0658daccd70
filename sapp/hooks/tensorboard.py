"""TensorBoard."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from sapp.core.extras import require
from sapp.runs.folders import BOARD
from sapp.runs.hooks import Hook, Moment
from sapp.runs.run import Run


class TensorBoard(Hook):
    """Writes events into ``RUN/tensorboard`` (needs the ``tensorboard`` extra)."""

    def __init__(self) -> None:
        """Refuse at once where tensorboardX is not installed."""
        self._writer = require("tensorboardX", "writing TensorBoard events").SummaryWriter
        self._board: Any = None

    @override
    def on_start(self, run: Run) -> None:
        self._board = self._writer(str(run.path / BOARD))

    @override
    def on_log(self, at: Moment) -> None:
        for name, value in at.scalars().items():
            self._board.add_scalar(name, value, at.step)

    @override
    def on_evaluate(self, at: Moment) -> None:
        self.on_log(at)

    @override
    def close(self) -> None:
        if self._board is not None:
            self._board.close()
