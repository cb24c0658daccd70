"""CSV files as Europe writes them: other marks between cells and before decimals, text that is not UTF-8."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.data import Ledger, load_vectors
from sapp.data.loaders.csv_marks import Marks, csv_marks

ROWS = [(0.5, -0.25, 1.125, 0), (1.5, 0.75, 10.0, 0), (2.25, 0.5, 3.5, 1)]


def european(path: Path, start: str = "") -> Path:
    lines = ["obs;action;reward;terminal", *(";".join(str(cell).replace(".", ",") for cell in row) for row in ROWS)]
    path.write_text(start + "\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("pyarrow", [True, False])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_decimal_commas_and_a_mark_of_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pyarrow: bool, start: str
) -> None:
    if not pyarrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    data = load_vectors(european(tmp_path / "log.csv", start))
    np.testing.assert_array_equal(data.observation[:, 0], [row[0] for row in ROWS])
    np.testing.assert_array_equal(data.action[:, 0], [row[1] for row in ROWS])
    np.testing.assert_array_equal(data.reward, [row[2] for row in ROWS])
    assert Ledger.of(data).lines()[:2] == [
        "columns are separated by semicolons, not commas: read as such",
        "decimals are written with a comma: read as such",
    ]  # fmt: skip


def marks(path: Path, text: str) -> Marks:
    path.write_text(text)
    return csv_marks(path, Ledger())


def test_marks_are_found_in_the_first_line_and_said(tmp_path: Path) -> None:
    for cell, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        ledger, text = Ledger(), f"a{cell}b{cell}c\n1{cell}2{cell}3\n"
        (tmp_path / "log.csv").write_text(text)
        (tmp_path / "log.csv.gz").write_bytes(gzip.compress(text.encode()))
        for name in ("log.csv", "log.csv.gz"):
            assert csv_marks(tmp_path / name, ledger) == Marks(cell, ".")
        assert ledger.lines() == [f"columns are separated by {word}, not commas: read as such"] * 2
    assert marks(tmp_path / "log.csv", "a;b\n1;2\n") == Marks()  # once may be part of a name
    assert marks(tmp_path / "log.csv", "a,b;c;d\n1,2\n") == Marks()


def test_commas_that_may_be_of_thousands_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    assert marks(path, "a;b;c\n1,234;2;3\n") == Marks(";", ".")
    assert marks(path, "a;b;c\n1,234;2,5;3\n") == Marks(";", ",")
    assert marks(path, "a;b;c\n1.5;2,5;3\n") == Marks(";", ".")
    assert marks(path, "a\tb\tc\n1,5\t2\t3\n") == Marks("\t", ",")
    assert marks(path, 'a,"b;c;d"\n1,2\n') == Marks()
    assert marks(path, "") == Marks()
    path.write_text("obs;action;reward;terminal\n1,234;0;1;0\n1,235;1;1;1\n")
    with pytest.raises(
        SappError, match=r"column 'obs' is '1,234' at row 0, not a number; .*decimals are read with a point"
    ):
        load_vectors(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("obs,action\n1,2\n".encode("utf-16"), "its text is UTF-16; save it as UTF-8"),
        ("température,action\n1,2\n".encode("latin-1"), r"its text is not UTF-8 \(byte 4\); save it as UTF-8"),
        (b"# by machine 7\nobs,action\n1,2\n", "its first line is a comment .*; let it begin with the names"),
    ],
)
def test_text_that_cannot_be_read_says_what_to_do(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "log.csv").write_bytes(content)
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(content))
    for name in ("log.csv", "log.csv.gz"):
        with pytest.raises(SappError, match=words) as caught:
            load_vectors(tmp_path / name)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("start", ["sep=;\n", "Report: Reactor 1\nof 2024\n"])
def test_what_comes_before_the_names_is_said(tmp_path: Path, start: str) -> None:
    path = european(tmp_path / "log.csv", start)
    with pytest.raises(SappError, match="does not hold the names of the columns; take out what comes before them"):
        csv_marks(path, Ledger())
