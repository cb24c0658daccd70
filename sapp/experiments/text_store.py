"""A results store as a folder of CSV files: small enough to be committed, complete enough to go on from.

The files are the store's tables with four differences: an evaluation is one line, its returns joined by semicolons;
normalised scores are left out, since returns and the environment give them; metrics have a column each; and of the
metrics only those lines are kept that belong to an evaluation or end a phase, to six significant digits.

What a time limit stopped is in the folder ``unfinished``, as far as it came, until the same runs are finished. Nothing
reads it by itself: its runs are trained on, and its scores are not those of the table.
"""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sapp.core.errors import SappError
from sapp.core.files import write_text
from sapp.data.normalised_scores import base_name, normalized_score
from sapp.experiments.store import TABLES, WHOLE_NUMBERS, Results, Row, Store, check_row, keys_of, text
from sapp.experiments.store import TIMINGS as TIMING_COLUMNS

RETURNS = "returns"
COLUMNS = TABLES | {"evaluations": ("run", "step", "updates", RETURNS), "metrics": ("run", "step", "phase")}
"""Of each file. The key of a line is that of the store's table; of an evaluation, run and step. After the columns of
metrics.csv come those of the metrics."""
TIMINGS = "timings"
"""The store's file of timings, as it is."""
UNFINISHED = "unfinished"
"""The folder for what a time limit stopped."""
NOT_FINITE = "null"

Line = tuple[str, ...]
Metrics = dict[tuple[str, str, str], dict[str, str]]
"""By run, step and phase: the metrics as they are written."""


def is_text_store(folder: Path) -> bool:
    """Whether a folder holds a results store as text."""
    return all((folder / f"{name}.csv").is_file() for name in ("experiments", "cells", "runs"))


def write(store: Store, folder: str | Path) -> Path:
    """Add what a store holds to a folder of CSV files; lines that are there stay as they are. Returns the folder."""
    rows = {name: [tuple(row.values()) for row in store.rows(name)] for name in TABLES}
    return add(Results(rows, _raw(store.timings_path)[1:]), folder)


def add(results: Results, folder: str | Path) -> Path:
    """Add results to a folder of CSV files; lines that are there stay as they are. Returns the folder."""
    folder = Path(folder)
    rows = {name: [dict(zip(TABLES[name], row, strict=True)) for row in results.rows.get(name, ())] for name in TABLES}
    for name in ("experiments", "cells", "runs", "events"):
        lines = [tuple(str(row[column]) for column in TABLES[name]) for row in rows[name]]
        _merge(folder / f"{name}.csv", COLUMNS[name], keys_of(name), lines)
    _merge(folder / "evaluations.csv", COLUMNS["evaluations"], 2, _evaluations(rows["evaluations"]))
    path = folder / "metrics.csv"
    _write_metrics(path, dict(_metrics(rows["metrics"], rows["evaluations"])) | _read_metrics(path))
    if results.timings:
        path = folder / f"{TIMINGS}.csv"
        lines = [*_raw(path)[1:], *(tuple(map(str, row)) for row in results.timings)]
        _write(path, TIMING_COLUMNS, dict.fromkeys(lines))
    return folder


def add_unfinished(results: Results, folder: str | Path) -> None:
    """Put runs that were stopped into the folder ``unfinished``, in place of what was there of them."""
    folder = Path(folder) / UNFINISHED
    stopped = {row[0] for row in results.rows["runs"]}
    if stopped:
        leave_out(folder, stopped)
        add(replace(results, timings=()), folder)


def leave_out(folder: str | Path, runs: Collection[str]) -> None:
    """Take runs out of a folder of CSV files, and the folder away where none is left; no folder is none to take out."""
    folder = Path(folder)
    if not is_text_store(folder):
        return
    found = read(folder)
    left = without(found, runs)
    if len(left.rows["runs"]) < len(found.rows["runs"]):
        shutil.rmtree(folder)
        if left.rows["runs"]:
            add(left, folder)


