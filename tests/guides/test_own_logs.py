"""The guide is run as it is written: its blocks, in order, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
        "PATH": f"{tools}:{os.environ['PATH']}", "SAPP_GUIDE": "1",
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
    assert (work / "plant.md").read_text().startswith("# cql")
