"""The first step of a run is found from outside; what compiled it is kept for the second start."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("reads /proc", allow_module_level=True)

from bench.first_step import first_row, start
from sapp import save_npz
from sapp.envs.point import behaviour_dataset
from sapp.runs.run import Run


def test_a_head_alone_or_half_a_row_is_no_step(tmp_path: Path) -> None:
    table = tmp_path / "metrics.csv"
    assert not first_row(table)
    table.write_text("step,loss\n1,0.")
    assert not first_row(table)
    table.write_text("step,loss\n1,0.5\n")
    assert first_row(table)


def test_a_start_ends_soon_after_its_first_step_and_leaves_its_programs(tmp_path: Path) -> None:
    save_npz(behaviour_dataset(episodes=6), tmp_path / "data.npz")
    words = ["td3bc", str(tmp_path / "data.npz"), "--hidden", "8", "--batch-size", "8"]
    found = start(words, tmp_path / "run", tmp_path / "programs")
    assert 0.0 < found["cpu"] < 2.0 * found["seconds"] * 64
    assert found["memory"] > 50.0
    assert Run(tmp_path / "run").step >= 1  # interrupted, and saved
    assert list((tmp_path / "programs").rglob("*-cache"))


def test_a_start_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no-such-file"):
        start(["bc", str(tmp_path / "no-such-file.npz")], tmp_path / "run", tmp_path / "programs")
