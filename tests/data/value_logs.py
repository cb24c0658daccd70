"""Small logs as Parquet files, with one thing changed: what the tests of values share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from sapp.core.errors import SappError
from sapp.data import Dataset, load

NAN = float("nan")


def log(**more: Any) -> dict[str, Any]:
    """Two episodes of four steps, each to a terminal; rewards 0 to 7, observations 0 to 0.7."""
    return {
        "episode": [0] * 4 + [1] * 4,
        "step": [0, 1, 2, 3] * 2,
        "obs": [0.1 * i for i in range(8)],
        "action": [0.5] * 8,
        "reward": [float(i) for i in range(8)],
        "terminal": [0, 0, 0, 1] * 2,
        **more,
    }


def write(path: Path, table: dict[str, Any]) -> Path:
    pa.parquet.write_table(pa.table({key: value for key, value in table.items() if value is not None}), path)
    return path


def read(folder: Path, table: dict[str, Any], **columns: Any) -> Dataset:
    usual = {"episode": "episode", "time": "step", "observation": "obs", "action": "action", "terminal": "terminal"}
    mapping = {**usual, "scale": "none", **columns}
    data = load(write(folder / "log.parquet", table), columns={k: v for k, v in mapping.items() if v is not None})
    assert isinstance(data, Dataset)
    return data


def refusal(folder: Path, table: dict[str, Any], **columns: Any) -> str:
    with pytest.raises(SappError) as caught:
        read(folder, table, **columns)
    message = str(caught.value)
    assert message.startswith(str(folder / "log.parquet"))
    assert "\n" not in message
    return message


def with_(values: list[Any], row: int, value: Any) -> list[Any]:
    return [*values[:row], value, *values[row + 1 :]]


STEPS = [0.0, 1.0, 2.0, 3.0] * 2
DATES = [np.datetime64("2024-01-01") + day for day in (0, 1, 2, 3)] * 2
