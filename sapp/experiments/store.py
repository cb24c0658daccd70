"""The results store: one SQLite file with every run once, and which cell of which experiment it fills.

It holds what a run's key determines and nothing else (no times, no paths, no order of arrival), so that two runs of one
experiment on one machine give the same rows. How long training took is kept beside it, in a CSV file.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sapp.core import locks
from sapp.core.errors import SappError

FORMAT = 3
_MARK = 0x53415050  # "SAPP"

TABLES: dict[str, tuple[str, ...]] = {
    "experiments": ("experiment", "scale", "title", "question", "focus"),
    "cells": ("experiment", "scale", "dataset", "position", "variant", "seed", "run"),
    "runs": (
        "run", "dataset", "fingerprint", "environment", "physics", "transitions", "episodes", "algorithm", "seed",
        "phases", "evaluation", "parameters", "versions",
    ),
    "evaluations": ("run", "step", "episode", "updates", "return", "score"),
    "metrics": ("run", "step", "phase", "values"),
    "events": ("run", "number", "step", "kind"),
}  # fmt: skip
_KEYS = {
    "experiments": 2, "cells": 6, "runs": 1, "evaluations": 3, "metrics": 3, "events": 2,
}  # fmt: skip
"""How many of a table's first columns are its key. Rows are kept in the order of their keys."""

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Results:
    """Rows of finished runs, by table, as ``Store.add`` takes them; how long it took is for the file beside."""

    rows: Mapping[str, Sequence[Row]]
    timings: Sequence[Row] = ()


class Store:
    """A results store, opened for reading and adding."""

    def __init__(self, path: str | Path, *, create: bool = False) -> None:
        """Open a store; ``create`` makes it if it is not there."""
        self.path = Path(path)
        if not create and not self.path.is_file():
            raise SappError(f"{self.path}: no results store there; make one with 'sapp experiment'")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path)
            mark = self._db.execute("PRAGMA application_id").fetchone()[0]
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            empty = not self._db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
            if empty and create:
                self._make()
            elif mark != _MARK:
                raise SappError(f"{self.path}: not a results store; name another file")
            elif version != FORMAT:
                raise SappError(f"{self.path}: store format {version}, this version reads {FORMAT}")
        except (sqlite3.Error, OSError) as error:
            raise SappError(f"{self.path}: cannot open as a results store ({error})") from None

    def _make(self) -> None:
        with self._db:
            self._db.execute(f"PRAGMA application_id = {_MARK}")
            self._db.execute(f"PRAGMA user_version = {FORMAT}")
            for table, columns in TABLES.items():
                fields = ", ".join(f'"{name}"' for name in columns)
                key = ", ".join(f'"{name}"' for name in columns[: _KEYS[table]])
                self._db.execute(f"CREATE TABLE {table} ({fields}, PRIMARY KEY ({key})) WITHOUT ROWID")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def known(self) -> set[str]:
        """Keys of the runs that are done."""
        return {key for (key,) in self._db.execute("SELECT run FROM runs")}

    def add(self, results: Results) -> None:
        """Add rows, all or none; rows that are there stay as they are."""
        try:
            with self._db:
                for table, rows in results.rows.items():
                    marks = ", ".join("?" for _ in TABLES[table])
                    self._db.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", rows)
        except sqlite3.Error as error:
            raise SappError(f"{self.path}: cannot write ({error}); free some space or name another file") from None

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of a table, in the order of their keys."""
        if table not in TABLES:
            raise SappError(f"{self.path}: no table {table!r}; it has {', '.join(TABLES)}")
        key = ", ".join(f'"{name}"' for name in TABLES[table][: _KEYS[table]])
        try:
            found = self._db.execute(f"SELECT * FROM {table} ORDER BY {key}").fetchall()
        except sqlite3.Error as error:
            raise SappError(f"{self.path}: cannot read ({error}); restore it or run the experiment again") from None
        return [dict(zip(TABLES[table], row, strict=True)) for row in found]

    @property
    def timings_path(self) -> Path:
        """The file beside the store that says how long training took."""
        return self.path.with_name(f"{self.path.stem}-timings.csv")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time may add to a store."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SappError(f"{path}: cannot write there ({error.strerror}); name another --store") from None
    held = f"{path}: another process is adding to this store; wait for it or stop it"
    with locks.locked(path.with_name(f".{path.name}.lock"), held):
        yield


def text(value: Any) -> str:
    """JSON with its keys in order, so that equal content is equal text."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
