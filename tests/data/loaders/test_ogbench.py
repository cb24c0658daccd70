"""OGBench's arrays: masks end the task, terminals the recording."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_d4rl_families import ROWS, trajectories

from sapp.core.errors import SappError
from sapp.data import load


@pytest.mark.parametrize("as_file", [True, False])
def test_ogbench_ends_a_task_by_its_masks(as_file: bool, tmp_path: Path) -> None:
    arrays = trajectories(29, 8)
    np.savez(tmp_path / "task.npz", **arrays)
    data = load(tmp_path / "task.npz" if as_file else arrays)
    assert np.flatnonzero(data.terminal).tolist() == [9]
    assert np.flatnonzero(data.timeout).tolist() == [5, 11]
    assert data.episode_returns.tolist() == [0, 1, 0]
    np.testing.assert_array_equal(data.next_observation, arrays["next_observations"])


def test_ogbench_without_a_task_has_no_rewards(tmp_path: Path) -> None:
    arrays = trajectories(29, 8)
    raw = {key: arrays[key] for key in ("observations", "actions", "terminals")} | {"qpos": np.zeros((ROWS, 15))}
    np.savez(tmp_path / "antmaze-large-navigate-v0.npz", **raw)
    with pytest.raises(SappError, match=r"antmaze-large-navigate-v0.npz: holds no rewards.*singletask"):
        load(tmp_path / "antmaze-large-navigate-v0.npz")
    with pytest.raises(SappError, match="terminals have the shape"):
        load(arrays | {"masks": np.ones(3)})
