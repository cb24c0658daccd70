"""The options of the command that ask for hooks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import sapp
from sapp.cli.main import main


def test_the_command_asks_for_hooks(tmp_path: Path, trained: Path, point_file: Path, tiny: list[str],
                                    short: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    words = ["--keep-best", "--stop-early", "1", "--log-to", "csv", "--out", str(out)]
    assert main(["train", "cql", str(point_file), *tiny, *short, *words]) == 0
    assert sapp.Run(out / "best").step in (10, 20)
    assert (out / "log.csv").is_file()
    assert sapp.Run(out).metrics()[-1]["critic/td"] == sapp.Run(trained).metrics()[-1]["critic/td"]
    shutil.rmtree(out)
    assert main(["train", "cql", str(point_file), *tiny, *short, "--log-to", "wandbb", "--out", str(out)]) == 2
    assert "--log-to: 'wandbb' is unknown (did you mean 'wandb'?)" in capfd.readouterr().err
    assert not out.exists()
