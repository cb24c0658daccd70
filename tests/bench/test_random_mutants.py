"""bench/random_mutants.py: which small changes there are in a module, and that drawn ones fit what plants them."""

from __future__ import annotations

import csv
import importlib
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
drawing = importlib.import_module("bench.random_mutants")
planting = importlib.import_module("bench.mutants")

CODE = '''
"""A sum of 3."""

LIMIT: int = 7


def clipped(x: float, low: int = 0) -> float:
    """At most 7."""
    if not x < LIMIT:
        raise SappError(f"{x} is {1 + 2} too much")
    print("twice", 2 * x)
    total = min(x, 1.5) + low
    total += 1
    return jax.lax.stop_gradient(total) if total >= 2 and True else -total
'''


def changed(tmp_path: Path) -> dict[str, str]:
    """Every change of the code above: what it is, and the line that it makes."""
    file = tmp_path / "module.py"
    file.write_text(CODE, encoding="utf-8")
    found = {}
    for change in drawing.Finder(file).changes():
        whole = CODE[: change.start] + change.new + CODE[change.end :]
        found[f"{change.line}: {change.meaning}"] = whole.splitlines()[change.line - 1].strip()
    return found


def test_every_small_change_is_found_and_nothing_that_is_only_said(tmp_path: Path) -> None:
    assert changed(tmp_path) == {
        "4: 8 for 7": "LIMIT: int = 8",
        "7: 1 for 0": "def clipped(x: float, low: int = 1) -> float:",
        "9: the condition is denied": "if not (not x < LIMIT):",
        "9: the sign is left out": "if x < LIMIT:",
        "9: <= for <": "if not x <= LIMIT:",
        "12: - for +": "total = min(x, 1.5) - low",
        "12: max for min": "total = max(x, 1.5) + low",
        "12: 3.0 for 1.5": "total = min(x, 3.0) + low",
        "13: the statement is left out": "pass",
        "13: 2 for 1": "total += 2",
        "14: the condition is denied":
            "return jax.lax.stop_gradient(total) if not (total >= 2 and True) else -total",
        "14: or for and": "return jax.lax.stop_gradient(total) if total >= 2 or True else -total",
        "14: > for >=": "return jax.lax.stop_gradient(total) if total > 2 and True else -total",
        "14: 3 for 2": "return jax.lax.stop_gradient(total) if total >= 3 and True else -total",
        "14: False for True": "return jax.lax.stop_gradient(total) if total >= 2 and False else -total",
        "14: stop_gradient is left out": "return (total) if total >= 2 and True else -total",
        "14: the sign is left out": "return jax.lax.stop_gradient(total) if total >= 2 and True else total",
    }  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1])
def test_drawn_faults_fit_the_code_and_are_the_same_for_a_seed(tmp_path: Path, seed: int) -> None:
    packages = ("weights", "tabular")
    drawn = drawing.draw(packages, 20, seed, widely=False)
    assert drawn == drawing.draw(packages, 20, seed, widely=False)
    assert drawn != drawing.draw(packages, 20, seed + 1, widely=False)
    for name, rows in drawn.items():
        (tmp_path / f"{name}.toml").write_text(drawing.toml(rows), encoding="utf-8")
        assert tomllib.loads(drawing.toml(rows))["mutant"] == rows
    table = planting.read_table(tmp_path)
    planting.check(table, ROOT)  # each applies at one place, leaves Python, and names tests that are there
    assert len(table) == 20


def test_widely_all_tests_of_the_folder_look() -> None:
    file = ROOT / "sapp" / "weights" / "dualdice.py"
    own, wide = drawing.tests_of(file, widely=False), drawing.tests_of(file, widely=True)
    assert own == ["tests/weights/test_dualdice.py"]
    assert set(own) < set(wide) == {f"tests/weights/{each.name}" for each in (ROOT / "tests/weights").glob("test_*.py")}


def test_the_page_says_what_the_tests_found_of_faults_drawn_at_random() -> None:
    with open(ROOT / "bench" / "rows" / "mutants-drawn.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    count = Counter(row["verdict"] for row in rows)
    alike = count.pop("equivalent") + count.pop("cosmetic")
    text = (ROOT / "bench" / "README.md").read_text(encoding="utf-8")
    assert f"{len(rows)} such faults, in all packages" in text
    assert {row["area"] for row in rows} == set(drawing.PACKAGES)
    names = {"killed": "of the module's own name", "found elsewhere": "found by other tests", "missed": "tests tried"}
    for verdict, name in names.items():
        assert f"{name} | {count[verdict]} |" in text
    assert f"one of speed only | {alike} |" in text
    found, matter = count["killed"] + count["found elsewhere"], count.total()
    assert f"of {matter} faults that matter the tests found {found}, or {100 * found / matter:.0f} %" in text
    by_tests = {row["name"] for row in rows if row["verdict"] in ("killed", "found elsewhere")}
    assert by_tests == {row["name"] for row in rows if row["found_by"]}
