"""`sapp resume`, and runs that were stopped."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from sapp.cli.main import main


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.open()))


def test_resume_of_a_finished_run_changes_no_result(trained, tmp_path, capsys):
    folder = tmp_path / "run"
    shutil.copytree(trained, folder)
    before = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main(["resume", str(folder)]) == 0
    printed = capsys.readouterr()
    assert f"Run: {folder}\nNext: sapp evaluate {folder} " in printed.out
    assert printed.err == f"{folder}: finished, all 20 steps were trained; nothing is left to do\n"
    assert {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_resume_after_a_cut_gives_the_same_bits(trained, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(trained, folder)
    last = folder / "checkpoints" / "0000000020.safetensors"
    whole = last.read_bytes()
    last.unlink()
    assert main(["resume", str(folder), "--quiet"]) == 0
    assert last.read_bytes() == whole
    assert (folder / "evaluations.csv").read_bytes() == (trained / "evaluations.csv").read_bytes()


def test_ctrl_c_leaves_a_run_that_resumes(trained, point_file, tiny, tmp_path):
    """A real interrupt of a real process; the folder then continues here."""
    out = tmp_path / "run"
    argv = ["train", "cql", str(point_file), *tiny, "--steps", "100000000", "--log-every", "10", "--eval-every", "0"]
    command = [sys.executable, "-m", "sapp", *argv, "--quiet", "--out", str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        while not (out / "metrics.csv").exists() or len(rows(out / "metrics.csv")) < 2:
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    (line,) = errors.splitlines()
    assert line.startswith("sapp: interrupted at step")
    assert line.endswith(f"sapp resume {out}")
    assert main(["evaluate", str(out), "--episodes", "2"]) == 0
