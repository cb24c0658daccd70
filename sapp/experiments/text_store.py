"""A results store as a folder of CSV files: small enough to be committed, complete enough to go on from.

The files are the store's tables with four differences: an evaluation is one line, its returns joined by semicolons;
normalised scores are left out, since returns and the environment give them; metrics have a column each; and of the
metrics only those lines are kept that belong to an evaluation or end a phase, to six significant digits.

All files change at once: what they will hold is first written as one file, ``writing.json``. A process that is killed
while it writes the others leaves it, everybody reads it in their place, and the next one that writes finishes.

What a time limit stopped is in the folder ``unfinished``, as far as it came, until the same runs are finished. Nothing
reads it by itself: its runs are trained on, and its scores are not those of the table.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sapp.core import locks
from sapp.core.csv_files import Line, lines_of, measured, read_table, read_text, table_text, whole
from sapp.core.decode import check_fits, shown
from sapp.core.errors import SappError
from sapp.core.files import sync, write_text
from sapp.data.normalised_scores import base_name, normalized_score
from sapp.experiments import timings
from sapp.experiments.store import OF_RUNS, TABLES, WHOLE_NUMBERS, Results, Row, Store, check_row, keys_of, text

RETURNS = "returns"
TIMINGS = "timings"
"""The store's file of timings, as it is."""
COLUMNS = TABLES | {
    "evaluations": ("run", "step", "updates", RETURNS), "metrics": ("run", "step", "phase"), TIMINGS: timings.COLUMNS,
}  # fmt: skip
"""Of each file; after those of metrics.csv come the metrics. The key of a line is that of the store's table; of an
evaluation, run and step."""
JOURNAL, LOCK = "writing.json", ".lock"
UNFINISHED = "unfinished"
"""The folder for what a time limit stopped."""
NOT_FINITE = "null"
WAIT = 60.0
"""Seconds to wait while another process writes to the folder, which takes it less than one."""


def is_text_store(folder: Path) -> bool:
    """Whether a folder holds a results store as text."""
    names = ("experiments.csv", "cells.csv", "runs.csv")
    return (folder / JOURNAL).is_file() or all((folder / name).is_file() for name in names)


def check_place(folder: Path) -> None:
    """Refuse a folder that holds files of these names which are none of ours, or that cannot be one."""
    near = next((each for each in (folder, *folder.absolute().parents) if each.exists()), folder)
    if not near.is_dir() or not os.access(near, os.W_OK):
        raise SappError(f"{folder}: no folder, or one that cannot be written to; name another for --rows")
    _held(folder)


def write(store: Store, folder: str | Path) -> Path:
    """Add the runs of a store that a folder of CSV files does not hold; see ``add``."""
    rows = {name: [tuple(row.values()) for row in store.rows(name)] for name in TABLES}
    return add(Results(rows, timings.read(store.timings_path)), folder)


def add(results: Results, folder: str | Path) -> Path:
    """Add the runs that a folder of CSV files lacks; lines that are there stay as they are. Returns the folder."""
    folder = Path(folder)
    rows = {name: [dict(zip(TABLES[name], row, strict=True)) for row in results.rows.get(name, ())] for name in TABLES}
    made = {name: [tuple(str(row[column]) for column in TABLES[name]) for row in rows[name]] for name in TABLES}
    made["evaluations"] = list(_evaluations(rows["evaluations"]))
    made["metrics"] = list(_metrics(rows["metrics"], rows["evaluations"]))
    made[TIMINGS] = [tuple(map(str, row)) for row in results.timings]
    with _alone(folder):
        held = _held(folder)
        there = {line[0] for line in held["runs"]}
        for name, lines in made.items():
            new = [line for line in lines if name not in OF_RUNS or line[0] not in there]
            merged = {_key(name, line): line for line in [*new, *held[name]]}  # of one key, what is there
            ordered = list(merged.values())
            held[name] = ordered if name == TIMINGS else sorted(ordered, key=lambda line: _order(name, line))
        _write(folder, held)
    return folder


def add_unfinished(results: Results, folder: str | Path) -> None:
    """Put runs that were stopped into the folder ``unfinished``, in place of what was there of them."""
    folder = Path(folder) / UNFINISHED
    stopped = {row[0] for row in results.rows["runs"]}
    if stopped:
        leave_out(folder, stopped)
        add(replace(results, timings=()), folder)


