"""The house: tests lie as modules do, and no module or function is longer than a reader can hold."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
MODULES = sorted(path for path in (ROOT / "sapp").rglob("*.py") if not path.stem.startswith("__"))
UNTESTED = {
    "core/version.py": "one constant, which tests/docs/test_project_files.py compares with CITATION.cff",
}
"""Modules without a test of their name, and why."""
SEVERAL = {
    "algorithms/test_baseline_exports.py", "algorithms/test_baselines.py", "algorithms/test_cartpole.py",
    "algorithms/test_large_values.py", "algorithms/test_probes.py", "cli/test_numbers_in_help.py",
    "core/test_own_kind.py",
    "data/test_broken_logs.py", "data/test_discrete.py", "data/test_nested_logs.py", "data/test_shapes.py",
    "envs/test_make.py", "experiments/test_from_a_clean_folder.py", "experiments/test_time_limit.py",
    "report/test_browser.py", "tabular/test_f_as_run.py",
    "training/test_baseline_runs.py", "training/test_frame_training.py", "training/test_kill.py",
    "weights/test_discrete_dualdice.py", "weights/test_image_dualdice.py", "weights/test_occupancy_population.py",
    "weights/test_saddle.py",
}  # fmt: skip
"""Tests of several modules together, in the folder of what they are about; the first line of each says what."""
BESIDE = ("bench", "docs", "faults", "fuzz", "guides", "studies")
"""Folders of tests that are about no package."""
MODULE_LINES, FUNCTION_LINES = 500, 80


def place_of(module: Path) -> Path:
    """Where the test of a module is: sapp/data/load.py is tested in tests/data/test_load.py."""
    inside = module.relative_to(ROOT / "sapp")
    return TESTS / inside.parent / f"test_{inside.name}"


def test_every_module_has_a_test_of_its_name() -> None:
    missing = {path.relative_to(ROOT / "sapp").as_posix() for path in MODULES if not place_of(path).is_file()}
    assert missing == set(UNTESTED)


def test_every_test_in_a_packages_folder_has_its_module_or_is_known_to_have_several() -> None:
    named = {place_of(path) for path in MODULES}
    found = {
        path.relative_to(TESTS).as_posix()
        for path in TESTS.rglob("test_*.py")
        if path.parent != TESTS and path.relative_to(TESTS).parts[0] not in BESIDE and path not in named
    }
    assert found == SEVERAL


@pytest.mark.parametrize("path", sorted(TESTS.rglob("test_*.py")), ids=lambda path: path.relative_to(TESTS).as_posix())
def test_a_file_of_tests_has_tests_and_says_what_several_modules_do_together(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tests = [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert tests
    if path.relative_to(TESTS).as_posix() in SEVERAL:
        assert ast.get_docstring(tree)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT / "sapp").as_posix())
def test_no_module_and_no_function_is_too_long(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MODULE_LINES
    functions = [
        node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert [each.name for each in functions if (each.end_lineno or 0) - each.lineno >= FUNCTION_LINES] == []
