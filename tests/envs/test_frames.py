"""Stacks of frames, and games played from them."""

from __future__ import annotations

import numpy as np
import pytest
from test_catch import best

from sapp.core.errors import SappError
from sapp.envs import make
from sapp.envs.catch import Catch
from sapp.envs.frames import Stacker, play


def test_stacks_match_the_frames_that_were_seen():
    game = Catch()
    stacks = Stacker(2, game.frame_shape, 3)
    frames = [game.reset(2, seed=0)]
    stacks.start(frames[0])
    assert not stacks.stacks[:, :2].any()
    for _ in range(4):
        frames.append(game.step(np.array([1, 2]))[0])
        stacks.push(frames[-1])
    np.testing.assert_array_equal(stacks.stacks, np.stack(frames[-3:], 1))
    fresh = game.restart(np.array([1]))
    stacks.start(fresh, np.array([1]))
    assert not stacks.stacks[1, :2].any()
    np.testing.assert_array_equal(stacks.stacks[0], np.stack([each[0] for each in frames[-3:]]))


def test_play_by_steps_members_and_epsilon():
    game = make("catch")
    found = play(best, game, steps=100, rows=4, epsilon=0)
    assert found.lengths.sum() >= 100
    assert (found.lengths == 11).all()
    assert len(found.returns) == len(found.lengths) == 12
    assert (found.returns == 1).all()

    def act(stacks):  # the second member stands still
        return np.concatenate([best(stacks[:20]), np.ones(20, int)])

    pair = play(act, game, episodes=20, members=2, epsilon=0, seed=3)
    alone = play(lambda stacks: np.ones(20, int), game, episodes=20, epsilon=0, seed=3)
    assert (pair.returns[0] == 1).all()
    np.testing.assert_array_equal(pair.returns[1], alone.returns[0])
    assert pair.returns[1].mean() < 0.5
    noisy = play(best, game, episodes=200, epsilon=1.0, seed=1)
    assert noisy.returns.mean() < 0.2
    again = play(best, game, episodes=200, epsilon=1.0, seed=1)
    np.testing.assert_array_equal(noisy.returns, again.returns)


def test_wrong_calls_are_named():
    for options, message in (
        ({}, "either episodes or steps"),
        ({"episodes": 1, "steps": 1}, "either episodes or steps"),
        ({"episodes": 0}, "at least 1"),
        ({"episodes": 1, "epsilon": 2}, "epsilon is 2"),
        ({"steps": 5, "members": 2}, "compared by episodes"),
    ):
        with pytest.raises(SappError, match=message):
            play(best, Catch(), **options)
    with pytest.raises(SappError, match="do not make a game"):
        Catch(paddle=2)
    with pytest.raises(SappError, match="was it reset"):
        Catch().step(np.zeros(1, int))
