"""Data frames as they lie in memory."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.data import Ledger, load

pandas = pytest.importorskip("pandas")

ROWS: dict[str, Any] = {
    "episode": ["a"] * 3 + ["b"] * 2, "step": [0, 1, 2, 0, 1], "obs_0": [0.1, 0.2, 0.3, 0.4, 0.5],
    "obs_1": [1.0, 2.0, 3.0, 4.0, 5.0], "action": [0.5, -0.5, 0.0, 0.25, 1.0], "reward": [0.0, 1.0, 2.0, 3.0, 4.0],
    "terminal": [False, False, True, False, True],
}  # fmt: skip


def frames() -> list[Any]:
    found = [pandas.DataFrame(ROWS)]
    for name, make in (("polars", lambda m: m.DataFrame(ROWS)), ("polars", lambda m: m.DataFrame(ROWS).lazy()),
                       ("pyarrow", lambda m: m.table(ROWS))):  # fmt: skip
        found.append(make(pytest.importorskip(name)))
    return found


def test_every_kind_of_frame_is_the_same_dataset() -> None:
    first, *others = (load(frame) for frame in frames())
    assert first.reward.tolist() == ROWS["reward"]
    assert first.episode_lengths.tolist() == [3, 2]
    np.testing.assert_allclose(first.observation[:, 1], ROWS["obs_1"])
    assert {each.fingerprint for each in others} == {first.fingerprint}


def test_the_index_and_pandas_own_types_do_not_count() -> None:
    odd = pandas.DataFrame(ROWS, index=[9, 8, 7, 6, 5])
    odd["step"] = odd["step"].astype("Int64")
    odd["episode"] = odd["episode"].astype("category")
    assert load(odd).fingerprint == load(pandas.DataFrame(ROWS)).fingerprint
    assert Ledger.of(load(odd)).rows == 5


def test_lists_become_vectors_and_uneven_ones_are_named() -> None:
    listed = {key: value for key, value in ROWS.items() if not key.startswith("obs")}
    data = load(pandas.DataFrame(listed | {"obs": [[a, b] for a, b in zip(ROWS["obs_0"], ROWS["obs_1"], strict=True)]}))
    np.testing.assert_allclose(data.observation[:, 0], ROWS["obs_0"], rtol=1e-6)
    with pytest.raises(SappError, match="column 'obs' holds lists that are not numbers of one width"):
        load(pandas.DataFrame(listed | {"obs": [[1.0], [2.0, 3.0], [1.0], [1.0], [1.0]]}))
    double = pandas.DataFrame(np.ones((2, 2)), columns=["reward", "reward"])
    with pytest.raises(SappError, match="column 'reward' appears more than once; rename one"):
        load(double)


def test_times_with_a_zone_count_in_utc_and_decimals_are_numbers() -> None:
    start = pandas.Timestamp("2024-03-31 00:00", tz="UTC")  # clocks in Berlin are set forward an hour later
    rows = {key: value * 3 for key, value in ROWS.items()} | {"episode": ["a"] * 15, "terminal": [False] * 14 + [True]}
    frame = pandas.DataFrame(rows)
    frame["step"] = pandas.date_range(start, periods=15, freq="30min").tz_convert("Europe/Berlin")
    frame["reward"] = [Decimal(str(value)) for value in frame["reward"]]
    data = load(frame)
    assert data.episode_lengths.tolist() == [15]
    assert data.reward.tolist() == ROWS["reward"] * 3
