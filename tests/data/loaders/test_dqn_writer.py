"""Writing DQN-Replay folders: whole or not at all."""

from __future__ import annotations

from frame_logs import make_log
from test_dqn_replay import assert_same, get

from sapp.data.loaders.dqn_replay import load_dqn_replay
from sapp.data.loaders.dqn_writer import ShardWriter


def test_nothing_half_written(tmp_path):
    data = make_log([50, 50], [True, True])
    writer = ShardWriter(tmp_path / "log", data.frame_shape, num_actions=3, shard_rows=60)
    for start in (0, 50):
        rows = slice(start, start + 50)
        writer.write_frames(data.frames[rows], data.action[rows], data.reward[rows], True, False)
    # The first shard is complete, the second is still to be seen by nobody.
    assert_same(load_dqn_replay(tmp_path / "log"), data.take_episodes(1))
    # Of 60 places 53 are taken: where Dopamine would write next, the row before it and a stack behind it.
    assert get(tmp_path / "log", "add_count_ckpt.0.gz") == 53
    assert get(tmp_path / "log", "invalid_range_ckpt.0.gz").tolist() == [52, 53, 54, 55, 56]
    assert [each.name for each in (tmp_path / "log").glob(".*")] == [".observation.1.tmp"]
    writer.abandon()
    assert not list((tmp_path / "log").glob(".*"))
    assert not list((tmp_path / "log").glob("*_ckpt.1.gz"))
    # Another writer goes on behind it.
    more = ShardWriter(tmp_path / "log", data.frame_shape, num_actions=3, resume=True)
    more.write_frames(data.frames[50:], data.action[50:], data.reward[50:], True, False)
    more.close()
    assert_same(load_dqn_replay(tmp_path / "log"), data)
