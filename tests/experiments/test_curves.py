"""Pictures of learning curves."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from studies.baselines import curves

PANEL = {"CQL": {0: [(10, 1.0), (20, 2.0)], 1: [(10, 3.0)]}, "SA-CQL": {0: [(10, 2.0), (20, 2.5)]}}


def test_a_picture_has_a_row_of_panels_for_each_row(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    sizes = []
    for rows in ([{"one": PANEL}], [{"one": PANEL, "two": PANEL}, {"three": PANEL}]):
        curves.draw(rows, tmp_path / "curves.png", "updates", "return")
        sizes.append(struct.unpack(">II", (tmp_path / "curves.png").read_bytes()[16:24]))  # as PNG's header has them
    (width, height), larger = sizes
    assert larger == (2 * width, 2 * height)


def test_a_column_has_one_colour_in_all_panels() -> None:
    """A panel that lacks the first column does not pass its colour on to the second."""
    without = {"SA-CQL": PANEL["SA-CQL"], "CQL": PANEL["CQL"]}
    found = curves.colours([{"one": PANEL, "two": {"IQL": PANEL["CQL"]}}, {"three": without}])
    assert found == {"CQL": "C0", "SA-CQL": "C1", "IQL": "C2"}


def test_without_matplotlib_nothing_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "find_spec", lambda _: None)
    curves.draw([{"one": PANEL}], tmp_path / "curves.png", "updates", "return")
    assert list(tmp_path.iterdir()) == []
