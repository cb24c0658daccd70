"""The card beside an exported policy."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from sapp.cli.main import main
from sapp.export.policy import _estimates
from sapp.runs.run import Run

onnxruntime = pytest.importorskip("onnxruntime")


def test_a_run_is_exported_with_its_card(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "policy.onnx"
    assert main(["export", str(trained), str(file)]) == 0
    assert "agrees with the trained policy" in capsys.readouterr().out
    card = json.loads(file.with_suffix(".json").read_text())
    run = Run(trained)
    assert card["data"]["fingerprint"] == run.plan.problems[0].fingerprint
    assert card["policy"]["algorithm"]["class"] == "CQL"
    assert card["policy"]["step"] == run.step
    assert card["value"] is None
    assert "No off-policy estimate" in card["limits"][0]
    page = file.with_suffix(".md").read_text()
    assert page.startswith("# cql/point")
    assert run.plan.problems[0].fingerprint in page
    # one observation and many, beside Run.predict, which takes the same units
    observation = np.random.default_rng(0).normal(size=(7, 2)).astype(np.float32)
    session = onnxruntime.InferenceSession(file.read_bytes())
    (action,) = session.run(None, {"observation": observation})
    np.testing.assert_allclose(action, run.predict(observation), atol=1e-5)


def test_an_estimate_is_quoted_for_the_checkpoint_it_is_of(trained: Path, tmp_path: Path) -> None:
    """A run that was trained on has no estimate any more."""
    run = Run(Path(shutil.copytree(trained, tmp_path / "run")))
    rows = [{"policy": "cql/point/0", "step": run.step, "value": 1.0},
            {"policy": f"cql/point/0 @ {run.step - 5}", "step": run.step - 5, "value": 2.0}]  # fmt: skip
    report = {"discount": 0.9, "data": "point", "units": "reward", "policies": rows}
    (run.path / "offline.json").write_text(json.dumps({"reports": [report]}))
    for step, value in ((run.step, 1.0), (run.step - 5, 2.0)):
        found = _estimates(run, "cql/point/0", step)
        assert found is not None
        assert found["value"] == value
    assert _estimates(run, "cql/point/0", run.step + 10) is None
