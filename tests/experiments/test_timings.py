"""A file of timings: lines are added once each, and numbers that are none are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from sapp.core.errors import SappError
from sapp.experiments import timings

HEAD = "job,variants,members,steps,seconds,device\n"


def test_a_file_that_is_not_there_has_no_lines(tmp_path: Path) -> None:
    assert timings.read(tmp_path / "t.csv") == []
    assert list(tmp_path.iterdir()) == []


def test_lines_are_added_after_those_that_are_there_and_once_each(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    first, later = ("hopper", "CQL, SA-CQL", 4, 1000, 12.5, "cpu"), ("walker", "CQL", 2, 0, 0.25, "gpu")
    timings.add(path, [first])
    timings.add(path, [later, first, later])
    assert path.read_text() == f'{HEAD}hopper,"CQL, SA-CQL",4,1000,12.5,cpu\nwalker,CQL,2,0,0.25,gpu\n'
    assert timings.read(path) == [tuple(map(str, first)), tuple(map(str, later))]
    assert [each.name for each in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize(
    "numbers",
    ["0,10,1.5", "-1,10,1.5", "2.0,10,1.5", ",10,1.5", "2,-1,1.5", "2,1e3,1.5", "2,10,soon", "2,10,nan", "2,10,1e200"],
)
def test_numbers_that_are_none_are_refused_and_the_file_stays(tmp_path: Path, numbers: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(before := f"{HEAD}a,CQL,1,10,1.5,cpu\nb,CQL,{numbers},cpu\n")
    words = r"t\.csv, line 3: members, steps or seconds are no such number; restore the file"
    with pytest.raises(SappError, match=words):
        timings.read(path)
    with pytest.raises(SappError, match=words):
        timings.add(path, [("c", "CQL", 1, 10, 1.5, "cpu")])
    assert path.read_text() == before


def test_another_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("task,seconds\nmine,1\n")
    with pytest.raises(SappError, match="must have the columns job, variants, members, steps, seconds, device"):
        timings.read(path)
