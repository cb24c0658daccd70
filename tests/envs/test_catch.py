from __future__ import annotations

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.envs.catch import Catch
from sapp.envs.frames import play


def best(stacks: np.ndarray) -> np.ndarray:
    """Walks under where the ball will land, from the newest two frames."""
    chosen = []
    for old, new in stacks[:, -2:, ::2, ::2]:
        row, column = np.argwhere(new == 255)[0]
        before = np.argwhere(old == 255)
        # Two frames of one ball: the drift shows, and a bounce at a wall turns it.
        drift = column - before[0, 1] if len(before) and before[0, 0] == row - 1 else 0
        for _ in range(row, 11):
            drift = drift if 0 <= column + drift < 12 else -drift
            column += drift
        chosen.append(int(np.sign(column - np.argwhere(new[-1] == 128).mean())) + 1)
    return np.array(chosen)


def test_the_best_return_is_reached_and_chance_is_far_below():
    game = Catch(balls=3)
    assert game.best_return == 3
    found = play(best, game, episodes=100, epsilon=0.0)
    assert found.returns.shape == (1, 100)
    assert (found.returns == 3).all()
    assert (found.lengths == 33).all()
    noise = np.random.default_rng(0)
    chance = play(lambda stacks: noise.integers(3, size=len(stacks)), game, episodes=400).returns / 3
    assert -0.7 < chance.mean() < -0.2


def test_a_ball_by_hand():
    game = Catch()
    frames = game.reset(1, seed=0)
    assert frames.shape == (1, 24, 24)
    cells = frames[0, ::2, ::2]
    np.testing.assert_array_equal(frames[0], cells.repeat(2, 0).repeat(2, 1))
    assert (cells == 128).sum() == 3
    assert np.argwhere(cells == 128)[:, 1].tolist() == [5, 6, 7]
    _, column = np.argwhere(cells == 255)[0]
    columns = [column]
    for step in range(1, 12):
        frames, reward, terminal = game.step(np.array([0]))
        cells = frames[0, ::2, ::2]
        row, column = np.argwhere(cells == 255)[0]
        assert row == step
        columns.append(column)
        assert terminal[0] == (step == 11)
        assert (reward[0] != 0) == (step == 11)
    assert np.argwhere(cells[-1] > 0)[:3, 0].tolist()[0] == 0  # the paddle has run to the wall
    assert reward[0] == game.gain[0] == (1 if column <= 2 else -1)
    assert np.abs(np.diff(columns)).max() <= 1
    # An ended row stays as it is until it is restarted.
    frames, reward, terminal = game.step(np.array([2]))
    np.testing.assert_array_equal(frames[0, ::2, ::2], cells)
    assert reward[0] == 0
    assert terminal[0]


def test_episodes_are_functions_of_seed_and_number():
    game = Catch(balls=2)
    first = game.reset(3, seed=5, episode=np.array([7, 8, 7]))
    np.testing.assert_array_equal(first[0], first[2])
    trace = [game.step(np.array([0, 1, 0]))[0] for _ in range(22)]
    other = Catch(balls=2)
    other.reset(2, seed=5)
    other.step(np.array([1, 1]))
    np.testing.assert_array_equal(other.restart(np.array([1]), np.array([7]))[0], first[0])
    for frames in trace:
        np.testing.assert_array_equal(other.step(np.array([2, 0]))[0][1], frames[0])
    assert (Catch().reset(40, seed=6) != Catch().reset(40, seed=5)).any()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda stacks: np.zeros(3, int), r"actions of shape \(3,\)"),
        (lambda stacks: np.zeros(len(stacks)), "float64 actions"),
        (lambda stacks: np.full(len(stacks), 3), "action 3 for catch, whose actions are 0 to 2"),
    ],
)
def test_wrong_actions_are_named(act, message):
    with pytest.raises(SappError, match=message):
        play(act, Catch(), episodes=2)
