"""The best policy of each member is kept as a run of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hooked import Train

import sapp
from sapp.envs.point import behaviour_dataset
from sapp.hooks import KeepBest
from sapp.hooks.keep_best import best_folder


def test_each_member_has_its_own_best(train: Train) -> None:
    run = train("run", KeepBest(), seeds=2, steps=30, keep=5)
    for index, member in enumerate(run.members):
        rows = [row for row in run.evaluations() if row["seed"] == str(member.seed)]
        top = max(rows, key=lambda row: float(row["return_mean"]))
        kept = sapp.Run(run.path / "best" / f"bc-{member.dataset}-{member.seed}")
        assert best_folder(run, index) == kept.path
        assert [str(each) for each in kept.members] == [str(member)]
        assert kept.step == int(top["step"])
        assert kept.evaluations() == [row for row in rows if int(row["step"]) <= kept.step]
        seen = behaviour_dataset(2).observation[:5]
        actor = run.actors_at(kept.step)[1][index]
        units = run.plan.problems[0].to_units(np.asarray(actor(seen).mode()))
        assert kept.predict(seen) == pytest.approx(units, rel=1e-5)


def test_the_best_is_not_kept_through_a_link(train: Train, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A folder that a stranger sent: nothing is written, and nothing deleted, where it leads."""
    run, outside = train("run", steps=20), tmp_path / "outside"
    (outside / "checkpoints").mkdir(parents=True)
    (outside / "checkpoints" / "0000000007.safetensors").write_text("mine")
    max(run.checkpoints.values()).unlink()
    (run.path / "best").mkdir()
    (run.path / "best" / "checkpoints").symlink_to(outside / "checkpoints")
    sapp.resume(run.path, progress=False, hooks=[KeepBest()])
    assert "best/checkpoints: is a link" in capfd.readouterr().err
    assert [file.read_text() for file in (outside / "checkpoints").iterdir()] == ["mine"]
