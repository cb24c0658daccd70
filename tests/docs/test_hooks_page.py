"""The page on hooks: its examples run as they stand, and its table names what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import sapp
import sapp.hooks
from sapp.cli.hooks import LOGGERS

PAGE = (Path(__file__).parents[2] / "docs" / "hooks.md").read_text(encoding="utf-8")


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    first, own = re.findall(r"(?ms)^```python\n(.*?)^```", PAGE)
    exec(first.replace('"td3bc"', "sapp.TD3BC(hidden=(8,), batch_size=8)"), names)
    run = sapp.Run("runs/first")
    assert int(capsys.readouterr().out.split()[0]) in {int(row["step"]) for row in run.evaluations()}
    assert (run.path / "log.csv").is_file()
    exec(own, names)
    assert sapp.Run("runs/first").step == 400


def test_every_hook_is_in_the_table() -> None:
    named = set(re.findall(r"(?m)^\| `(\w+)\(", PAGE))
    assert named == set(dir(sapp.hooks))
    assert {name for name in LOGGERS if f"--log-to {name}`" in PAGE} == set(LOGGERS)
