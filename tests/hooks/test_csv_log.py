"""Every number as a row of one CSV file."""

from __future__ import annotations

import csv
from pathlib import Path

from hooked import Train

import sapp
from sapp.hooks import CSVLog
from sapp.runs.hooks import Hook, Moment


def test_a_csv_file_holds_every_number_once_after_a_resume(train: Train, tmp_path: Path) -> None:
    class Stop(Hook):
        def on_log(self, at: Moment) -> str | None:
            return "enough" if at.step == 20 else None

    run = train("run", CSVLog(), Stop(), seeds=2, steps=30)
    assert run.step == 20
    (run.path / "checkpoints" / "0000000020.safetensors").unlink()
    sapp.resume(run.path, progress=False, hooks=[CSVLog()])
    with (run.path / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    keys = [(row["step"], row["seed"], row["name"]) for row in rows]
    assert len(set(keys)) == len(keys)
    logged = {key: row["value"] for key, row in zip(keys, rows, strict=True)}
    for row in run.metrics():
        assert logged[row["step"], row["seed"], "critic/td"] == row["critic/td"]
    for row in run.evaluations():
        assert logged[row["step"], row["seed"], "return_mean"] == row["return_mean"]
