from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.data import Dataset, load, save_npz


def plain(data: Dataset) -> dict[str, Any]:
    return {
        "observations": data.observation,
        "actions": data.action,
        "rewards": data.reward[:, None].astype(np.float64),
        "terminals": data.terminal.astype(np.uint8),
        "timeouts": data.timeout,
        "next_observations": data.next_observation,
    }


@pytest.mark.parametrize("compress", [False, True])
def test_saved_dataset_comes_back_bit_for_bit(small: Dataset, tmp_path: Path, compress: bool) -> None:
    path = save_npz(small, tmp_path / "new" / "small.npz", compress=compress)
    back = load(path)
    assert back.fingerprint == small.fingerprint
    for key in ("name", "environment", "physics", "provenance"):
        assert getattr(back, key) == getattr(small, key)
    assert back.extras["log_prob"].dtype == np.float64
    np.testing.assert_array_equal(back.extras["log_prob"], small.extras["log_prob"])
    assert [each.name for each in path.parent.iterdir()] == ["small.npz"]
    assert load(path, name="new", environment="E-v1").name == "new"


def test_saved_bounds_come_back(tmp_path: Path) -> None:
    data = Dataset.from_arrays(
        [[0.0]], [[5.0, 0.1]], [1.0], [1], action_low=[0, -0.2], action_high=[10, 0.2], physics="d4rl"
    )
    back = load(save_npz(data, tmp_path / "x.npz"))
    assert back.action_low.tolist() == data.action_low.tolist()
    assert back.action_high.tolist() == data.action_high.tolist()
    assert back.physics == "d4rl"


def test_d4rls_files_survive(d4rl_file: Path, tmp_path: Path) -> None:
    data = load(d4rl_file)
    back = load(save_npz(data, tmp_path / f"{d4rl_file.stem}.npz"))
    assert back.fingerprint == data.fingerprint
    assert back.provenance == data.provenance
    assert set(back.extras) >= {"qpos", "qvel", "log_prob"}
    assert all(np.array_equal(back.extras[key], value) for key, value in data.extras.items())


def test_dictionary_in_d4rl_style(small: Dataset) -> None:
    data = load({**plain(small), "infos/qpos": np.arange(6)}, name="mine")
    assert data.fingerprint == small.fingerprint
    assert data.extras["qpos"].tolist() == list(range(6))
    assert data.name == "mine"


def test_foreign_npz(small: Dataset, tmp_path: Path) -> None:
    np.savez(tmp_path / "log.npz", **plain(small))
    data = load(tmp_path / "log.npz", environment="E-v0")
    assert data.fingerprint == small.fingerprint
    assert (data.name, data.environment) == ("log", "E-v0")
    assert data.provenance["loader"] == "npz"
    assert len(data.provenance["sha256"]) == 64


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("pickle", ["'notes'", "pickle", "never loaded"]),
        ("not zip", ["npz", "damaged"]),
        ("bare array", ["bare array", "savez"]),
        ("truncated", ["npz", "damaged"]),
        ("empty", ["empty"]),
        ("no reward", ["no reward", "observations"]),
        ("misspelt", ["'next_observatons'", "did you mean 'next_observations'?"]),
        ("twice", ["both 'observation' and 'observations'"]),
        ("other length", ["array 'constant' has 2 rows but observation has 6"]),
        ("saved, damaged", ["'reward'", "damaged"]),
        ("saved, other text", ["sapp_dataset", "damaged"]),
    ],
)
def test_bad_npz(small: Dataset, tmp_path: Path, case: str, words: list[str]) -> None:
    path, arrays = tmp_path / "bad.npz", plain(small)
    if case == "pickle":
        arrays["notes"] = np.array([{"a": 1}] * 6, dtype=object)
    elif case == "no reward":
        del arrays["rewards"]
    elif case == "misspelt":
        arrays["next_observatons"] = arrays.pop("next_observations")
    elif case == "twice":
        arrays["observation"] = small.observation
    elif case == "other length":
        arrays["constant"] = np.arange(2)
    elif case == "saved, damaged":
        arrays = {"sapp_dataset": np.array("{}"), "observation": small.observation, "action": small.action}
    elif case == "saved, other text":
        save_npz(small, path)
        arrays = {**np.load(path), "sapp_dataset": np.array("[1]")}
    np.savez(path, **arrays)
    if case == "not zip":
        path.write_text("hello")
    elif case == "bare array":
        with path.open("wb") as file:
            np.save(file, np.arange(3))
    elif case == "truncated":
        path.write_bytes(path.read_bytes()[:300])
    elif case == "empty":
        path.write_bytes(b"")
    with pytest.raises(SappError) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    for word in ["bad.npz", *words]:
        assert word in message


def test_save_refuses_other_endings_and_unwritable_places(small: Dataset, tmp_path: Path) -> None:
    with pytest.raises(SappError, match=r"must end in \.npz"):
        save_npz(small, tmp_path / "small.bin")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SappError, match=r"small\.npz"):
        save_npz(small, tmp_path / "file" / "small.npz")


@pytest.mark.parametrize(
    ("name", "rows", "advice"),
    [
        ("episode_ends", 2, "if it tells where episodes are, give an id per row instead (episode), and ignore = ['"),
        ("actions", 5, "give observation[:-1], and observation[1:] as next_observation"),
        ("actions", 4, "but observation has 6; correct it"),
        ("weather", 4, "correct it, or leave it out (ignore = ['weather'])"),
    ],
)
def test_arrays_of_other_lengths_come_with_their_own_cure(name: str, rows: int, advice: str) -> None:
    arrays = {"observations": np.zeros((6, 2)), "actions": np.zeros((6, 1)), "rewards": np.zeros(6)}
    arrays[name] = np.zeros(rows)
    with pytest.raises(SappError) as caught:
        load({**arrays, "terminals": np.arange(6) == 5})
    assert advice in str(caught.value)


def test_a_buffer_by_environments_is_told_how_to_be_flat() -> None:
    arrays = {"observations": np.zeros((6, 2, 3)), "actions": np.zeros((6, 2)), "rewards": np.zeros(6)}
    with pytest.raises(SappError, match=r"give x.swapaxes\(0, 1\).reshape\(-1, width\)"):
        load({**arrays, "dones": np.ones(6)})


def test_padded_episodes_are_refused() -> None:
    arrays = {"observations": np.zeros((6, 4, 3)), "actions": np.zeros((6, 4)), "rewards": np.zeros((6, 4))}
    with pytest.raises(SappError, match=r"observation has shape \(6, 4, 3\)"):
        load({**arrays, "terminals": np.zeros((6, 4))})
