"""The guide is run as it is written: its blocks, in order, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.strangers_log import COMMANDS, main
from sapp.data import load_vectors as load

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "own-logs.md"


def blocks(text: str) -> list[tuple[str, str]]:
    """(language, code) of every fenced block that is run."""
    return [(kind, code) for kind, code in re.findall(r"^```(python|bash)\n(.*?)^```$", text, re.M | re.S)]


def test_the_guide_runs_as_written(tmp_path: Path, long_environment: dict[str, str]) -> None:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "sapp").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sapp "$@"\n')
    (tools / "sapp").chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    environment = {
        **long_environment, "PYTHONPATH": str(ROOT),
        "PATH": f"{tools}:{os.environ['PATH']}",
    }  # fmt: skip
    # one Python process for all Python blocks, which share their names; bash blocks are called from it
    program = ["import os, subprocess"]
    for kind, code in blocks(GUIDE.read_text(encoding="utf-8")):
        program.append(code if kind == "python" else f"subprocess.run(['bash', '-euc', {code!r}], check=True)")
    (work / "guide.py").write_text("\n".join(program))
    done = subprocess.run(
        [sys.executable, "guide.py"], cwd=work, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    print(done.stdout)
    assert "true regret" in done.stdout
    (share,) = re.findall(r"They hold ([\d.]+) % of the reward", GUIDE.read_text(encoding="utf-8"))
    assert f"rows were dropped ({share}% of the reward)" in done.stdout
    assert (work / "plant.md").read_text().startswith("# cql")


def test_the_guide_has_the_steps_that_are_timed() -> None:
    page = " ".join(GUIDE.read_text(encoding="utf-8").replace("\\\n", " ").split())
    assert [line for line in COMMANDS if line not in page] == []


def test_a_strangers_log_becomes_a_policy_file(tmp_path: Path) -> None:
    """The same steps in small: from RLlib's JSON, written without sapp, to what onnxruntime plays."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    found = main(["--small", "--folder", str(tmp_path)])
    check = found["out"]["data check"]
    assert "rows: 1,200 read, 0 dropped, 1,200 kept" in check
    assert "new_obs as next_observation 0 to 2" in check
    assert "the logs' actions lie in [-1, 1], but Pendulum-v1 takes [-2, 2]" in check
    assert "Next: sapp train cql rllib-learn --environment Pendulum-v1 --steps" in check
    selection = found["selection"]
    assert len(selection["order"]) + len(selection["refused"]) == 2
    assert (tmp_path / "pendulum.onnx").is_file()
    assert load(tmp_path / "learn.npz").action_high.tolist() == [2.0]
    assert -2000 < found["returns"] < -100
