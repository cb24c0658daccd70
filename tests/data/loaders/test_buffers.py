"""d3rlpy's and Tianshou's buffers: every step as it was put in, nothing that was never filled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.data import Ledger, load_vectors

EPISODES = ((4, True), (5, False), (3, True))
"""Steps, and whether the task ended."""


def _rows() -> dict[str, np.ndarray]:
    rng, ends = np.random.default_rng(0), np.cumsum([steps for steps, _ in EPISODES]) - 1
    last, terminal = np.zeros(12, bool), np.zeros(12, bool)
    last[ends], terminal[ends] = True, [ended for _, ended in EPISODES]
    return {
        "obs": np.column_stack([np.arange(12), rng.normal(size=12)]), "act": rng.uniform(-1, 1, (12, 1)),
        "rew": rng.normal(size=12), "terminated": terminal, "truncated": last & ~terminal, "done": last,
        "obs_next": np.column_stack([np.arange(12) + 0.5, rng.normal(size=12)]),
    }  # fmt: skip


def _d3rlpy(path: Path, **changes: Any) -> Path:
    rows, at = _rows(), 0
    with h5py.File(path, "w") as file:
        for number, (steps, ended) in enumerate(EPISODES):
            part = slice(at, at + steps)
            held = {"observations": rows["obs"][part], "actions": rows["act"][part],
                    "rewards": rows["rew"][part, None], "terminated": ended}  # fmt: skip
            for key, value in (held | (changes if number == 1 else {})).items():
                if value is not None:
                    file[f"{key}_{number}"] = value
            at += steps
        file["columns"], file["num_episodes"] = ["observations", "actions", "rewards", "terminated"], len(EPISODES)
        file["version"] = "2.1"
    return path


def test_d3rlpys_episodes(tmp_path: Path) -> None:
    data, rows = load_vectors(_d3rlpy(tmp_path / "buffer.h5"), last_step="drop"), _rows()
    kept = np.delete(np.arange(12), 8)  # the last step of the episode that was cut has no known next state
    np.testing.assert_allclose(data.observation, rows["obs"][kept], rtol=1e-6)
    np.testing.assert_allclose(data.reward, rows["rew"][kept], rtol=1e-6)
    assert data.episode_lengths.tolist() == [4, 4, 3]
    assert np.flatnonzero(data.terminal).tolist() == [3, 10]
    assert np.flatnonzero(data.timeout).tolist() == [7]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"terminated": None}, "episode 1 has no terminated"),
        ({"observations": np.zeros((5, 3))}, "observations are 2 and 3 wide"),
        ({"observations": np.zeros((5, 3, 8, 8))}, "holds images"),
        ({"rewards": np.zeros((4, 1))}, "episode 1 has arrays of [4, 5] rows"),
        ({"observations": None, "observations_1": np.zeros(2)}, "episode 1 has no observations"),
    ],
)
def test_d3rlpys_buffers_that_are_refused(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(SappError) as caught:
        load_vectors(_d3rlpy(tmp_path / "buffer.h5", **changes))
    assert words in str(caught.value)


def test_d3rlpys_first_layout_marks_every_end(tmp_path: Path) -> None:
    rows = _rows()
    with h5py.File(tmp_path / "v1.h5", "w") as file:
        for key, old in (("observations", "obs"), ("actions", "act"), ("rewards", "rew"), ("terminals", "terminated"),
                         ("episode_terminals", "done")):  # fmt: skip
            file[key] = rows[old].astype(np.float32)
        file["discrete_action"], file["version"] = False, "1.0"
    data = load_vectors(tmp_path / "v1.h5", last_step="drop")
    assert data.episode_lengths.tolist() == [4, 4, 3]
    assert np.flatnonzero(data.terminal).tolist() == [3, 10]


def _tianshou(path: Path, capacity: int, oldest: int, several: bool = False) -> Path:
    with h5py.File(path, "w") as file:
        for key, value in _rows().items():
            held = np.zeros((capacity, *value.shape[1:]), value.dtype)
            held[:12] = np.roll(value, oldest, axis=0)
            file[f"_meta/{key}"] = held
        file.create_group("_meta/info")
        file["_indices"], file["last_index"] = np.arange(capacity), np.array([11])
        file.attrs.update({"_size": 12, "maxsize": capacity, "_insertion_idx": (12 + oldest) % capacity})
        if several:
            file["_offset"] = np.array([0, 10])
    return path


@pytest.mark.parametrize(("capacity", "oldest"), [(20, 0), (12, 0), (12, 7)])
def test_tianshous_buffer_in_order_and_without_rows_never_filled(tmp_path: Path, capacity: int, oldest: int) -> None:
    data, rows = load_vectors(_tianshou(tmp_path / "buffer.hdf5", capacity, oldest)), _rows()
    for key, old in (("observation", "obs"), ("next_observation", "obs_next"), ("action", "act"), ("reward", "rew")):
        np.testing.assert_allclose(getattr(data, key), rows[old], rtol=1e-6)
    np.testing.assert_array_equal(data.terminal, rows["terminated"])
    np.testing.assert_array_equal(data.timeout, rows["truncated"])
    assert {each.name for each in Ledger.of(data).unused} == {"info"}
    assert any("never filled" in line for line in Ledger.of(data).lines()) == (capacity == 20)


def test_tianshous_buffer_of_several_environments_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SappError, match=r"several environments; buffer.sample\(0\)\[0\] holds its steps in order"):
        load_vectors(_tianshou(tmp_path / "buffer.hdf5", 20, 0, several=True))
