"""The results store: one SQLite file with every run once, and which cell of which experiment it fills.

It holds what a run's key determines and nothing else (no times, no paths, no order of arrival), so that two runs of one
experiment on one machine give the same rows. How long training took is kept beside it, in a CSV file.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sapp.core import locks
from sapp.core.csv_files import MOST
from sapp.core.decode import check_fits, parse_json, shown
from sapp.core.errors import SappError, one_line, printable
from sapp.core.files import write_aside
from sapp.runs.events import EventKind

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

WHOLE_NUMBERS = ("position", "seed", "transitions", "episodes", "step", "episode", "updates", "number")
"""Columns that hold whole numbers."""
_TYPES: dict[str, Any] = dict.fromkeys(WHOLE_NUMBERS, int) | {
    "return": float, "score": float | None, "environment": str | None, "physics": str | None,
}  # fmt: skip
_JSON: dict[str, Any] = {
    "algorithm": dict[str, Any], "phases": list[dict[str, Any]], "evaluation": dict[str, Any],
    "parameters": dict[str, int], "versions": dict[str, str], "values": dict[str, float | None],
}  # fmt: skip
"""What columns hold; text, where nothing else is said."""

OF_RUNS = ("runs", "evaluations", "metrics", "events")
"""Tables whose first column says which run a row is of."""

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Results:
    """Rows of finished runs, by table, as ``Store.add`` takes them; how long it took is for the file beside."""

    rows: Mapping[str, Sequence[Row]]
    timings: Sequence[Row] = ()

    def without(self, known: Collection[str], *, cells: bool = True) -> Results:
        """All but the rows of some runs; ``cells``: nor what says which cells of an experiment they fill."""
        places = dict.fromkeys(OF_RUNS, 0) | ({"cells": -1} if cells else {})
        kept = {name: [row for row in rows if name not in places or row[places[name]] not in known]
                for name, rows in self.rows.items()}  # fmt: skip
        return Results(kept, self.timings)


class Store:
    """A results store, opened for reading and adding."""

    def __init__(self, path: str | Path, *, create: bool = False) -> None:
        """Open a store; ``create`` makes it if it is not there."""
        self.path = Path(path)
        if not create and not self.path.is_file():
            raise SappError(f"{self.path}: no results store there; make one with 'sapp experiment'")
        self._db: Any = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if create and not self.path.exists():
                _create(self.path)
            self._db = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=rw", uri=True)
            mark = self._db.execute("PRAGMA application_id").fetchone()[0]
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            found = dict(self._db.execute("SELECT name, type FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"))
            if mark != _MARK:
                cut = not mark and not found
                what = "is empty, its making was cut off: delete it" if cut else "not a results store"
                raise SappError(f"{self.path}: {what}; or name another file")
            if version != FORMAT:
                raise SappError(f"{self.path}: store format {version}, this version reads {FORMAT}; name another file")
            self._check_tables(found)
        except SappError:
            if self._db is not None:
                self._db.close()
            raise
        except (sqlite3.Error, OSError, OverflowError) as error:
            raise SappError(
                f"{self.path}: cannot open as a results store ({one_line(error)}); it is damaged or of another kind: "
                "restore it, or delete it and run the experiment again"
            ) from None

    def _check_tables(self, found: Mapping[str, str]) -> None:
        """A store has our tables and nothing else: a view in a table's place could compute for ever."""
        cure = "delete it and run the experiment again, or restore it"
        if missing := sorted(set(TABLES) - set(found)):
            raise SappError(f"{self.path}: has no table {missing[0]!r}, its making was cut off; {cure}")
        for name, kind in found.items():
            if name not in TABLES or kind != "table":
                raise SappError(f"{self.path}: holds a {kind} {printable(name)!r} that no store has; {cure}")
        for table, columns in TABLES.items():
            names = tuple(row[1] for row in self._db.execute(f"PRAGMA table_xinfo({table})"))
            if names != columns:
                raise SappError(f"{self.path}: its table {table!r} has other columns; {cure}")

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
        rows = [dict(zip(TABLES[table], row, strict=True)) for row in found]
        for row in rows:
            check_row(self.path, table, row)
        return rows

    @property
    def timings_path(self) -> Path:
        """The file beside the store that says how long training took."""
        return self.path.with_name(f"{self.path.stem}-timings.csv")


def keys_of(table: str) -> int:
    """How many of a table's first columns are its key."""
    return _KEYS[table]


def check_row(path: Path, table: str, row: Mapping[str, Any]) -> None:
    """Refuse a row whose values are not of the types that are written; JSON is read to know."""
    for name, value in row.items():
        where = f"{path}: {table}: {name!r}"
        if name in _JSON:
            try:
                content = parse_json(value)
                check_fits(content, _JSON[name], where)
                numbers = content.values() if name == "values" else ()
                if any(each is not None and abs(each) > MOST for each in numbers):
                    raise SappError(f"{where} holds a number beyond {MOST:g}; restore the store")
            except (TypeError, ValueError, RecursionError):
                raise SappError(f"{where} is {shown(value)}, not JSON; restore the store") from None
        else:
            check_fits(value, _TYPES.get(name, str), where)
            if isinstance(value, float) and abs(value) > MOST:
                raise SappError(f"{where} is {value:g}, which nobody measured; restore the store")
            if isinstance(value, str) and not value.isprintable():
                raise SappError(f"{where} is {shown(value)}: it holds control characters; restore the store")
    if table == "events" and row["kind"] not in set(EventKind):
        raise SappError(f"{path}: events: 'kind' is {shown(row['kind'])}; restore the store")


def _make(path: Path) -> None:
    """Make the file of an empty store."""
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("PRAGMA journal_mode = MEMORY")  # it is nobody's yet, and nothing may be left beside it
        db.execute("BEGIN")
        db.execute(f"PRAGMA application_id = {_MARK}")
        db.execute(f"PRAGMA user_version = {FORMAT}")
        for table, columns in TABLES.items():
            fields = ", ".join(f'"{name}"' for name in columns)
            key = ", ".join(f'"{name}"' for name in columns[: _KEYS[table]])
            db.execute(f"CREATE TABLE {table} ({fields}, PRIMARY KEY ({key})) WITHOUT ROWID")


def _create(path: Path) -> None:
    """Make an empty store, whole or not at all."""
    try:
        write_aside(path, _make, keep=True)
    except (sqlite3.Error, OSError) as error:
        raise SappError(f"{path}: cannot write ({one_line(error)}); free some space or name another file") from None


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time may add to a store."""
    if path.is_dir():
        raise SappError(f"{path}: is a folder; name a file for the store")
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
