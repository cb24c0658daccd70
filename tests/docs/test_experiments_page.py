"""The experiment that docs/experiments.md declares is one."""

from __future__ import annotations

import re
from pathlib import Path

from sapp.experiments.find import find_experiment
from sapp.experiments.grid import scaled

PAGE = Path(__file__).parents[2] / "docs" / "experiments.md"


def test_the_example_declares_a_grid(tmp_path: Path) -> None:
    (code,) = re.findall(r"(?s)```python\n(.*?)```", PAGE.read_text(encoding="utf-8"))
    (tmp_path / "mine.py").write_text(code, encoding="utf-8")
    grid = find_experiment(str(tmp_path / "mine.py"))(scaled("paper"))
    assert grid.variants == ("TD3+BC", "SA-TD3+BC", "shuffled", "IQL")
    assert grid.datasets == ("hopper-medium", "walker2d-medium")
    assert all(make("hopper-medium") is not None for family in grid.families for make in family.variants.values())
