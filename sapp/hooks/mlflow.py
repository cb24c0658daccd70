"""MLflow."""

from __future__ import annotations

import os
import time
from typing import Any

from typing_extensions import override

from sapp.core.extras import require
from sapp.core.files import write_text
from sapp.runs.folders import MLFLOW
from sapp.runs.hooks import Hook, Moment
from sapp.runs.run import Run

_ID = "sapp-run-id"
_SERVER = "MLFLOW_TRACKING_URI"
_MOST = 1000
"""Metrics that MLflow takes at once."""


class MLflow(Hook):
    """Logs to MLflow (needs the ``mlflow`` extra), a resumed run into the same run there.

    Without a server everything lies in ``RUN/mlflow``: look with ``mlflow ui --backend-store-uri RUN/mlflow``.
    """

    def __init__(self, experiment: str = "sapp", name: str | None = None, uri: str | None = None) -> None:
        """``uri``: of the server or store (default: ``MLFLOW_TRACKING_URI``); ``name``: default, that of the folder."""
        self._mlflow = require("mlflow", "logging to MLflow")
        self._experiment, self._name, self._uri = experiment, name, uri or os.environ.get(_SERVER)
        self._client: Any = None
        self._run = ""
        self._finished = False

    @override
    def on_start(self, run: Run) -> None:
        folder, uri = run.path / MLFLOW, self._uri
        if uri is None:
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # MLflow would rather have a database
            uri = folder.resolve().as_uri()
        client = self._mlflow.MlflowClient(tracking_uri=uri)
        known = folder / _ID
        if known.is_file():
            self._run = known.read_text(encoding="utf-8").strip()
            client.update_run(self._run, status="RUNNING")
        else:
            found = client.get_experiment_by_name(self._experiment)
            number = found.experiment_id if found is not None else client.create_experiment(self._experiment)
            self._run = client.create_run(number, run_name=self._name or run.path.name).info.run_id
            write_text(known, self._run + "\n")
            for key, value in _settings(run).items():
                client.log_param(self._run, key, value)
        self._client = client

    @override
    def on_log(self, at: Moment) -> None:
        metric, now = self._mlflow.entities.Metric, int(time.time() * 1000)
        found = [metric(name, value, now, at.step) for name, value in at.scalars().items()]
        for first in range(0, len(found), _MOST):
            self._client.log_batch(self._run, metrics=found[first : first + _MOST])

    @override
    def on_evaluate(self, at: Moment) -> None:
        self.on_log(at)

    @override
    def on_end(self, run: Run) -> None:
        self._finished = True

    @override
    def close(self) -> None:
        if self._client is not None:
            self._client.set_terminated(self._run, "FINISHED" if self._finished else "KILLED")


def _settings(run: Run) -> dict[str, Any]:
    """What says how a run was trained: of its algorithms, only what all have alike."""
    from sapp.algorithms.config import options

    plan = run.plan
    every = [{key: str(value) for key, value in options(member.algorithm)} for member in plan.members]
    alike = {key: value for key, value in every[0].items() if all(other.get(key) == value for other in every)}
    names = {
        "algorithms": ",".join(dict.fromkeys(member.algorithm for member in plan.ids)),
        "datasets": ",".join(problem.name for problem in plan.problems),
        "seeds": ",".join(map(str, dict.fromkeys(member.seed for member in plan.ids))),
        "steps": run.total_steps,
    }
    return names | alike
