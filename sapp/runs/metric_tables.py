"""Append-only CSV files that survive being cut off anywhere."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sapp.core.errors import SappError, printable
from sapp.core.files import no_links, sync, write_text


class Table:
    """A CSV file with fixed columns whose first column is the step.

    Rows are appended and flushed; ``rewind`` drops what was written after a checkpoint, and half a last line, so that a
    resumed run continues the file as if it had never stopped.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        """Columns must begin with ``step``."""
        self.path, self.columns = path, list(columns)

    def rewind(self, step: int) -> None:
        """Keep the rows up to a step; start the file if there is none."""
        # a power cut may have damaged what came after the last checkpoint, and nothing before it
        known = _checked(self.path, tail=True) if self.path.exists() else []
        rows = [row for row, _ in known if int(row["step"]) <= step]
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, restval="", extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_text(self.path, text.getvalue())

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows; floats keep nine significant digits."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, restval="", lineterminator="\n")
        for row in rows:
            writer.writerow({k: f"{v:.9g}" if isinstance(v, float) else v for k, v in row.items()})
        try:
            with open(self.path, "a", encoding="utf-8", opener=no_links) as handle:
                handle.write(text.getvalue())
        except OSError as error:
            raise SappError(f"{self.path}: cannot write ({error.strerror}); the run can be resumed") from None

    def sync(self) -> None:
        """Bring what was appended to the disk: a checkpoint must not be ahead of its rows."""
        sync_table(self.path)


def sync_table(path: Path) -> None:
    """Bring a table's rows to the disk."""
    try:
        sync(path)
    except OSError as error:
        raise SappError(f"{path}: cannot write ({error.strerror}); the run can be resumed") from None


_WHOLE = ("step", "seed", "updates")
_NUMBERS = ("seconds", "return_mean", "return_std", "score_mean", "score_std", "length_mean")


def read(path: Path) -> list[dict[str, str]]:
    """Whole rows of a table, as text whose numbers can be read; a last line without its newline is left out."""
    return [row for row, _ in _checked(path)]


def _checked(path: Path, tail: bool = False) -> list[tuple[dict[str, str], int]]:
    """Rows with the numbers of their lines; ``tail``: damaged rows are dropped if no whole one follows."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SappError(f"{path}: cannot read ({error})") from None
    found: list[tuple[dict[str, str], int]] = []
    damage = ""
    try:
        reader = csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1]), strict=True)
        names = list(reader.fieldnames or ("step",))
        if len(set(names)) < len(names) or "step" not in names:
            raise SappError(f"{path}, line 1: has a column twice or no 'step'; restore the file")
        for row in reader:
            if wrong := _wrong(row):
                damage = damage or f"{path}, line {reader.line_num}: {wrong}; restore the file"
            elif damage:
                break
            else:
                found.append((row, reader.line_num))
        else:
            damage = "" if tail else damage
    except csv.Error as error:
        damage = f"{path}: not a table ({error}); restore the file"
    if damage:
        raise SappError(damage)
    return found


def _wrong(row: Mapping[Any, Any]) -> str:
    """What is wrong with a row, if anything."""
    if None in row or None in row.values():
        return "has more or fewer cells than the first line"
    for name, value in row.items():
        if name in _WHOLE:
            if not (value.removeprefix("-").isascii() and value.removeprefix("-").isdigit() and len(value) < 19):
                return f"{name!r} is {printable(value)[:40]!r}; it must be a whole number"
        elif value and (name in _NUMBERS or "/" in name):
            try:
                float(value)
            except ValueError:
                return f"{name!r} is {printable(value)[:40]!r}; it must be a number"
        elif not value.isprintable() or (not value and name == "seconds"):
            return f"{name!r} is {printable(value)[:40]!r}"
    return ""


def column(rows: Sequence[Mapping[str, str]], name: str, path: Path) -> list[str]:
    """A column of a table, or what to say where it has none."""
    if rows and name not in rows[0]:
        raise SappError(f"{path}: has no column {name!r}; restore the file")
    return [row[name] for row in rows]
