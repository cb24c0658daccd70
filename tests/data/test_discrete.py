"""Discrete actions from arrays to files, fingerprints and summaries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.data import Dataset, concatenate, load, save_npz
from sapp.data.dataset_summary import summarise


def choices(**more: object) -> Dataset:
    steps = 6
    arrays = {
        "observation": np.arange(12.0).reshape(steps, 2),
        "action": [0, 2, 1, 1, 0, 2],
        "reward": np.arange(6.0),
        "next_observation": np.arange(12.0).reshape(steps, 2) + 2,
        "terminal": [0, 0, 1, 0, 0, 0],
        "timeout": [0, 0, 0, 0, 0, 1],
    }
    return Dataset(**{**arrays, "num_actions": 3, **more})  # type: ignore[arg-type]


def test_actions_are_whole_numbers_and_stay_so(tmp_path: Path) -> None:
    data = choices(action_labels=("a", "b", "c"))
    assert data.discrete
    assert data.action.dtype == np.int32
    assert data.action.shape == (6,)
    assert data.action_size == 3
    assert data.scaled_action() is data.action
    found = load(save_npz(data, tmp_path / "d.npz"))
    assert found.fingerprint == data.fingerprint
    assert found.action_labels == ("a", "b", "c")
    assert concatenate([data, data]).num_actions == 3
    assert data.take_episodes([1]).action.tolist() == [1, 0, 2]
    assert summarise(data).choices == {"a": 2 / 6, "b": 2 / 6, "c": 2 / 6}


def test_the_number_of_actions_counts_in_the_fingerprint() -> None:
    assert choices().fingerprint != choices(num_actions=4).fingerprint


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"action": [0, 3, 1, 1, 0, 2]}, "action is 3 at row 1"),
        ({"action": [0, 0.5, 1, 1, 0, 2]}, "action is 0.5 at row 1"),
        ({"action": [0, -1, 1, 1, 0, 2]}, "action is -1 at row 1"),
        ({"action_labels": ("a", "b")}, "2 action labels for num_actions 3"),
        ({"action_labels": ("a", "b", "a")}, "'a' appears more than once"),
    ],
)
def test_wrong_choices_are_named(more: dict[str, object], message: str) -> None:
    with pytest.raises(SappError, match=message):
        choices(**more)


def test_continuous_data_keep_their_fingerprint() -> None:
    """Pinned before discrete actions existed: runs refer to data by it."""
    data = Dataset([[0.0], [1.0]], [[0.5], [-0.5]], [1.0, 2.0], [[1.0], [2.0]], [False, False], [False, True])
    assert data.fingerprint.startswith("65ed8c7489a7a369")
