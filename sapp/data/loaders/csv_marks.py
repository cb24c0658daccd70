"""How a CSV file is written: what separates its cells, and whether decimals have a comma."""

from __future__ import annotations

import codecs
import csv
import gzip
import re
from pathlib import Path
from typing import NamedTuple

from sapp.core.decode import shown
from sapp.core.errors import SappError
from sapp.data.ledger import Kind, Ledger

_HEAD = 1 << 16
"""Bytes of text that are looked at."""
_MARKS = ((";", "semicolons"), ("\t", "tabs"), ("|", "bars"))
_WITH_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_WITH_POINT = re.compile(r"[+-]?\d+\.\d+(?:[eE][+-]?\d+)?")


class Marks(NamedTuple):
    """What stands between cells, and before decimals."""

    cell: str = ","
    decimal: str = "."


def csv_marks(path: Path, ledger: Ledger) -> Marks:
    """Find the marks of a file from its first lines; text that is not UTF-8 is refused.

    Args:
        path: of the file, gzipped or not.
        ledger: takes down what is not as usual.
    """
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        head = file.read(_HEAD)
    try:
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise UnicodeDecodeError("utf-8", head, 0, 2, "UTF-16")
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError as error:
        kind = "UTF-16" if error.reason == "UTF-16" else f"not UTF-8 (byte {error.start})"
        raise SappError(f"{path}: its text is {kind}; save it as UTF-8 (Excel calls it CSV UTF-8)") from None
    lines = [line for line in text.splitlines() if line]
    first = lines[0] if lines else ""
    if first.startswith("#"):
        raise SappError(
            f"{path}: its first line is a comment ({shown(first)}); let it begin with the names of the columns"
        )
    marks = [",", *(mark for mark, _ in _MARKS)]
    widest = max((line.count(mark) for line in lines[1:30] for mark in marks), default=0)
    if widest >= 2 and max(first.count(mark) for mark in marks) < widest / 2:
        raise SappError(
            f"{path}: its first line ({shown(first)}) does not hold the names of the columns; take out what comes "
            f"before them"
        )
    try:
        if len(next(csv.reader([first]), [])) != 1:
            return Marks()
    except csv.Error:
        return Marks()
    found = next(((mark, word) for mark, word in _MARKS if first.count(mark) >= 2), None)
    if found is None:
        return Marks()
    mark, word = found
    ledger.say(Kind.READ, f"columns are separated by {word}, not commas: read as such")
    whole = lines[1:] if len(head) < _HEAD else lines[1:-1]
    cells = [cell.strip().strip('"') for line in whole for cell in line.split(mark)]
    commas = [cell for cell in cells if _WITH_COMMA.fullmatch(cell)]
    thousands = all(_THOUSANDS.fullmatch(cell) for cell in commas)  # 1,234 may be either
    if commas and not thousands and not any(_WITH_POINT.fullmatch(cell) for cell in cells):
        ledger.say(Kind.READ, "decimals are written with a comma: read as such")
        return Marks(mark, ",")
    return Marks(mark)
