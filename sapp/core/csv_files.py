"""CSV files that somebody else may have written: read whole, or refused in one line."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from pathlib import Path

from sapp.core.errors import SappError, one_line
from sapp.core.files import write_text

csv.field_size_limit(1 << 30)  # Python's own limit is reached by the returns of ten thousand episodes
MOST = 1e100
"""No number that is measured is larger; sums of squares of those that are would be infinite."""

Line = tuple[str, ...]


def read_text(path: Path) -> str:
    """The text of a file, without the mark that spreadsheets begin theirs with."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise SappError(f"{path}: cannot be read ({error.strerror}); make it readable") from None
    except UnicodeDecodeError as error:
        raise SappError(f"{path}: cannot be read as CSV ({one_line(error)}); restore the file") from None


def lines_of(path: Path, text: str) -> list[Line]:
    """The lines of a text that are not blank, all as long as the first; ``path`` is what messages call it."""
    try:
        lines = [tuple(line) for line in csv.reader(io.StringIO(text, newline=""), strict=True) if line]
    except csv.Error as error:
        raise SappError(f"{path}: cannot be read as CSV ({one_line(error)}); restore the file") from None
    for number, line in enumerate(lines, 1):
        if len(line) != len(lines[0]):
            raise SappError(
                f"{path}, line {number}: has {len(line)} cells, not {len(lines[0])} as the first; restore the file"
            )
        if not all(map(str.isprintable, line)):
            raise SappError(f"{path}, line {number}: holds control characters; restore the file")
    return lines


def read_table(path: Path, columns: Sequence[str], text: str | None = None) -> list[Line]:
    """The lines below the head of a file of ours (or a text in its place) with these columns, whole to its end."""
    text = read_text(path) if text is None else text
    head, *lines = lines_of(path, text) or [()]
    if head != tuple(columns):
        raise SappError(f"{path}: must have the columns {', '.join(columns)}; restore the file or name another folder")
    if not text.endswith("\n"):
        raise SappError(f"{path}: its last line is cut off; restore the file")
    return lines


def table_text(columns: Sequence[str], lines: Sequence[Line]) -> str:
    """The text of a file of ours."""
    content = io.StringIO()
    csv.writer(content, lineterminator="\n").writerows([columns, *lines])
    return content.getvalue()


def write_table(path: Path, columns: Sequence[str], lines: Sequence[Line]) -> None:
    """Write a file whole or not at all."""
    write_text(path, table_text(columns, lines))


def whole(text: str) -> int | None:
    """A whole number of 64 bits as it is written here, so that equal numbers are equal texts; else None."""
    if re.fullmatch("0|-?[1-9][0-9]{0,18}", text) is None or not -(2**63) < int(text) < 2**63:
        return None
    return int(text)


def measured(text: str) -> float | None:
    """A finite number that can have been measured; else None."""
    try:
        value = float(text)
    except ValueError:
        return None
    plain = text.isascii() and "_" not in text
    return value if plain and math.isfinite(value) and abs(value) <= MOST else None
