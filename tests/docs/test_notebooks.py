"""The tutorials run from top to bottom; here with the small numbers that each notebook names for that."""

from __future__ import annotations

import ast
import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))


def cells(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def names(source: str) -> set[str]:
    """What a cell assigns to."""
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_from_top_to_bottom(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("onnxruntime")
    pyplot.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType(f"tutorial_{path.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    small = 0
    for number, cell in enumerate(each for each in cells(path) if each["cell_type"] == "code"):
        source = "".join(cell["source"])
        if quick := cell["metadata"].get("quick"):
            assert names(quick) == names(source), "the small numbers are for other names"
            source, small = quick, small + 1
        exec(compile(source, f"{path.name}, cell {number}", "exec"), vars(module))
    assert small == 1
    pyplot.close("all")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_it_printed_and_drew_is_stored(path: Path) -> None:
    code = [cell for cell in cells(path) if cell["cell_type"] == "code"]
    outputs = [output for cell in code for output in cell["outputs"]]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert path.stat().st_size < 400_000
    drawn = [cell for cell in code if any("image/png" in output.get("data", {}) for output in cell["outputs"])]
    assert [cell["metadata"].get("alt") for cell in drawn if not cell["metadata"].get("alt")] == []


def test_there_are_four() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["cartpole", "decisions", "extend", "paper"]
