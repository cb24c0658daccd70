"""The demonstration's figure, from numbers at hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sapp.cli.demo_figure import draw
from sapp.cli.demo_problem import CASES, UNEVEN, VARIANTS
from sapp.core.figures import is_figure
from sapp.tabular.uneven_coverage import make_world


def test_it_is_drawn_from_regrets_of_any_worlds(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    exact, learned = (
        {case: {name: rng.uniform(5, 30, 4) for name in VARIANTS} for case in CASES} for _ in range(2)
    )
    path = draw(make_world(CASES[UNEVEN], 0), exact, learned, tmp_path / "demo.png")
    assert is_figure(path.read_bytes())
    pixels = pytest.importorskip("matplotlib.image").imread(path)
    assert pixels.shape[:2] == (735, 2010)  # 13.4 by 4.9 inches
    assert matplotlib.get_backend()  # nothing global was changed by it
    assert len({tuple(colour) for colour in np.round(pixels[::20, ::20, :3].reshape(-1, 3), 2)}) > 5
