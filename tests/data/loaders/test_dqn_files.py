"""Files of DQN-Replay folders that are cut short or of another kind are named."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from frame_logs import make_log
from test_dqn_replay import _one_line

from sapp.data.loaders.dqn_replay import save_dqn_replay

LENGTHS, ENDS = [6, 1, 3, 2, 1, 5, 4], [True, True, False, True, False, True, False]


def get(folder, name):
    with gzip.open(folder / name) as file:
        return np.load(file)


@pytest.fixture
def log(tmp_path):
    data = make_log(LENGTHS, ENDS, side=16)
    save_dqn_replay(data, tmp_path)
    return tmp_path


@pytest.mark.parametrize("key", ["observation", "action", "reward", "terminal"])
def test_a_truncated_file_is_named(log, key):
    path = log / f"$store$_{key}_ckpt.0.gz"
    path.write_bytes(path.read_bytes()[:-9])
    _one_line(log, rf"{key}_ckpt\.0\.gz: cannot be read as a gzipped \.npy")


def test_a_file_that_is_no_gzip_or_no_array_is_named(log):
    path = log / "$store$_reward_ckpt.0.gz"
    path.write_bytes(b"hello")
    _one_line(log, r"reward_ckpt\.0\.gz: cannot be read as a gzipped \.npy")
    path.write_bytes(gzip.compress(b"hello, this is no array"))
    _one_line(log, r"reward_ckpt\.0\.gz: cannot be read as a gzipped \.npy")


@pytest.mark.parametrize(
    ("key", "change", "message"),
    [
        ("action", lambda value: value[:-1], r"has shape \(42,\), the frames of shard 0 have 43 rows"),
        ("reward", lambda value: value[:, None], r"has shape \(43, 1\)"),
        ("action", lambda value: value.astype(np.float32), "holds float32; action must be integer"),
        ("reward", lambda value: value.astype(np.int64), "holds int64; reward must be float"),
        ("terminal", lambda value: value * 2, "holds 2; terminal must be 0 or 1"),
        ("reward", lambda value: value * np.nan, "reward is not finite at row 0"),
        ("action", lambda value: value - 1, "action is -1"),
        ("observation", lambda value: value.astype(np.float32), r"holds float32 .*frames must be uint8"),
        ("observation", lambda value: value[:, :, 0], r"frames must be uint8 \(rows, height, width\)"),
        ("observation", lambda value: value[:-1], r"has shape \(43,\), the frames of shard 0 have 42 rows"),
    ],
)
def test_a_wrong_array_is_named(log, key, change, message):
    name = f"$store$_{key}_ckpt.0.gz"
    value = change(get(log, name))
    with gzip.open(log / name, "wb") as file:
        np.save(file, value)
    _one_line(log, message)
