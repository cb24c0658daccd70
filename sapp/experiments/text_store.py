"""A results store as a folder of CSV files: small enough to be committed, complete enough to go on from.

The files are the store's tables with three differences: an evaluation is one line, its returns joined by semicolons;
normalised scores are left out, since returns and the environment give them; and of the metrics only those rows are kept
that belong to an evaluation or end a phase, to six significant digits.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sapp.core.errors import SappError
from sapp.core.files import write_text
from sapp.data.normalised_scores import base_name, normalized_score
from sapp.experiments.store import TABLES, WHOLE_NUMBERS, Results, Row, Store, check_row, keys_of, text

RETURNS = "returns"
COLUMNS = TABLES | {"evaluations": ("run", "step", "updates", RETURNS)}
"""Of each file. The key of a line is that of the store's table; of an evaluation, run and step."""
TIMINGS = "timings"
"""The store's file of timings, as it is."""

Line = tuple[str, ...]


def is_text_store(folder: Path) -> bool:
    """Whether a folder holds a results store as text."""
    return all((folder / f"{name}.csv").is_file() for name in ("experiments", "cells", "runs"))


def write(store: Store, folder: str | Path) -> Path:
    """Add what a store holds to a folder of CSV files; lines that are there stay as they are. Returns the folder."""
    folder = Path(folder)
    rows = {name: store.rows(name) for name in TABLES}
    made = {name: [tuple(str(row[column]) for column in TABLES[name]) for row in rows[name]] for name in TABLES}
    made["evaluations"] = list(_evaluations(rows["evaluations"]))
    made["metrics"] = list(_metrics(rows["metrics"], rows["evaluations"]))
    for name, lines in made.items():
        width = 2 if name == "evaluations" else keys_of(name)
        known = {line[:width]: line for line in _lines(folder / f"{name}.csv", COLUMNS[name])}
        merged = {line[:width]: line for line in lines} | known
        _write(folder / f"{name}.csv", COLUMNS[name], sorted(merged.values(), key=lambda line: _order(name, line)))
    if store.timings_path.is_file():
        head, *timings = _raw(store.timings_path)
        known_timings = _raw(folder / f"{TIMINGS}.csv")[1:]
        _write(folder / f"{TIMINGS}.csv", head, dict.fromkeys([*known_timings, *timings]))
    return folder


def read(folder: str | Path) -> Results:
    """What a folder of CSV files holds, as ``Store.add`` takes it."""
    folder = Path(folder)
    rows: dict[str, list[Row]] = {}
    for name in ("experiments", "cells", "runs", "metrics", "events"):
        rows[name] = [_typed(folder, name, line) for line in _lines(folder / f"{name}.csv", COLUMNS[name])]
    environments = {row[0]: row[TABLES["runs"].index("environment")] for row in rows["runs"]}
    rows["evaluations"] = [
        row
        for line in _lines(folder / "evaluations.csv", COLUMNS["evaluations"])
        for row in _episodes(folder / "evaluations.csv", line, environments)
    ]
    return Results(rows, _raw(folder / f"{TIMINGS}.csv")[1:])


def _evaluations(rows: Iterable[Mapping[str, Any]]) -> Iterable[Line]:
    """One line per evaluation."""
    returns: dict[tuple[str, int, int], list[str]] = {}
    for row in rows:
        returns.setdefault((row["run"], row["step"], row["updates"]), []).append(repr(row["return"]))
    for (run, step, updates), values in returns.items():
        yield run, str(step), str(updates), ";".join(values)


def _metrics(rows: Sequence[Mapping[str, Any]], evaluations: Iterable[Mapping[str, Any]]) -> Iterable[Line]:
    """The rows at evaluations and at the ends of phases."""
    wanted = {(row["run"], row["step"]) for row in evaluations}
    ends: dict[tuple[str, str], int] = {}
    for row in rows:
        place = row["run"], row["phase"]
        ends[place] = max(row["step"], ends.get(place, row["step"]))
    for row in rows:
        if (row["run"], row["step"]) in wanted or ends[row["run"], row["phase"]] == row["step"]:
            values = {
                name: None if value is None else float(f"{value:.6g}")
                for name, value in json.loads(row["values"]).items()
            }
            yield row["run"], str(row["step"]), row["phase"], text(values)


def _typed(folder: Path, name: str, line: Line) -> Row:
    """A line of CSV as a row of the store, checked as one."""
    where = folder / f"{name}.csv"
    row: dict[str, Any] = dict(zip(TABLES[name], line, strict=True))
    for column in row:
        if column in WHOLE_NUMBERS:
            row[column] = _whole(where, column, row[column])
        elif column in ("environment", "physics") and row[column] == "None":
            row[column] = None
    check_row(where, name, row)
    return tuple(row.values())


def _episodes(path: Path, line: Line, environments: Mapping[str, str | None]) -> Iterable[Row]:
    """The rows of the store for one line of evaluations.csv."""
    run, step, updates, joined = line
    try:
        returns = np.array([float(value) for value in joined.split(";")])
    except ValueError:
        raise SappError(f"{path}: {RETURNS!r} of step {step} must be numbers joined by ;; restore the file") from None
    if run not in environments:
        raise SappError(f"{path}: run {run!r} is not in runs.csv; restore both files")
    task = base_name(environments[run] or "")
    scores: Sequence[float | None] = normalized_score(task, returns).tolist() if task else [None] * len(returns)
    for episode, (each, score) in enumerate(zip(returns.tolist(), scores, strict=True)):
        row = {
            "run": run, "step": _whole(path, "step", step), "episode": episode,
            "updates": _whole(path, "updates", updates), "return": each, "score": score,
        }  # fmt: skip
        check_row(path, "evaluations", row)
        yield tuple(row.values())


def _whole(path: Path, column: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise SappError(f"{path}: {column!r} is {value!r}; it must be a whole number. Restore the file") from None


def _order(name: str, line: Line) -> tuple[Any, ...]:
    """Lines in the order of their keys, numbers by size."""
    return tuple(
        int(value) if column in WHOLE_NUMBERS else value for column, value in zip(COLUMNS[name], line, strict=True)
    )


def _lines(path: Path, columns: Sequence[str]) -> list[Line]:
    """The lines of a file below its head, which must be right; none where there is no file."""
    if not (found := _raw(path)):
        return []
    head, *lines = found
    if head != tuple(columns) or any(len(line) != len(columns) for line in lines):
        raise SappError(f"{path}: must have the columns {', '.join(columns)}; restore the file or name another folder")
    return lines


def _raw(path: Path) -> list[Line]:
    if not path.is_file():
        return []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [tuple(line) for line in csv.reader(file)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SappError(f"{path}: cannot be read as CSV ({error}); restore the file") from None


def _write(path: Path, columns: Sequence[str], lines: Iterable[Line]) -> None:
    content = io.StringIO()
    writer = csv.writer(content, lineterminator="\n")
    writer.writerows([columns, *lines])
    write_text(path, content.getvalue())
