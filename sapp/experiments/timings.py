"""How long training took: a CSV file beside a results store, the only part of an experiment that differs each time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sapp.core.csv_files import Line, measured, read_table, whole, write_table
from sapp.core.errors import SappError

COLUMNS = ("job", "variants", "members", "steps", "seconds", "device")


def read(path: Path) -> list[Line]:
    """The lines of a file of timings; none where there is no file."""
    if not path.exists():
        return []
    lines = read_table(path, COLUMNS)
    check(path, lines)
    return lines


def check(path: Path, lines: Iterable[Line]) -> None:
    """Refuse numbers that are none; ``path`` is what messages call the file."""
    for number, (_, _, members, steps, seconds, _) in enumerate(lines, 2):
        counts = whole(members) or 0, whole(steps)
        if counts[0] < 1 or counts[1] is None or counts[1] < 0 or measured(seconds) is None:
            raise SappError(f"{path}, line {number}: members, steps or seconds are no such number; restore the file")


def add(path: Path, rows: Iterable[Iterable[object]]) -> None:
    """Whole file anew, so that a reader never sees half a line; a job that was collected twice is listed once."""
    known = read(path)
    write_table(path, COLUMNS, list(dict.fromkeys([*known, *(tuple(map(str, row)) for row in rows)])))
