"""CSV without pyarrow: the same columns as its reader makes, more slowly."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sapp.data.ledger import Ledger
from sapp.data.loaders.csv_marks import csv_marks
from sapp.data.loaders.files import readable, require_file
from sapp.data.loaders.limits import check_size
from sapp.data.table import Table

_EMPTY = frozenset(
    ("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA", "NULL",
     "NaN", "n/a", "nan", "null")
)  # fmt: skip
"""What counts as an empty cell of a column that is not text, as for pyarrow."""
_FLAGS = {"1": 1.0, "True": 1.0, "TRUE": 1.0, "true": 1.0, "0": 0.0, "False": 0.0, "FALSE": 0.0, "false": 0.0}
_WHOLE = re.compile(r"-?\d{1,19}")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|inf|infinity|nan)", re.IGNORECASE)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(\.\d{1,9})?)?)(Z|[+-]\d\d:\d\d)?)?")


def read_plain_csv(path: Path, ledger: Ledger) -> Table:
    """The table of a CSV file, gzipped or not.

    Args:
        path: of the file; commas, semicolons, tabs or bars separate its cells.
        ledger: takes down how it was read.
    """
    require_file(path)

    def read() -> Table:
        marks = csv_marks(path, ledger)
        rows = _rows(_text(path), marks.cell)
        if not rows:
            raise ValueError("it is empty")
        names, *values = rows
        for number, row in enumerate(values):
            if len(row) != len(names):
                raise ValueError(f"row {number} has {len(row)} cells, the first line {len(names)}")
        places = {name: place for place, name in enumerate(names)}

        def column(name: str) -> np.ndarray:
            return _column([row[places[name]] for row in values], marks.decimal)

        return Table(names, len(values), column, str(path))

    return readable(path, "csv", read, (OSError, ValueError, EOFError, zlib.error, csv.Error))


def _text(path: Path) -> str:
    """The whole file; compressed text that unfolds without end is refused."""
    if path.suffix.lower() != ".gz":
        return path.read_bytes().decode("utf-8-sig")
    parts, total = [], 0
    with gzip.open(path) as stream:
        while part := stream.read(1 << 22):
            parts.append(part)
            total += len(part)
            check_size(path, total)
    return b"".join(parts).decode("utf-8-sig")


def _rows(text: str, mark: str) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True) if row]


def _column(cells: Sequence[str], decimal: str = ".") -> np.ndarray:
    """Cells as whole numbers, flags, times, numbers or text: the first of these that all of them read as."""
    bare = [cell.strip() for cell in cells]
    known = [cell for cell in bare if cell not in _EMPTY]
    gaps = len(known) < len(bare)
    if all(_WHOLE.fullmatch(cell) for cell in known) and all(-(2**63) <= int(cell) < 2**63 for cell in known):
        return _numbers(bare) if gaps or not known else np.array([int(cell) for cell in bare], np.int64)
    if all(cell in _FLAGS for cell in known):
        found = np.array([_FLAGS.get(cell, np.nan) for cell in bare])
        return found if gaps else found.astype(bool)
    if (times := _times(bare)) is not None:
        return times
    if decimal == ",":
        bare, known = ([cell.replace(",", ".") for cell in part] for part in (bare, known))
    if all(_NUMBER.fullmatch(cell) for cell in known):
        return _numbers(bare)
    out = np.empty(len(cells), object)
    out[:] = list(cells)
    return out


def _numbers(cells: Sequence[str]) -> np.ndarray:
    return np.array([np.nan if cell in _EMPTY else float(cell) for cell in cells], np.float64)


def _times(cells: Sequence[str]) -> np.ndarray | None:
    """Dates and times; of those with a zone, the time in UTC. None where they are none, or not all alike."""
    found = [None if cell in _EMPTY else _TIME.fullmatch(cell) for cell in cells]
    if any(match is None and cell not in _EMPTY for match, cell in zip(found, cells, strict=True)):
        return None
    matches = [match for match in found if match is not None]
    if len({match[4] is None for match in matches}) > 1:
        return None
    unit = "us" if not any(match[2] for match in matches) else "ns" if any(match[3] for match in matches) else "s"
    try:
        return np.array([_moment(match) for match in found], f"datetime64[{unit}]")
    except ValueError:  # such as February 30
        return None


def _moment(match: re.Match[str] | None) -> np.datetime64:
    if match is None:
        return np.datetime64("NaT")
    day, time, _, zone = match.groups()
    moment = np.datetime64(f"{day}T{time}" if time else day)
    if zone in (None, "Z"):
        return moment
    minutes = int(zone[1:3]) * 60 + int(zone[4:6])
    return moment - np.timedelta64(minutes if zone[0] == "+" else -minutes, "m")
