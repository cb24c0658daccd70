"""A file of scores is a source of a report like any other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.report import report
from sapp.report.sources import read

HEAD = "method,dataset,seed,step,returns\n"


def test_returns_become_scores_where_the_task_has_them(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text(f"{HEAD}ours,hopper-medium,0,20,3234.3;-20.272305\nours,hopper-medium,0,10,0;0\nours,mine,1,5,7;9\n")
    (experiment,) = read([file])
    scored, raw = experiment.members
    assert (scored.unit, raw.unit) == ("score", "return")
    assert list(scored.evaluations) == [10, 20]
    np.testing.assert_allclose(list(scored.evaluations[20].values()), [100.0, 0.0], atol=1e-9)
    assert raw.evaluations[5] == {0: 7.0, 1: 9.0}
    assert "ours" in report([file], tmp_path / "page.html").read_text(encoding="utf-8")


def test_what_a_method_did_in_two_runs_is_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text("run,method,dataset,seed,step,returns\na,x,d,0,5,1\nb,x,d,0,5,2\nb,y,d,0,5,3\n")
    (experiment,) = read([file])
    assert experiment.variants == ("x (a)", "x (b)", "y")


def test_a_spreadsheets_mark_is_no_part_of_the_first_column(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text(f"{HEAD}x,d,0,5,1\n", encoding="utf-8-sig")
    assert read([tmp_path / "s.csv"])[0].variants == ("x",)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\n1,2\n", "no column 'method'"),
        (HEAD, "no column 'method'"),
        (f"{HEAD}x,d,zero,5,1\n", "line 2: give whole numbers"),
        (f"{HEAD}x,d,0,5,1;two\n", "line 2"),
        (f"{HEAD}x,d,0\n", "line 2"),
        (f"{HEAD}x,d,0,5,nan\n", "line 2: give whole numbers as seed and step and finite ones"),
        (f"{HEAD}x,d,0,5,1e308;1e308\n", "line 2: give whole"),
        (f"{HEAD}x,d,0,5,1_0\n", "line 2: give whole"),
        (f"{HEAD}x,d,{2**63},5,1\n", "line 2: give whole"),
        (f"{HEAD}x,d,0,5,1\nx,d,0,5,2\n", "line 3: step 5 of that member is there already"),
        (f"{HEAD}x\x1b[2J,d,0,5,1\n", "line 2: holds control characters"),
        (f"{HEAD[:-1]},returns\nx,d,0,5,1,2\n", "no column 'returns', or two"),
        (f"{HEAD}é,d,0,5,1\n", "cannot be read as CSV"),
        (f'{HEAD}"x,d,0,5,1\n', "cannot be read as CSV"),
    ],
)
def test_broken_files_are_refused_in_one_line(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "scores.csv").write_text(content, encoding="latin-1")
    with pytest.raises(SappError, match=words) as caught:
        read([tmp_path / "scores.csv"])
    assert "\n" not in str(caught.value)
