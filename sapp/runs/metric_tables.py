"""Append-only CSV files that survive being cut off anywhere."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sapp.core.errors import SappError
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
        rows = [row for row in read(self.path) if int(row["step"]) <= step] if self.path.exists() else []
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


def read(path: Path) -> list[dict[str, str]]:
    """Whole rows of a table, as text; a last line without its newline is left out."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SappError(f"{path}: cannot read ({error})") from None
    return list(csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1])))
