from __future__ import annotations

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.envs import make
from sapp.envs.atari import make_atari, rom
from sapp.envs.frames import play

ale_py = pytest.importorskip("ale_py")


def area(length: int, target: int) -> np.ndarray:
    """Weights [target, length] of averaging over equal stretches of a line."""
    edges = np.arange(target + 1) * length / target
    cells = np.arange(length)
    overlap = np.minimum(edges[1:, None], cells + 1) - np.maximum(edges[:-1, None], cells)
    return np.clip(overlap, 0, None) * target / length


def reference(game: str, actions: np.ndarray, sticky: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Frames and gains of one game by the plain interface and plain NumPy."""
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", sticky)
    ale.loadROM(rom(game))
    legal = ale.getMinimalActionSet()
    rows, columns = area(210, 84), area(160, 84)

    def small(screen):
        return rows @ screen.astype(np.float64) @ columns.T

    ale.reset_game()
    frames, gains = [small(ale.getScreenGrayscale())], []
    for action in actions:
        gain, seen = 0, []
        for _ in range(4):
            gain += ale.act(legal[action])
            seen.append(ale.getScreenGrayscale())
        frames.append(small(np.maximum(seen[-2], seen[-1])))
        gains.append(gain)
    return np.stack(frames), np.array(gains)


def test_pictures_and_rewards_match_plain_numpy():
    """Skip, pooling, grey, resizing by area and rewards, without sticky actions."""
    actions = np.random.default_rng(0).integers(6, size=150)
    game = make_atari("ALE/Qbert-v5", sticky=0.0)
    frames, gains, clipped = [game.reset(1, seed=0)[0]], [], []
    for action in actions:
        seen, reward, _ = game.step(np.array([action]))
        frames.append(seen[0])
        gains.append(game.gain[0])
        clipped.append(reward[0])
    expected, expected_gains = reference("ALE/Qbert-v5", actions)
    # Whole grey levels: as near as rounding can be, but for the ties.
    assert np.abs(np.stack(frames) - expected).max() <= 0.5 + 1e-3
    assert np.stack(frames).std() > 10
    np.testing.assert_array_equal(gains, expected_gains)
    np.testing.assert_array_equal(clipped, np.clip(expected_gains, -1, 1))
    assert max(gains) > 1


def test_protocol_of_pong():
    game = make("ALE/Pong-v5")
    assert game.action_labels == ("NOOP", "FIRE", "RIGHT", "LEFT", "RIGHTFIRE", "LEFTFIRE")
    assert game.num_actions == 6
    assert game.max_episode_steps == 27_000
    noise = np.random.default_rng(1)
    frames = game.reset(2, seed=3)
    assert frames.shape == (2, 84, 84)
    assert frames.dtype == np.uint8
    returns, lengths, over = np.zeros(2), np.zeros(2, int), np.zeros(2, bool)
    while not over.all():
        frames, reward, terminal = game.step(noise.integers(6, size=2))
        returns += game.gain
        lengths += ~over
        assert not reward[over].any()
        over |= terminal
    assert ((returns >= -21) & (returns <= -15)).all()
    assert (lengths > 700).all()
    assert not game.truncated.any()


def test_episodes_are_functions_of_seed_and_number():
    def trace(game, row, actions, count):
        out = []
        for action in actions:
            frames, _, _ = game.step(np.full(count, action))
            out.append(frames[row])
        return np.stack(out)

    actions = np.random.default_rng(0).integers(6, size=60)
    game = make_atari("Pong")
    game.reset(3, seed=5, episode=np.array([7, 8, 9]))
    first = trace(game, 1, actions, 3)
    other = make_atari("pong", threads=1)
    other.reset(2, seed=5)
    trace(other, 0, actions[:9], 2)
    other.restart(np.array([0]), np.array([8]))
    np.testing.assert_array_equal(trace(other, 0, actions, 2), first)
    game.reset(3, seed=6, episode=np.array([7, 8, 9]))
    assert (trace(game, 1, actions, 3) != first).any()  # sticky actions differ with the seed


def test_lives_go_without_ending_and_truncation_counts_agent_steps():
    game = make_atari("ALE/Breakout-v5", max_episode_steps=90)
    game.reset(2, seed=0)
    assert game.lives.tolist() == [5, 5]
    noise = np.random.default_rng(0)
    for step in range(1, 91):
        _, _, terminal = game.step(noise.integers(4, size=2))
        assert game.truncated.all() == (step == 90)
        assert not terminal.any()
    assert (game.lives < 5).all()
    assert (game.lives > 0).all()
    game.restart(np.array([1]))
    assert game.truncated.tolist() == [True, False]
    assert game.lives[1] == 5
    for step in range(1, 91):  # the new episode counts from 0
        game.step(noise.integers(4, size=2))
        assert game.truncated[1] == (step == 90)
    with pytest.raises(SappError, match="actions are 0 to 3, one is outside"):
        game.step(np.array([0, 4]))


def test_returns_are_not_clipped():
    found = play(
        lambda stacks: np.full(len(stacks), 1), make_atari("ALE/Qbert-v5", max_episode_steps=300), episodes=2,
        epsilon=1.0, seed=0,
    )  # fmt: skip
    assert (found.lengths <= 300).all()
    assert (found.returns % 25 == 0).all()
    assert (found.returns >= 25).all()


def test_unknown_games_are_named():
    with pytest.raises(SappError, match="did you mean 'ALE/Pong-v5'"):
        make("ALE/Pung-v5")
    with pytest.raises(SappError, match="sticky actions is 1"):
        make_atari("Pong", sticky=1.0)
    assert rom("ALE/SpaceInvaders-v5").endswith("space_invaders.bin")
