"""Second, simple readings of the formats, by other code than sapp's: what is accepted must be what they find."""

from __future__ import annotations

import csv
import gzip
import json
import math
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

Columns = Mapping[str, np.ndarray]


def npz_columns(file: Path) -> Columns:
    """Arrays of an archive."""
    with np.load(file, allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


def hdf5_columns(file: Path) -> Columns:
    """Arrays at the top of an HDF5 file."""
    import h5py

    with h5py.File(file, "r") as found:
        return {name: found[name][()] for name in found if isinstance(found[name], h5py.Dataset)}


def csv_columns(file: Path) -> Columns:
    """Columns of numbers of a table of text."""
    with file.open(newline="", encoding="utf-8-sig") as text:
        head, *rows = [row for row in csv.reader(text) if row]
    found = {name.strip(): np.array([number(row[i]) for row in rows]) for i, name in enumerate(head)}
    return gathered(found)


def parquet_columns(file: Path) -> Columns:
    """Columns of a Parquet file."""
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(file)
    return gathered({name: np.array(table[name].to_pylist(), dtype=object) for name in table.column_names})


def number(text: str) -> float:
    """What a cell says; not a number where it says none."""
    try:
        return {"true": 1.0, "false": 0.0}.get(text.strip().lower(), math.nan) if not text.strip() else float(text)
    except ValueError:
        return {"true": 1.0, "false": 0.0}.get(text.strip().lower(), math.nan)


def gathered(columns: Columns) -> Columns:
    """observation_0, observation_1, … as one array."""
    found: dict[str, np.ndarray] = {}
    for name, values in columns.items():
        stem, _, place = name.rpartition("_")
        if place.isdigit() and stem in ("observation", "action"):
            found.setdefault(stem, np.empty((len(values), 0)))
            values = np.array(list(values), float)[:, None]
            found[stem] = np.concatenate([found[stem], values], 1)
        else:
            found[name] = np.array(values.tolist())
    return found


NAMES = {"observation": ("observation", "observations"), "action": ("action", "actions"),
         "reward": ("reward", "rewards"), "terminal": ("terminal", "terminals")}  # fmt: skip


def differs(data: Any, columns: Columns) -> str:
    """What of a dataset is not in the file it was loaded from; rows may be left out, and none may be another.

    Files hold observations that are all different, so that each row of the dataset is one row of the file.
    """
    own = {role: next((columns[name] for name in names if name in columns), None) for role, names in NAMES.items()}
    for role in ("observation", "action", "reward"):
        if own[role] is None or own[role].dtype.kind in "USO":
            return f"the file has no numbers for {role}"
    flat = {role: np.asarray(value, np.float32).reshape(len(value), -1) for role, value in own.items()
            if value is not None}  # fmt: skip
    rows = {row.tobytes(): i for i, row in enumerate(flat["observation"])}
    if len(rows) < len(flat["observation"]):
        return ""
    before = -1
    for i in range(len(data)):
        j = rows.get(np.asarray(data.observation[i], np.float32).tobytes(), -1)
        if j <= before:
            return f"row {i} is not in the file, or not in its order"
        before = j
        if not np.array_equal(np.asarray(data.action[i], np.float32).ravel(), flat["action"][j]):
            return f"row {i}: other action than row {j} of the file"
        if np.float32(data.reward[i]) != flat["reward"][j, 0]:
            return f"row {i}: other reward than row {j} of the file"
        if "terminal" in flat and bool(data.terminal[i]) != bool(flat["terminal"][j, 0]):
            return f"row {i}: other end than row {j} of the file"
        if not (data.terminal[i] or data.timeout[i]) and not np.array_equal(
            data.next_observation[i], data.observation[i + 1]
        ):
            return f"row {i}: is not followed by the next"
    return ""


def lost(content: Any, kept: Any, where: str = "") -> str:
    """What a JSON file says that its decoded and encoded form does not say."""
    if isinstance(content, dict):
        if not isinstance(kept, dict):
            return where
        for name, value in content.items():
            if name not in kept:
                return f"{where}.{name}"
            if found := lost(value, kept[name], f"{where}.{name}"):
                return found
        return ""
    if isinstance(content, list):
        if not isinstance(kept, list | tuple) or len(kept) != len(content):
            return where
        return next((found for a, b in zip(content, kept, strict=True) if (found := lost(a, b, f"{where}[]"))), "")
    same = content == kept and isinstance(content, bool) == isinstance(kept, bool)
    return "" if same else f"{where} ({content!r} is {kept!r})"


def text_rows(file: Path) -> list[dict[str, str]]:
    """Whole lines of a table of text."""
    head, *lines = file.read_text(encoding="utf-8").split("\n")[:-1] or [""]
    return [dict(zip(head.split(","), line.split(","), strict=True)) for line in lines if line]


def store_rows(file: Path, table: str) -> list[tuple[Any, ...]]:
    """Rows of a store's table."""
    with sqlite3.connect(file) as db:
        return db.execute(f"SELECT * FROM {table}").fetchall()


def shard(folder: Path, name: str) -> np.ndarray:
    """One array of a DQN-Replay folder."""
    with gzip.open(folder / f"$store$_{name}_ckpt.0.gz") as file:
        return np.load(file, allow_pickle=False)


def policy_mode(arrays: Columns, observation: np.ndarray) -> np.ndarray:
    """The deterministic action of a policy file."""
    x = observation.astype(np.float64)
    for layer in range(sum(1 for name in arrays if name.startswith("w") and name[1:].isdigit())):
        x = np.maximum(0, x @ np.float64(arrays[f"w{layer}"]).T + arrays[f"b{layer}"])
    return np.tanh(x @ np.float64(arrays["w_mean"]).T + arrays["b_mean"])


def json_of(file: Path) -> Any:
    """A file's JSON."""
    return json.loads(file.read_text(encoding="utf-8"))


def lines(file: Path) -> list[dict[str, str]]:
    """Lines of a CSV file that are not blank, by the names of its columns."""
    with file.open(newline="", encoding="utf-8-sig") as text:
        head, *rows = [row for row in csv.reader(text) if row]
    return [dict(zip(head, row, strict=True)) for row in rows]


def scores(file: Path) -> list[tuple[str, int, int, list[float]]]:
    """Dataset, seed, step and returns of every line of a file of scores."""
    return [
        (row["dataset"], int(row["seed"]), int(row["step"]), [float(value) for value in row["returns"].split(";")])
        for row in lines(file)
    ]


WHOLE = ("position", "seed", "transitions", "episodes", "step", "episode", "updates", "number")


def text_store_rows(folder: Path, table: str) -> list[tuple[Any, ...]]:
    """Rows of a table of a results store that is a folder of CSV files (or of one that lists them all)."""
    whole = folder / "writing.json"
    if whole.is_file():
        text = json.loads(whole.read_text(encoding="utf-8"))[f"{table}.csv"]
        found = list(csv.DictReader(text.splitlines()))
    else:
        found = lines(folder / f"{table}.csv")
    rows: list[tuple[Any, ...]] = []
    for line in found:
        values = {name: int(text) if name in WHOLE else text for name, text in line.items()}
        if table == "runs":
            values |= {name: "" for name in ("environment", "physics") if line[name] == "None"}
        if table == "evaluations":
            rows += [(values["run"], values["step"], episode, values["updates"], float(text))
                     for episode, text in enumerate(line["returns"].split(";"))]  # fmt: skip
        elif table == "metrics":
            key, metrics = ("run", "step", "phase"), {}
            for name in sorted(set(line) - set(key)):
                if line[name]:
                    metrics[name] = None if line[name] == "null" else float(line[name])
            rows.append((*(values[name] for name in key), metrics))
        else:
            rows.append(tuple(values.values()))
    return rows
