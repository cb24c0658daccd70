"""Writing DQN-Replay folders: whole or not at all."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from frame_logs import make_log
from test_dqn_replay import assert_same, get

from sapp.core.errors import SappError
from sapp.data.loaders.dqn_files import save_array, shard_path
from sapp.data.loaders.dqn_replay import load_dqn_replay, save_dqn_replay
from sapp.data.loaders.dqn_writer import ShardWriter
from sapp.envs.catch import behaviour_logs


def test_nothing_half_written(tmp_path):
    data = make_log([50, 50], [True, True])
    writer = ShardWriter(tmp_path / "log", data.frame_shape, num_actions=3, shard_rows=60)
    for start in (0, 50):
        rows = slice(start, start + 50)
        writer.write_frames(data.frames[rows], data.action[rows], data.reward[rows], True, False)
    # The first shard is complete, the second is still to be seen by nobody.
    assert_same(load_dqn_replay(tmp_path / "log"), data.take_episodes(1))
    assert [each.name for each in (tmp_path / "log").glob(".*")] == [".observation.1.tmp"]
    writer.abandon()
    assert not list((tmp_path / "log").glob(".*"))
    assert not list((tmp_path / "log").glob("*_ckpt.1.gz"))
    # Another writer goes on behind it.
    more = ShardWriter(tmp_path / "log", data.frame_shape, num_actions=3, resume=True)
    more.write_frames(data.frames[50:], data.action[50:], data.reward[50:], True, False)
    more.close()
    assert_same(load_dqn_replay(tmp_path / "log"), data)


@pytest.mark.parametrize(("key", "value"), [("terminal", -1), ("timeout", -1), ("action", 2**32 + 1)])
def test_numbers_that_would_wrap_or_count_as_none_are_refused(tmp_path: Path, key: str, value: int) -> None:
    folder = save_dqn_replay(behaviour_logs(4), tmp_path / "log")
    path = shard_path(folder, key, 0)
    column = get(folder, path.name).astype(np.int64)
    column[5] = value
    save_array(path, column)
    with pytest.raises(SappError, match=rf"{re.escape(path.name)}: (holds|action is) {value};"):
        load_dqn_replay(folder)