def without(results: Results, runs: Collection[str]) -> Results:
    """Results without those of some runs."""
    place = {name: columns.index("run") for name, columns in TABLES.items() if "run" in columns}
    rows = {
        name: [row for row in kept if name not in place or row[place[name]] not in runs]
        for name, kept in results.rows.items()
    }
    return replace(results, rows=rows)


def read(folder: str | Path) -> Results:
    """What a folder of CSV files holds, as ``Store.add`` takes it."""
    folder = Path(folder)
    rows: dict[str, list[Row]] = {}
    for name in ("experiments", "cells", "runs", "events"):
        rows[name] = [_typed(folder, name, line) for line in _lines(folder / f"{name}.csv", COLUMNS[name])]
    rows["metrics"] = [
        _typed(folder, "metrics", (*key, _values(folder / "metrics.csv", values)))
        for key, values in _read_metrics(folder / "metrics.csv").items()
    ]
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


def _metrics(
    rows: Sequence[Mapping[str, Any]], evaluations: Iterable[Mapping[str, Any]]
) -> Iterable[tuple[tuple[str, str, str], dict[str, str]]]:
    """The rows at evaluations and at the ends of phases."""
    wanted = {(row["run"], row["step"]) for row in evaluations}
    ends: dict[tuple[str, str], int] = {}
    for row in rows:
        place = row["run"], row["phase"]
        ends[place] = max(row["step"], ends.get(place, row["step"]))
    for row in rows:
        if (row["run"], row["step"]) in wanted or ends[row["run"], row["phase"]] == row["step"]:
            values = json.loads(row["values"])
            written = {name: NOT_FINITE if value is None else f"{value:.6g}" for name, value in values.items()}
            yield (row["run"], str(row["step"]), row["phase"]), written


def _read_metrics(path: Path) -> Metrics:
    if not (found := _raw(path)):
        return {}
    head, *lines = found
    names, width = head[3:], len(head)
    if head[:3] != COLUMNS["metrics"] or len(set(names)) < len(names) or any(len(line) != width for line in lines):
        _refuse(path, (*COLUMNS["metrics"], "and one for each metric"))
    return {
        (line[0], line[1], line[2]): {
            name: value for name, value in zip(names, line[3:], strict=True) if value
        }
        for line in lines
    }  # fmt: skip


def _write_metrics(path: Path, metrics: Metrics) -> None:
    names = sorted({name for values in metrics.values() for name in values})
    keys = sorted(metrics, key=lambda key: (key[0], int(key[1]), key[2]))
    lines = [(*key, *(metrics[key].get(name, "") for name in names)) for key in keys]
    _write(path, (*COLUMNS["metrics"], *names), lines)


def _values(path: Path, written: Mapping[str, str]) -> str:
    """Metrics as the store has them."""
    values: dict[str, float | None] = {}
    for name, value in written.items():
        try:
            values[name] = None if value == NOT_FINITE else float(value)
        except ValueError:
            values[name] = math.inf
        if values[name] is not None and not math.isfinite(values[name] or 0.0):
            raise SappError(f"{path}: {name!r} is {value!r}; it must be a finite number. Restore the file")
    return text(values)


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


def _merge(path: Path, columns: Sequence[str], width: int, lines: Iterable[Line]) -> None:
    """Add lines to a file whose first columns are their key, in the order of the keys, numbers by size."""

    def order(line: Line) -> tuple[Any, ...]:
        pairs = zip(columns, line, strict=True)
        return tuple(_whole(path, column, value) if column in WHOLE_NUMBERS else value for column, value in pairs)

    known = {line[:width]: line for line in _lines(path, columns)}
    merged = {line[:width]: line for line in lines} | known
    _write(path, columns, sorted(merged.values(), key=order))


def _lines(path: Path, columns: Sequence[str]) -> list[Line]:
    """The lines of a file below its head, which must be right; none where there is no file."""
    if not (found := _raw(path)):
        return []
    head, *lines = found
    if head != tuple(columns) or any(len(line) != len(columns) for line in lines):
        _refuse(path, columns)
    return lines


def _refuse(path: Path, columns: Sequence[str]) -> None:
    raise SappError(f"{path}: must have the columns {', '.join(columns)}; restore the file or name another folder")


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
