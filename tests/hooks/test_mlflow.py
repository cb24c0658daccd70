"""A local store of MLflow."""

from __future__ import annotations

import pytest
from hooked import Train

import sapp
from sapp.hooks import MLflow
from sapp.runs.hooks import Hook, Moment


def test_a_local_mlflow_holds_the_run_and_a_resumed_run_goes_on_in_it(
    train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")

    class Stop(Hook):
        def on_checkpoint(self, at: Moment) -> str | None:
            return "half of it" if at.step == 30 else None

    run = train("run", MLflow("point"), Stop())
    run = sapp.resume(run.path, progress=False, hooks=[MLflow("point")])
    client = mlflow.MlflowClient(tracking_uri=(run.path / "mlflow").as_uri())
    (found,) = client.search_runs([client.get_experiment_by_name("point").experiment_id])
    assert (found.info.run_name, found.info.status) == ("run", "FINISHED")
    assert found.data.params["alpha"] == "2.5"
    history = client.get_metric_history(found.info.run_id, "return_mean")
    assert [(each.step, f"{each.value:.9g}") for each in history] == [
        (int(row["step"]), row["return_mean"]) for row in run.evaluations()
    ]
