"""The page's charts as files for papers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sapp.report.chart import Chart, Reference
from sapp.report.curves import Curve
from sapp.report.figures import COLOURS, draw


def test_a_chart_becomes_two_files_of_the_same_bytes_each_time(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    steps = np.array([0.0, 10.0, 20.0])
    curves = [Curve(name, steps, steps + at, steps + at - 1, steps + at + 1) for at, name in ((2, "A"), (3, "B"))]
    chart = Chart("Scores of <x>", "step", "score", curves, ["A", "B"], references=[Reference("limit", 5.0, "B")])
    once, again = (draw(chart, tmp_path / folder / "curve") for folder in ("one", "two"))
    assert [file.name for file in once] == ["curve.png", "curve.svg"]
    assert [file.read_bytes() for file in once] == [file.read_bytes() for file in again]
    drawn = once[1].read_text(encoding="utf-8")
    assert COLOURS[0] in drawn
    assert COLOURS[1] in drawn
    assert COLOURS[2] not in drawn
