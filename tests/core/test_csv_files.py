"""CSV files are read whole or refused in one line, and numbers are taken only as they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from sapp.core.csv_files import (
    MOST,
    lines_of,
    measured,
    read_table,
    read_text,
    table_text,
    whole,
    write_table,
)
from sapp.core.errors import SappError

COLUMNS = ("name", "value")
LINES = [("plain", "1"), ("a, b", "2"), ('says "no"', ""), ("é", "-0.5")]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    write_table(path, COLUMNS, LINES)
    assert path.read_bytes() == 'name,value\nplain,1\n"a, b",2\n"says ""no""",\né,-0.5\n'.encode()
    assert path.read_bytes() == table_text(COLUMNS, LINES).encode()
    assert read_table(path, COLUMNS) == LINES
    assert read_table(tmp_path / "none.csv", COLUMNS, table_text(COLUMNS, LINES[:1])) == LINES[:1]
    write_table(path, COLUMNS, [])
    assert read_table(path, COLUMNS) == []


def test_a_spreadsheets_mark_and_blank_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfname,value\r\n\r\nplain,1\r\n")
    assert read_text(path) == "name,value\r\n\r\nplain,1\r\n"
    assert lines_of(path, read_text(path)) == [COLUMNS, ("plain", "1")]
    assert lines_of(path, "") == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "must have the columns name, value; restore the file or name another folder"),
        (b"value,name\n1,x\n", "must have the columns name, value"),
        (b"name,value\nx,1", "its last line is cut off"),
        (b"name,value\nx,1\nx\n", "line 3: has 1 cells, not 2 as the first"),
        (b"name,value\nx,\x1b[2J\n", "line 2: holds control characters"),
        (b'name,value\nx,"1\n', r"cannot be read as CSV \(.*\); restore the file"),
        (b"name,value\n\xe9,1\n", "cannot be read as CSV"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(SappError, match=words) as caught:
        read_table(path, COLUMNS)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(SappError, match=r"none\.csv: cannot be read \(No such file or directory\); make it readable"):
        read_text(tmp_path / "none.csv")
    with pytest.raises(SappError, match=r"cannot be read \(Is a directory\)"):
        read_text(tmp_path)


def test_cells_may_be_longer_than_python_reads_by_itself(tmp_path: Path) -> None:
    long = "1.5;" * 50_000  # 200,000 characters; Python's own limit is 131,072
    assert lines_of(tmp_path, f"a,{long}\n") == [("a", long)]


def test_whole_numbers_are_of_64_bits_and_written_in_one_way() -> None:
    for value in (0, 7, -1, 10, 2**63 - 1, -(2**63) + 1):
        assert whole(str(value)) == value
    large = str(2**63), str(-(2**63) - 1)
    for text in (*large, "", "00", "-0", "07", "+7", " 7", "1_0", "1.0", "1e3", "x", "7\n", "\u0663"):
        assert whole(text) is None, text


def test_measured_numbers_are_finite() -> None:
    for text, value in (("1.5", 1.5), ("-2", -2.0), ("1e-300", 1e-300), ("1e100", MOST), ("0", 0.0)):
        assert measured(text) == value
    for text in ("", "x", "nan", "inf", "-inf", "1.1e100", "-1e101", "1_0", "\u0663", "1,5"):
        assert measured(text) is None, text
