"""robomimic's layout: vectors of the observations side by side, demonstrations in the order of their numbers."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.data import load
from sapp.data.loaders.robomimic import is_robomimic, robomimic_table


def demonstration(file: h5py.File, number: int, rows: int, **left_out: bool) -> None:
    group = file.create_group(f"data/demo_{number}")
    group["obs/a"], group["obs/b"] = np.full((rows, 2), number), np.arange(rows, dtype=float)
    group["obs/camera"] = np.zeros((rows, 4, 4, 3), np.uint8)
    group["actions"], group["dones"] = np.zeros((rows, 1)), np.arange(rows) == rows - 1
    if not left_out.get("rewards"):
        group["rewards"] = np.ones(rows)


def test_demonstrations_are_episodes_in_order(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "log.hdf5", "w") as file:
        demonstration(file, 10, 3)
        demonstration(file, 2, 4)
        assert is_robomimic(file)
        table, ledger = robomimic_table(file, "log")
        assert table.numbers("episode").tolist() == [0] * 4 + [1] * 3
        np.testing.assert_array_equal(table.numbers("obs")[:, 2], [0, 1, 2, 3, 0, 1, 2])
        assert any("camera" in column.name for column in ledger.columns)
    data = load(tmp_path / "log.hdf5")
    assert data.observation[:, 0].tolist() == [2] * 4 + [10] * 3
    assert data.num_episodes == 2


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "log.hdf5", "w") as file:
        assert not is_robomimic(file)
        demonstration(file, 0, 3, rewards=True)
        with pytest.raises(SappError, match="a demonstration has no 'rewards'"):
            robomimic_table(file, "log")
        del file["data/demo_0/obs"]
        with pytest.raises(SappError, match=r"demo_0 has no observations \(obs\); run robomimic's dataset"):
            robomimic_table(file, "log")
