"""Weights & Biases."""

from __future__ import annotations

import secrets
from typing import Any

from typing_extensions import override

from sapp.core.extras import require
from sapp.core.files import write_text
from sapp.runs.folders import WANDB
from sapp.runs.hooks import Hook, Moment
from sapp.runs.run import Run

_ID = "sapp-run-id"


class WandB(Hook):
    """Logs to Weights & Biases (needs the ``wandb`` extra), a resumed run into the same run there.

    Who is logged in, and whether a network is used, is wandb's own business: ``wandb login``, ``WANDB_MODE=offline``.
    Offline, everything lies in ``RUN/wandb``; ``wandb sync`` sends it later.
    """

    def __init__(self, project: str = "sapp", name: str | None = None, mode: str | None = None, **options: Any) -> None:
        """``name``: default, that of the folder. ``mode``: online, offline, disabled; the rest: ``wandb.init``'s."""
        self._wandb = require("wandb", "logging to Weights & Biases")
        self._options: dict[str, Any] = {"project": project, "name": name, "mode": mode, **options}
        self._run: Any = None

    @override
    def on_start(self, run: Run) -> None:
        known = run.path / WANDB / _ID
        number = known.read_text(encoding="utf-8").strip() if known.is_file() else secrets.token_hex(4)
        options = {key: value for key, value in self._options.items() if value is not None}
        defaults = {
            "name": run.path.name, "dir": str(run.path), "id": number, "resume": "allow", "config": run.plan.to_json(),
            "settings": self._wandb.Settings(console="off", silent=True),
        }  # fmt: skip
        self._run = self._wandb.init(**defaults | options)
        self._run.define_metric("step")
        self._run.define_metric("*", step_metric="step")
        write_text(known, number + "\n")

    @override
    def on_log(self, at: Moment) -> None:
        self._run.log({"step": at.step, **at.scalars()})

    @override
    def on_evaluate(self, at: Moment) -> None:
        self.on_log(at)

    @override
    def close(self) -> None:
        if self._run is not None:
            self._run.finish()
