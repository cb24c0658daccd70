from __future__ import annotations

import csv

import numpy as np
import pytest

from sapp.collect.frames_log import FramesLog, log_policy
from sapp.core.errors import SappError
from sapp.data.loaders.dqn_replay import load_dqn_replay
from sapp.envs.catch import Catch


def wander(stacks: np.ndarray) -> np.ndarray:
    """A policy of the stack: what it does depends on every frame of it."""
    return (stacks.astype(np.int64) * np.arange(1, 5)[:, None, None]).sum((1, 2, 3)) % 3


def replayed(data) -> None:
    """Every step of the log follows from the one before: the same play, by the rules of the game."""
    for start, end in zip(data.episode_starts, data.episode_ends, strict=True):
        cells = data.frames[start : end + 1, ::2, ::2]
        paddle = np.array([np.argwhere(each[-1] == 128)[:, 0].mean() for each in cells])
        moved = np.clip(paddle[:-1] + data.action[start:end] - 1, 1, 10)
        np.testing.assert_array_equal(paddle[1:], moved)
        ball = np.array([np.argwhere(each == 255)[0, 0] for each in cells])
        assert (ball == np.arange(len(ball)) % 11).all()


@pytest.mark.parametrize(("rows", "shard_rows"), [(5, 1_000_000), (3, 60)])
def test_a_logged_policy_is_what_was_played(tmp_path, rows, shard_rows):
    folder = log_policy(wander, Catch(balls=3), 330, 0.0, 4, tmp_path / "log", rows=rows, shard_rows=shard_rows)
    data = load_dqn_replay(folder)
    assert data.size == 330
    assert data.environment == "catch"
    assert data.action_labels == ("LEFT", "STAY", "RIGHT")
    # Without noise, the actions are the policy's at the stacks that the log gives back.
    np.testing.assert_array_equal(data.action, wander(data.stacks(np.arange(data.size))))
    replayed(data)
    assert data.terminal.sum() == rows * (330 // rows // 33)
    assert set(data.episode_lengths[data.terminal[data.episode_ends]]) == {33}
    assert data.provenance["made"]["epsilon"] == 0.0
    with (folder / "episodes.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [int(row["length"]) for row in table] == data.episode_lengths.tolist()
    assert [float(row["clipped_return"]) for row in table] == data.episode_returns.tolist()
    assert [row["end"] == "terminal" for row in table] == data.terminal[data.episode_ends].tolist()
    shards = list(folder.glob("$store$_observation_ckpt.*.gz"))
    assert (len(shards) > 1) == (shard_rows == 60)
    again = log_policy(wander, Catch(balls=3), 330, 0.0, 4, tmp_path / "again", rows=rows, shard_rows=shard_rows)
    assert load_dqn_replay(again).fingerprint == data.fingerprint


def test_noise_changes_as_many_actions_as_it_should(tmp_path):
    data = load_dqn_replay(log_policy(wander, Catch(), 4000, 0.3, 0, tmp_path / "log", rows=20))
    changed = data.action != wander(data.stacks(np.arange(data.size)))
    assert changed.mean() == pytest.approx(0.3 * 2 / 3, abs=0.03)


def test_rows_share_several_strengths_of_noise_evenly(tmp_path):
    data = load_dqn_replay(log_policy(wander, Catch(balls=100), 8000, (0.0, 0.9), 0, tmp_path / "log", rows=4))
    changed = data.action != wander(data.stacks(np.arange(data.size)))
    # a row plays one long episode after the other: each episode has one ε
    episodes = zip(data.episode_starts, data.episode_ends, strict=True)
    shares = np.array([changed[start : end + 1].mean() for start, end in episodes])
    lengths = data.episode_lengths
    assert lengths[shares == 0].sum() == 4000
    assert shares[shares > 0] == pytest.approx(np.full((shares > 0).sum(), 0.6), abs=0.06)
    assert data.provenance["made"]["epsilon"] == [0.0, 0.9]
    with pytest.raises(SappError, match="3 rows cannot share 2 values of epsilon evenly"):
        log_policy(wander, Catch(), 44, (0.0, 0.5), 0, tmp_path / "uneven", rows=3)


def test_episodes_come_in_the_order_they_end_and_rewards_are_clipped(tmp_path):
    game = Catch()
    with FramesLog(tmp_path / "log", game, 2, threads=2) as log:
        lengths = ([3, 4], [5, 2])  # of row 0 and row 1
        ends = [set(np.cumsum(each) - 1) for each in lengths]
        for step in range(7):
            frames = np.full((2, 24, 24), 10 * (step + 1), np.uint8)
            frames[1] += 1
            terminal = np.array([step in ends[0], False])
            truncated = np.array([False, step in ends[1]])
            log.add(frames, np.array([0, 2]), np.array([1.0, -1.0]), terminal, truncated, np.array([7.0, -3.0]))
        assert log.steps == 14
    data = load_dqn_replay(tmp_path / "log")
    assert data.episode_lengths.tolist() == [3, 5, 4, 2]
    assert data.terminal[data.episode_ends].tolist() == [True, False, True, False]
    assert data.frames[:, 5, 5].tolist() == [10, 20, 30, 11, 21, 31, 41, 51, 40, 50, 60, 70, 61, 71]
    assert data.episode_returns.tolist() == [3, -5, 4, -2]
    text = (tmp_path / "log" / "episodes.csv").read_text().splitlines()
    assert text[1:3] == ["3,3,21,terminal", "5,-5,-15,timeout"]


def test_an_error_leaves_no_half_shard(tmp_path):
    game = Catch()
    frames = game.reset(2, seed=0)
    flags = np.zeros(2, bool)

    def fail():
        with FramesLog(tmp_path / "log", game, 2) as log:
            log.add(frames, np.zeros(2, int), np.zeros(2), ~flags, flags)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [each.name for each in (tmp_path / "log").iterdir()] == ["sapp.json"]


def test_a_log_goes_on(tmp_path):
    log_policy(wander, Catch(), 44, 0.0, 0, tmp_path / "log", rows=2)
    with pytest.raises(SappError, match="holds shards already"):
        log_policy(wander, Catch(), 44, 0.0, 0, tmp_path / "log", rows=2)
    game = Catch()
    frames = game.reset(2, seed=1)
    with FramesLog(tmp_path / "log", game, 2, resume=True) as log:
        log.add(frames, np.zeros(2, int), np.zeros(2), np.zeros(2, bool), np.zeros(2, bool))
    assert load_dqn_replay(tmp_path / "log").size == 46
    assert len((tmp_path / "log" / "episodes.csv").read_text().splitlines()) == 1 + 4 + 2


def test_wrong_calls_are_named(tmp_path):
    for options, message in (((0, 0.0), "at least 1"), ((5, 1.5), "epsilon is 1.5")):
        with pytest.raises(SappError, match=message):
            log_policy(wander, Catch(), options[0], options[1], 0, tmp_path / "log")
    assert not (tmp_path / "log").exists()
