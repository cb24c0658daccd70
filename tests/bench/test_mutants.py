"""bench/mutants.py: faults are planted in a copy, and found or not; a table that does not fit the code is refused."""

from __future__ import annotations

import csv
import importlib
import json
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[2] / "bench"

CODE = '''
def double(x):
    """Twice as much."""
    return 2 * x


def countdown(n):
    """How many steps to 0."""
    steps = 0
    while n > 0:
        n, steps = n - 1, steps + 1
    return steps
'''
TESTS = """
from sapp import countdown, double

def test_double():
    assert double(2) == 4

def test_countdown():
    assert countdown(2) == 2
"""
TABLE = """
[[mutant]]
name = "thrice"
meaning = "three times as much"
file = "sapp/__init__.py"
old = "return 2 * x"
new = "return 3 * x"
tests = ["tests/test_it.py::test_double"]

[[mutant]]
name = "square"
meaning = "the square, which is 4 of 2, too"
file = "sapp/__init__.py"
old = "return 2 * x"
new = "return x * x"
tests = ["tests/test_it.py"]

[[mutant]]
name = "for ever"
meaning = "never gets to 0"
file = "sapp/__init__.py"
old = "n - 1, steps + 1"
new = "n + 0, steps + 1"
tests = ["tests/test_it.py"]

[[mutant]]
name = "no module"
meaning = "cannot be imported"
file = "sapp/__init__.py"
old = "def double(x):"
new = "import nothing_of_this_name\\n\\ndef double(x):"
tests = ["tests/test_it.py"]
"""


@pytest.fixture
def mutants(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("mutants")


@pytest.fixture
def checkout(mutants: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project of two functions, their tests, and four faults."""
    root = tmp_path / "checkout"
    files = {"sapp/__init__.py": CODE, "tests/test_it.py": TESTS, "bench/mutations/all.toml": TABLE}
    files[".gitignore"] = "/out"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    monkeypatch.setattr(mutants, "ROOT", root)
    return root


def call(mutants: ModuleType, root: Path, *options: str) -> int:
    return mutants.main(["--table", str(root / "bench/mutations"), "--out", str(root / "out"), *options])


def test_what_was_found_what_was_not_and_what_took_too_long(
    mutants: ModuleType, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(mutants, checkout, "--seconds", "4") == 2  # one cannot even be imported
    with (checkout / "out/mutants.csv").open() as file:
        found = {row["name"]: (row["verdict"], row["found_by"]) for row in csv.DictReader(file)}
    assert found["thrice"] == ("killed", "tests/test_it.py::test_double")
    assert found["square"] == ("survived", "")
    assert found["for ever"][0] == "timed out"
    assert found["no module"][0] == "broken"
    assert "**1 of 4 are found, 25.0 %**" in capsys.readouterr().out
    assert (checkout / "sapp/__init__.py").read_text() == CODE
    for number in range(2):
        assert (checkout / f"out/copy-{number}/sapp/__init__.py").read_text() == CODE

    # called again only what has changed is run again: here the tests of one
    lines = (checkout / "out/results.jsonl").read_text().splitlines()
    assert call(mutants, checkout, "--only", "thrice", "square") == 1
    assert (checkout / "out/results.jsonl").read_text().splitlines() == lines
    (checkout / "tests/test_it.py").write_text(TESTS + "\ndef test_more():\n    assert double(3) == 6\n")
    assert call(mutants, checkout, "--only", "thrice", "square") == 0
    again = [json.loads(line) for line in (checkout / "out/results.jsonl").read_text().splitlines()[len(lines) :]]
    assert {row["name"]: row["verdict"] for row in again} == {"thrice": "killed", "square": "killed"}


def test_tests_that_fail_by_themselves_find_nothing(
    mutants: ModuleType, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "tests/test_it.py").write_text(TESTS.replace("== 4", "== 5"))
    assert call(mutants, checkout, "--only", "thrice", "--workers", "1") == 2
    assert "tests fail with nothing planted: tests/test_it.py::test_double" in capsys.readouterr().err
    assert not (checkout / "out/results.jsonl").exists()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('old = "return 2 * x"', 'old = "return 4 * x"', "'old' occurs 0 times in sapp/__init__.py"),
        ('old = "return 2 * x"', 'old = "x"', r"'old' occurs \d+ times in sapp/__init__.py"),
        ('file = "sapp/__init__.py"', 'file = "sapp/gone.py"', "there is no sapp/gone.py"),
        ('"tests/test_it.py"', '"tests/test_gone.py"', "there is no tests/test_gone.py"),
        ('new = "return 3 * x"', 'new = "return 2 * x"', "it changes nothing"),
        ('new = "return 3 * x"', 'new = "return 3 *"', "is no Python any more"),
        ('name = "square"', 'name = "thrice"', "the name of two faults"),
        ('meaning = "never gets to 0"', "", "meaning is missing"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(
    mutants: ModuleType, checkout: Path, old: str, new: str, words: str
) -> None:
    table = checkout / "bench/mutations/all.toml"
    table.write_text(TABLE.replace(old, new))
    with pytest.raises(mutants.Unfit, match=words):
        mutants.check(mutants.read_table(table.parent), checkout)


def test_the_faults_of_this_project_fit_its_code(mutants: ModuleType) -> None:
    """Where this fails, code has changed that a fault is planted in: move the fault to where its meaning now is."""
    found = mutants.read_table(mutants.TABLE)
    mutants.check(found, mutants.ROOT)
    assert len(found) >= 100
    assert len({mutant.area for mutant in found}) >= 10
    with pytest.raises(mutants.Unfit, match="no such area or fault"):
        mutants.chosen(found, ["nonsense"])


def test_the_page_shows_the_committed_rows(mutants: ModuleType) -> None:
    rows = mutants.read_csv(BENCH / "rows" / "mutants.csv")
    assert mutants.figures(rows) in (BENCH / "README.md").read_text(encoding="utf-8")
    assert mutants.share(rows) >= mutants.BAR
    assert {row["name"] for row in rows} == {mutant.name for mutant in mutants.read_table(mutants.TABLE)}


def test_the_page_says_how_many_faults_the_tests_found_that_they_had_not_been_written_for(mutants: ModuleType) -> None:
    rows = mutants.read_csv(BENCH / "rows" / "mutants-unseen.csv")
    found = sum(row["verdict"] == "killed" for row in rows)
    text = (BENCH / "README.md").read_text(encoding="utf-8")
    assert f"**{found} of {len(rows)} were found.** The other {len(rows) - found} have tests by now" in text
    kept = {row["name"] for row in rows} & {mutant.name for mutant in mutants.read_table(mutants.TABLE)}
    assert f"and {len(kept)} of the {len(rows)} are in the table above" in text