def leave_out(folder: str | Path, runs: Collection[str]) -> None:
    """Take runs out of a folder of CSV files; where none is left the files go, and the folder if it is empty then."""
    folder = Path(folder)
    if not is_text_store(folder):
        return
    with _alone(folder):
        held = _held(folder)
        left = {
            name: [line for line in lines if _run_of(name, line) not in runs] for name, lines in held.items()
        }  # fmt: skip
        if not left["runs"]:
            _clear(folder)
        elif len(left["runs"]) < len(held["runs"]):
            _write(folder, left)
    if [each.name for each in folder.iterdir()] == [LOCK]:
        (folder / LOCK).unlink()
        folder.rmdir()


def read(folder: str | Path) -> Results:
    """What a folder of CSV files holds, as ``Store.add`` takes it; nothing where there are none."""
    folder = Path(folder)
    held = _held(folder)
    rows: dict[str, list[Row]] = {}
    for name in ("experiments", "cells", "runs", "metrics", "events"):
        rows[name] = [_typed(folder / f"{name}.csv", name, line) for line in held[name]]
    environments = {row[0]: row[TABLES["runs"].index("environment")] for row in rows["runs"]}
    for name in ("evaluations", "metrics", "events", "cells"):
        for line in held[name]:
            if (run := _run_of(name, line)) not in environments:
                raise SappError(f"{folder / name}.csv: run {run!r} is not in runs.csv; restore both files")
    path = folder / "evaluations.csv"
    rows["evaluations"] = [row for line in held["evaluations"] for row in _episodes(path, line, environments)]
    return Results(rows, held[TIMINGS])


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


def _metrics_text(lines: Iterable[Line]) -> str:
    """The file of metrics: a column each, empty where one was not logged."""
    values = {line[:3]: json.loads(line[3]) for line in lines}
    names = sorted({name for each in values.values() for name in each})

    def cell(value: float | None) -> str:
        return NOT_FINITE if value is None else f"{value:.6g}"

    cells = [(*key, *(cell(each[name]) if name in each else "" for name in names)) for key, each in values.items()]
    return table_text((*COLUMNS["metrics"], *names), cells)


def _metrics_lines(path: Path, content: str) -> list[Line]:
    """The lines of the file of metrics, their values as the store has them."""
    head, *lines = lines_of(path, content) or [()]
    fixed, names = head[:3], head[3:]
    if fixed != COLUMNS["metrics"] or len(set(names)) < len(names):
        columns = ", ".join(COLUMNS["metrics"])
        raise SappError(f"{path}: must have the columns {columns}, and one for each metric; restore the file")
    if not content.endswith("\n"):
        raise SappError(f"{path}: its last line is cut off; restore the file")
    found = []
    for line in lines:
        written = {name: cell for name, cell in zip(names, line[3:], strict=True) if cell}
        values = {name: None if cell == NOT_FINITE else measured(cell) for name, cell in written.items()}
        for name, value in values.items():
            if value is None and written[name] != NOT_FINITE:
                what = f"{shown(name)} is {shown(written[name])}"
                raise SappError(f"{path}: {what}; it must be a finite number. Restore the file")
        found.append((*line[:3], text(values)))
    return found


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """The folder, made if it is not there, with no other process that writes to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SappError(f"{folder}: cannot make the folder ({error.strerror}); name another for --rows") from None
    held_by = f"{folder}: another process is writing there; wait for it, then give the same command again"
    with locks.locked(folder / LOCK, held_by, wait=WAIT):
        yield


def _write(folder: Path, held: Mapping[str, Sequence[Line]]) -> None:
    """Write all files at once."""
    contents = _contents(held)
    write_text(folder / JOURNAL, json.dumps(contents, ensure_ascii=False))
    for file, content in contents.items():
        write_text(folder / file, content)
    (folder / JOURNAL).unlink()
    sync(folder)


def _clear(folder: Path) -> None:
    """Delete all files at once: from the first moment on they are read as empty."""
    contents = _contents(dict.fromkeys(COLUMNS, ()))
    write_text(folder / JOURNAL, json.dumps(contents))
    for file in contents:
        (folder / file).unlink(missing_ok=True)
    (folder / JOURNAL).unlink()


def _contents(held: Mapping[str, Sequence[Line]]) -> dict[str, str]:
    """The text of every file, by its name."""
    return {
        f"{name}.csv": _metrics_text(lines) if name == "metrics" else table_text(COLUMNS[name], lines)
        for name, lines in held.items()
    }


def _run_of(name: str, line: Line) -> str | None:
    """Which run a line is of; None where it is of none."""
    return line[-1] if name == "cells" else line[0] if name in OF_RUNS else None


def _held(folder: Path) -> dict[str, list[Line]]:
    """The lines of every file; none where there are no files."""
    files = {name: folder / f"{name}.csv" for name in COLUMNS}
    texts = _texts(folder, list(files.values()))
    found = {
        name: _metrics_lines(path, texts[path]) if name == "metrics" else read_table(path, COLUMNS[name], texts[path])
        for name, path in files.items() if texts
    }  # fmt: skip
    for name, lines in found.items():
        _check_lines(files[name], name, lines)
    return found or {name: [] for name in COLUMNS}


def _texts(folder: Path, files: Sequence[Path]) -> dict[Path, str]:
    """The texts of all files, of one moment: what they will hold where a process was killed while it wrote them."""
    while True:
        before = _stamps(folder)
        if (folder / JOURNAL).is_file():
            content = _journal(folder / JOURNAL)
            return {path: content[path.name] for path in files}
        missing = [path.name for path in files if not path.exists()]
        found = {path: read_text(path) for path in files if path.exists()}
        if _stamps(folder) != before:  # somebody wrote meanwhile
            continue
        if missing and found:
            raise SappError(f"{folder}: holds results, but no {missing[0]}; restore it, or name another folder")
        return found


def _stamps(folder: Path) -> list[tuple[str, int, int]]:
    """What changes when files do."""
    stats = []
    for name in sorted([*(f"{name}.csv" for name in COLUMNS), JOURNAL]):
        with contextlib.suppress(FileNotFoundError):
            stats.append((name, (folder / name).stat()))
    return [(name, stat.st_ino, stat.st_mtime_ns) for name, stat in stats]


def _journal(path: Path) -> dict[str, str]:
    """The files that were being written when a process was killed."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        check_fits(content, dict[str, str], "its content")
        if set(content) != {f"{name}.csv" for name in COLUMNS}:
            raise SappError("it is not of an experiment's results")
    except OSError as error:
        raise SappError(f"{path}: cannot be read ({error.strerror}); make it readable") from None
    except (SappError, ValueError, RecursionError) as error:
        raise SappError(f"{path}: damaged ({shown(str(error))}); restore it, or delete it") from None
    found: dict[str, str] = content
    return found


