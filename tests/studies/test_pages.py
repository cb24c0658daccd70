"""Every command that a page names exists: modules of studies, files of experiments, rows for a report."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from sapp.experiments.find import find_experiment
from sapp.experiments.grid import SCALES, scaled

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("studies/**/*.md"))]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


@pytest.mark.parametrize("module", sorted(set(re.findall(r"python -m ((?:studies|bench)(?:\.\w+)+)", TEXT))))
def test_a_named_module_does_something_as_a_command(module: str) -> None:
    found = importlib.util.find_spec(module)
    assert found is not None
    if found.submodule_search_locations:
        found = importlib.util.find_spec(f"{module}.__main__")
    assert found is not None
    assert found.origin is not None
    assert '__name__ == "__main__"' in Path(found.origin).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(set(re.findall(r"(?:python |`)?(bench/\w+\.(?:py|sh))", TEXT))))
def test_a_named_script_exists(path: str) -> None:
    assert (ROOT / path).is_file()


@pytest.mark.parametrize("file", sorted(set(re.findall(r"sapp experiment (studies/\S+\.py)", TEXT))))
@pytest.mark.parametrize("scale", SCALES)
def test_a_named_grid_declares_an_experiment_at_every_scale(file: str, scale: str) -> None:
    grid = find_experiment(str(ROOT / file))(scaled(scale))
    assert grid.datasets
    assert grid.focus in grid.variants
    assert len(set(grid.variants)) == len(grid.variants)
    for family in grid.families:
        assert family.phases(grid.scale, grid.datasets)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"(?:report|--out|rows) (studies/[\w./-]+)", TEXT))))
def test_named_rows_are_there(path: str) -> None:
    assert (ROOT / path).exists()
