"""What is uploaded to a model hub."""

from __future__ import annotations

from pathlib import Path

import pytest
from hooked import Train

import sapp
from sapp.envs.point import behaviour_dataset
from sapp.hooks import HubPush, KeepBest


def test_a_policy_is_prepared_with_its_card_and_a_failed_upload_says_where_it_is(
    train: Train, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("huggingface_hub")
    run = train("run", KeepBest(), HubPush("somebody/point", best=True, endpoint="http://127.0.0.1:9"), steps=20)
    folder = run.path / "hub"
    complaint = capfd.readouterr().err
    assert complaint.startswith("sapp: warning: hook HubPush failed in on_end: somebody/point was not uploaded (")
    assert f"hf upload somebody/point {folder}" in " ".join(complaint.split())
    assert complaint.count("\n") == 1
    assert sorted(each.name for each in folder.iterdir()) == ["README.md", "policy.json", "policy.onnx", "run"]
    card = (folder / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: sapp\n")
    assert "## How to run it" in card
    seen = behaviour_dataset(2).observation[:5]
    opened = sapp.Run(folder / "run")
    assert opened.plan.problems[0].source is None
    assert opened.predict(seen) == pytest.approx(sapp.Run(run.path / "best").predict(seen))
