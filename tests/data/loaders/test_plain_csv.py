"""CSV without pyarrow gives the columns that pyarrow's reader gives."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.data import Ledger, load
from sapp.data.loaders.arrow import table_of_arrow
from sapp.data.loaders.plain_csv import read_plain_csv
from sapp.data.loaders.table_files import read_table
from sapp.data.table import Table

CELLS = {
    "whole": ["1", "-2", "007", "9007199254740993"],
    "whole with gaps": ["1", "", "NA", "3"],
    "too large": ["1", "99999999999999999999", "2", "3"],
    "numbers": ["1.5", "-2e-3", ".5", "3."],
    "numbers with gaps": ["1.5", "nan", "null", "#N/A"],
    "infinite": ["inf", "-inf", "1", "NaN"],
    "spaces": [" 1", "2 ", "3", "4"],
    "flags": ["true", "False", "TRUE", "false"],
    "flags with gaps": ["true", "", "false", "1"],
    "empty": ["", "", "NA", "null"],
    "dates": ["2024-01-31", "2024-02-29", "", "1969-12-31"],
    "seconds": ["2024-01-31 12:00:05", "2024-01-31T12:00:06", "", "2024-01-31 12:01:00"],
    "nanoseconds": ["2024-01-31 12:00:05.25", "2024-01-31 12:00:06.123456789", "2024-01-31 12:00", "2024-01-31"],
    "zones": ["2024-01-31 12:00:05Z", "2024-01-31 12:00:06+02:00", "2024-01-31 12:01:00-05:30", ""],
    "no dates": ["2024-02-30", "2024-01-01", "2024-01-02", ""],
    "text": ["left", "", "NA", "right, or so"],
    "signed": ["+1", "2", "3", "4"],
    "said twice": ['a "b"', "c", "d", "e"],
    "underscored": ["1_000", "2", "3", "4"],
}


def text(marks: str = ",") -> str:
    rows = [list(CELLS), *zip(*CELLS.values(), strict=True)]
    quoted = [[f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row] for row in rows]
    found = "\n".join(marks.join(row) for row in quoted) + "\n\n"
    return found if marks == "," else found.replace("right, or so", "right")


def same(ours: Table, theirs: Table) -> None:
    assert (ours.names, ours.rows) == (theirs.names, theirs.rows)
    for name in ours.names:
        one, other = ours.column(name), theirs.column(name)
        assert one.dtype == other.dtype, name
        assert (
            one.tolist() == pytest.approx(other.tolist(), rel=0, abs=0, nan_ok=True)
            if one.dtype.kind == "f"
            else (str(one.tolist()) == str(other.tolist()))
        ), name


@pytest.mark.parametrize("marks", [",", ";", "|"])
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_columns_are_those_of_pyarrow(marks: str, ending: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path, content = tmp_path / f"log{ending}", b"\xef\xbb\xbf" + text(marks).encode()
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    ledgers = Ledger(), Ledger()
    same(read_plain_csv(path, ledgers[0]), table_of_arrow(read_table(path, ledgers[1])[0], "log"))
    assert ledgers[0].lines() == ledgers[1].lines()


def test_a_log_is_the_same_dataset_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    rows = [f"{n // 7},{rng.normal():.9g},{rng.normal() if n % 9 else ''},{rng.uniform(-1, 1)},{n % 3},{n % 7 == 6}"
            for n in range(70)]  # fmt: skip
    (tmp_path / "log.csv").write_text("\n".join(["episode,observation_0,observation_1,action,reward,terminal", *rows]))
    expected = load(tmp_path / "log.csv", columns={"missing": "fill"})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    found = load(tmp_path / "log.csv", columns={"missing": "fill"})
    assert found.fingerprint == expected.fingerprint
    assert Ledger.of(found).lines() == Ledger.of(expected).lines()
    with pytest.raises(SappError, match=r"reading Parquet needs pyarrow.*pip install 'sapp-rl\[tables\]'"):
        load(tmp_path / "log.parquet")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "file is empty"),
        (b"a,b\n1,2\n1,2,3\n", "row 1 has 3 cells, the first line 2"),
        (b"a,b\n1,\xff\n", "its text is not UTF-8"),
        (b"a,a\n1,2\n", "column 'a' appears more than once"),
        (b'a,b\n1,"2\n', "cannot be read as csv"),
    ],
)
def test_what_is_no_table_is_one_line(content: bytes, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(content)
    with pytest.raises(SappError, match=complaint) as error:
        read_plain_csv(tmp_path / "log.csv", Ledger())
    assert "\n" not in str(error.value)
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n")[:-9])
    with pytest.raises(SappError, match="cannot be read as csv"):
        read_plain_csv(tmp_path / "log.csv.gz", Ledger())
