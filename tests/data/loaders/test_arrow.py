"""Values as real logs hold them: NaN where a null was meant, text where numbers were, codes, lists with holes."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from value_logs import NAN, log, read, refusal, with_

from sapp.core.errors import SappError
from sapp.data.loaders.arrow import table_of_arrow

PAIRS: list[Any] = [[0.1 * i, 1.0 + i] for i in range(8)]
HOLES = {
    "null in a list": [None, 3.0],
    "NaN in a list": [NAN, 3.0],
    "no list at all": None,
}


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float64(), 2), pa.large_list(pa.float64())])
@pytest.mark.parametrize("hole", HOLES)
def test_lists_with_holes(tmp_path: Path, hole: str, kind: pa.DataType) -> None:
    table = log(obs=pa.array(with_(PAIRS, 2, HOLES[hole]), kind))
    message = refusal(tmp_path, table)
    assert "'obs' is empty or NaN at row 2" in message
    assert "missing = 'fill' or 'drop'" in message
    filled = read(tmp_path, table, missing="fill")
    np.testing.assert_allclose(filled.observation[2], [0.1, 2.0] if HOLES[hole] is None else [0.1, 3.0], rtol=1e-6)
    np.testing.assert_allclose(filled.observation[[0, 1, 3, 4, 7]], np.array(PAIRS)[[0, 1, 3, 4, 7]], rtol=1e-6)
    assert read(tmp_path, table, missing="drop").reward.tolist() == [4, 5, 6, 7]


def test_the_column_beside_a_list_is_named(tmp_path: Path) -> None:
    table = log(obs=PAIRS, speed=with_([0.0] * 8, 6, None), heat=[0.0] * 8)
    message = refusal(tmp_path, table, observation=["heat", "obs", "speed"])
    assert "'speed' is empty or NaN at row 6" in message


def test_lists_without_a_single_value(tmp_path: Path) -> None:
    table = log(obs=pa.array([None] * 8, pa.list_(pa.float64())))
    assert "every episode has empty values" in refusal(tmp_path, table, missing="drop")
    assert "'obs' is empty or NaN at row 0" in refusal(tmp_path, log(obs=pa.nulls(8)))


@pytest.mark.parametrize("flag", ["terminal", "timeout"])
@pytest.mark.parametrize(
    ("off", "on", "hole"),
    [(0.0, 1.0, NAN), (0, 1, None), (False, True, None), ("no", "yes", None)],
    ids=["NaN", "null", "bool", "words"],
)
def test_flags_with_holes(tmp_path: Path, flag: str, off: Any, on: Any, hole: Any) -> None:
    column = pa.array([off, hole, off, off, off, off, off, on], from_pandas=False)
    table, columns = log(**{"terminal": None, flag: column}), {"terminal": None, flag: flag}
    columns |= {"last_step": "drop"} if flag == "timeout" else {}
    assert f"'{flag}' is empty or NaN at row 1 and cannot be filled" in refusal(tmp_path, table, **columns)
    message = refusal(tmp_path, table, **columns, missing="fill")
    assert f"'{flag}' is empty or NaN at row 1 and cannot be filled; fix it, or choose missing = 'drop'" in message
    data = read(tmp_path, table, **columns, missing="drop")
    assert data.reward.tolist() == ([4, 5, 6, 7] if flag == "terminal" else [4, 5, 6])


def test_decimals_are_numbers(tmp_path: Path) -> None:
    plain = read(tmp_path, log())
    names = ("obs", "action", "reward", "terminal", "step")
    table = log(**{key: [Decimal(f"{value:.2f}") for value in log()[key]] for key in names})
    assert pa.types.is_decimal(pa.table(table).column("obs").type)
    assert read(tmp_path, table).fingerprint == plain.fingerprint
    pairs = read(tmp_path, log(obs=[[Decimal("0.25"), Decimal("1.50")]] * 8))
    assert pairs.observation[7].tolist() == [0.25, 1.5]


@pytest.mark.parametrize("lengths", [(3, 3), (3, 2)])
def test_an_episode_per_row_is_told_to_be_a_step_per_row(lengths: tuple[int, int]) -> None:
    table = pa.table({"obs": [[[0.0, 1.0]] * steps for steps in lengths]})
    with pytest.raises(SappError, match=r"if a row is a whole episode, write a row per step"):
        table_of_arrow(table, "log").column("obs")
