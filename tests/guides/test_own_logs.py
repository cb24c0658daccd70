"""The guide is run as it is written: its blocks, in order, in an empty folder."""

from __future__ import annotations

import json
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
TUTORIAL = ROOT / "docs" / "tutorials" / "decisions.ipynb"

WARD = """
import json, onnxruntime
from sapp.export import export_policy

def ward(file):
    session = onnxruntime.InferenceSession(file)
    return truth(lambda patient: session.run(None, {"observation": seen(patient).astype(np.float32)})[0])

selection = json.load(open("ward-selection.json"))
chosen, truths = selection["order"][0], {}
for each in selection["order"]:
    export_policy("runs/doses", "dose.onnx", member=each["policy"])
    truths[each["policy"]] = ward("dose.onnx")
    print(each["policy"], each["verdict"], truths[each["policy"]])
true = truths[chosen["policy"]]
assert chosen["discounted_return_low"] <= true <= chosen["discounted_return_high"]
assert max(truths.values()) - true <= 0.1 * (max(truths.values()) - min(truths.values())) + 0.02
print("ward:", true)
"""
"""What follows the guide's last block: the interval holds what the chosen policy earns; no other earns much more."""


def blocks(text: str) -> list[tuple[str, str]]:
    """(language, code) of every fenced block that is run."""
    return [(kind, code) for kind, code in re.findall(r"^```(python|bash)\n(.*?)^```$", text, re.M | re.S)]


def ward_tables() -> str:
    """The tutorial's cells that write the ward's tables, and its function that plays a policy there."""
    cells = [cell for cell in json.loads(TUTORIAL.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    sources = ["".join(cell["source"]) for cell in cells]
    (plays,) = (source for source in sources if "def truth(" in source)
    return "\n".join([*sources[:3], plays.partition("def of_member")[0]])


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
        program += [ward_tables()] if "ward.toml" in code else []
        program.append(code if kind == "python" else f"subprocess.run(['bash', '-euc', {code!r}], check=True)")
    program.append(WARD)
    (work / "guide.py").write_text("\n".join(program))
    done = subprocess.run(
        [sys.executable, "guide.py"], cwd=work, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    print(done.stdout)
    assert "true regret" in done.stdout
    assert "ward: " in done.stdout
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
