"""Logs as sources of every kind: what the tests of logs share."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest


def frame(lengths: list[int], seed: int = 0) -> dict[str, Any]:
    """Episodes of these lengths, with successors: every row is known by its first feature."""
    rng = np.random.default_rng(seed)
    rows = sum(lengths)
    last = np.concatenate([np.arange(n) == n - 1 for n in lengths])
    return {
        "episode": np.repeat(np.arange(len(lengths)), lengths),
        "step": np.concatenate([np.arange(n) for n in lengths]),
        "obs": np.column_stack([np.arange(rows), rng.normal(size=rows)]),
        "next_obs": np.column_stack([np.arange(rows) + 0.5, rng.normal(size=rows)]),
        "action": rng.uniform(-1, 1, rows),
        "reward": rng.normal(size=rows),
        "last": last,
    }


def parquet(path: Path, table: dict[str, Any]) -> Path:
    plain = {key: list(value) if np.ndim(value) == 2 else value for key, value in table.items()}
    pa.parquet.write_table(pa.table(plain), path)
    return path


def in_form(arrays: dict[str, Any], form: str, folder: Path) -> Any:
    """The arrays as a source of some kind."""
    if form == "dictionary":
        return arrays
    if form == "npz":
        np.savez(folder / "log.npz", **arrays)
        return folder / "log.npz"
    flat = {}
    for key, value in arrays.items():
        flat |= {f"{key}_{i}": value[:, i] for i in range(value.shape[1])} if np.ndim(value) == 2 else {key: value}
    if form == "csv":
        rows = zip(*(np.asarray(value).tolist() for value in flat.values()), strict=True)
        text = [",".join(flat), *(",".join(map(repr, row)) for row in rows)]
        (folder / "log.csv").write_text("\n".join(text).replace("True", "true").replace("False", "false") + "\n")
        return folder / "log.csv"
    if form == "parquet":
        return parquet(folder / "log.parquet", arrays)
    if form == "arrow":
        return pa.table(flat)
    if importlib.util.find_spec(form) is None:
        pytest.skip(f"{form} is not installed")
    return importlib.import_module(form).DataFrame(flat)


def steps(**more: Any) -> dict[str, Any]:
    table = frame([6, 6])
    return {
        "episode": table["episode"], "obs": table["obs"], "next_obs": table["next_obs"], "action": table["action"],
        "reward": table["reward"], "terminal": table["last"], **more,
    }  # fmt: skip
