"""The page for users of other libraries: its example runs, its names are ours, and its scales of α are equal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import sapp
import sapp.hooks
from sapp.algorithms.config import options
from sapp.algorithms.cql import ALPHA_SCALES
from sapp.algorithms.registry import ALGORITHMS, preset

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"(?ms)^```python\n(.*?)^```", PAGE)
    small = code.replace("hidden=(256, 256)", "hidden=(8,), batch_size=8, action_samples=1").replace("200", "20")
    exec(small.replace("eval_every=100", "eval_every=20").replace("episodes=20", "episodes=2"), {})
    assert (tmp_path / "runs" / "cql" / "best").is_dir()
    float(capsys.readouterr().out.splitlines()[-1])


def test_every_name_of_ours_is_a_hyper_parameter() -> None:
    table = PAGE.split("## Names")[1].split("## ")[0]
    rows = [row.strip("|").split("|") for row in table.splitlines() if row.startswith("| ") and "d3rlpy 2 |" not in row]
    ours = {name for row in rows for name in re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", row[-1]))}
    known = {key.partition(".")[0] for name in ALGORITHMS for key, _ in options(preset(name))} | {"network"}
    assert len(ours) > 15
    assert ours <= known


def test_the_scales_of_alpha_are_as_the_page_says() -> None:
    rows = re.findall(r"`CQL\(alpha=(\d+)(?:, alpha_scale=\"([\w-]+)\")?\)`(?:, which is `CQL\(alpha=(\d+)\)`)?", PAGE)
    assert len(rows) == 3
    for alpha, scale, same in rows:
        plain = ALPHA_SCALES[sapp.CQL().alpha_scale]
        assert float(alpha) * ALPHA_SCALES[scale or sapp.CQL().alpha_scale] == float(same or alpha) * plain


def test_defaults_are_as_the_page_says() -> None:
    assert "| CQL: layers | 2 × 256 | 3 × 256 | 3 × 256 |" in PAGE
    assert (sapp.CQL().hidden, sapp.CQL().backup, sapp.DiscreteCQL().batch_size) == ((256, 256, 256), "mode", 64)
    assert sapp.IQL().reward_scaling == "returns"