def _check_lines(path: Path, name: str, lines: Sequence[Line]) -> None:
    """Refuse numbers that are none, and two lines of one key."""
    if name == TIMINGS:
        timings.check(path, lines)
    numbers = [place for place, column in enumerate(COLUMNS[name]) if column in WHOLE_NUMBERS]
    seen: set[Line] = set()
    for line in lines:
        for place in numbers:
            if whole(line[place]) is None:
                what = f"{COLUMNS[name][place]!r} is {shown(line[place])}"
                raise SappError(f"{path}: {what}; it must be a whole number. Restore the file")
        if (key := _key(name, line)) in seen:
            raise SappError(f"{path}: has two lines of {', '.join(key)}; restore the file")
        seen.add(key)


def _key(name: str, line: Line) -> Line:
    if name == TIMINGS:
        return line
    return line[: 2 if name == "evaluations" else keys_of(name)]


def _order(name: str, line: Line) -> tuple[Any, ...]:
    """Lines in the order of their keys, numbers by size."""
    return tuple(
        int(value) if column in WHOLE_NUMBERS else value for column, value in zip(COLUMNS[name], line, strict=False)
    )


def _typed(path: Path, name: str, line: Line) -> Row:
    """A line of CSV as a row of the store, checked as one."""
    row: dict[str, Any] = dict(zip(TABLES[name], line, strict=True))
    for column in row:
        if column in WHOLE_NUMBERS:
            row[column] = int(row[column])
        elif column in ("environment", "physics") and row[column] == "None":
            row[column] = None
    check_row(path, name, row)
    return tuple(row.values())


def _episodes(path: Path, line: Line, environments: Mapping[str, str | None]) -> Iterable[Row]:
    """The rows of the store for one line of evaluations.csv."""
    run, step, updates, joined = line
    returns = [measured(value) for value in joined.split(";")]
    if None in returns:
        raise SappError(f"{path}: {RETURNS!r} of step {step} must be finite numbers joined by ;; restore the file")
    values = np.array(returns, np.float64)
    task = base_name(environments[run] or "")
    scores: Sequence[float | None] = normalized_score(task, values).tolist() if task else [None] * len(values)
    for episode, (each, score) in enumerate(zip(values.tolist(), scores, strict=True)):
        row = {
            "run": run, "step": int(step), "episode": episode, "updates": int(updates), "return": each, "score": score,
        }  # fmt: skip
        check_row(path, "evaluations", row)
        yield tuple(row.values())
