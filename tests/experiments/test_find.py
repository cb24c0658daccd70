"""Experiments are found by name, or in a file that declares one."""

from __future__ import annotations

from pathlib import Path

import pytest

from sapp.core.errors import SappError
from sapp.experiments.find import EXPERIMENTS, declared, find_experiment
from sapp.experiments.grid import SCALES, scaled

FILE = """
from sapp.data import Dataset
from sapp.experiments.grid import Family, Grid
from sapp.experiments.variants import named

def grid(scale):
    families = (Family("all", {"BC": named(scale, "bc")}),)
    return Grid("mine", "My table", "Which is better?", scale, ("data",), families, "BC")
"""


def test_a_file_declares_an_experiment(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(FILE)
    grid = find_experiment(str(file))(scaled("smoke"))
    assert (grid.name, grid.variants, grid.focus) == ("mine", ("BC",), "BC")
    assert find_experiment("b0") is EXPERIMENTS["b0"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("tabel1", None, "'tabel1' is unknown.*table1"),
        ("no.py", None, "no such file"),
        ("other.py", "x = 1\n", "defines no function grid"),
        ("broken.py", "import nothing_of_that_name\n", "cannot be imported.*nothing_of_that_name"),
    ],
)
def test_what_is_no_experiment_is_refused(tmp_path: Path, name: str, content: str | None, words: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(SappError, match=words):
        find_experiment(str(tmp_path / name) if name.endswith(".py") else name)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def grid(scale):\n    return 3\n", "grid(scale) returns int, not a sapp.experiments.grid.Grid"),
        ("def grid():\n    return 3\n", "grid(scale) failed (TypeError"),
    ],
)
def test_what_a_file_declares_must_be_a_grid(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(SappError) as caught:
        declared(str(tmp_path / "mine.py"), SCALES["smoke"])
    assert words in str(caught.value)
