"""The results file: a CSV that grows line by line, so that a stopped experiment continues where it was."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from sapp.core.errors import SappError


@dataclass(frozen=True)
class Row:
    """One policy learnt from one log and its true suboptimality."""

    task: str
    discount: float
    divergence: str
    seed: int
    size: int
    role: str
    draw: int
    method: str
    alpha: float
    transitions: int
    suboptimality: float
    objective: float
    mean_weight: float
    residual: float
    iterations: int
    seconds: float

    @property
    def key(self) -> tuple[Any, ...]:
        """What it was asked to do; two rows with one key are the same work."""
        data = (self.task, self.discount, self.divergence, self.seed, self.size, self.role, self.draw)
        return (*data, self.method, self.alpha)

class Rows:
    """Rows in a CSV that grows line by line; what it holds already is not done again."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.rows: dict[tuple[Any, ...], Row] = {}
        if self.path is not None and self.path.exists():
            for row in read_rows(self.path):
                self.rows[row.key] = row
            self._rewrite()

    def _rewrite(self) -> None:
        """Write all anew, aside and then in place: completes a last line that was cut off."""
        assert self.path is not None
        aside = self.path.with_name(self.path.name + ".partial")
        with aside.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([field.name for field in fields(Row)])
            writer.writerows([list(asdict(row).values()) for row in self.rows.values()])
        aside.replace(self.path)

    def add(self, row: Row) -> None:
        """Keep a row, in the file too."""
        self.rows[row.key] = row
        if self.path is None:
            return
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._rewrite()
            return
        with self.path.open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(asdict(row).values())

def read_rows(path: str | Path) -> list[Row]:
    """The rows of a results file. An unfinished last line is dropped; any other bad line is an error.

    A file may hold more than one experiment (other seeds, another grid and so other tuned α): ``experiment`` with the
    same arguments returns the rows of one without doing any work again.
    """
    path = Path(path)
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SappError(f"{path} cannot be read: {error}") from None
    lines = list(csv.reader(text.splitlines()))
    names = [field.name for field in fields(Row)]
    if not lines or lines[0] != names:
        raise SappError(f"{path} is not a results file of this experiment: its first line should be {','.join(names)}")
    kinds: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "str": str}
    readers = [kinds[str(field.type)] for field in fields(Row)]
    rows = []
    for number, cells in enumerate(lines[1:], 2):
        cut_off = number == len(lines) and not text.endswith("\n")
        try:
            values = [reader(cell) for reader, cell in zip(readers, cells, strict=True)]
        except ValueError:
            if cut_off:
                continue
            raise SappError(f"{path} line {number} is not a row of {len(names)} values: remove it") from None
        if not cut_off:
            rows.append(Row(*values))
    return rows
