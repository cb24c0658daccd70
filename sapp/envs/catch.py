"""A small image game: a ball falls, a paddle catches it. And logs of it by a mediocre player."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sapp.core.errors import SappError
from sapp.data.frames import FrameDataset
from sapp.envs.base import BoolArray, IntArray, check_seed, generator
from sapp.envs.frames import Frames


class Catch:
    """A batch of Catch; a `FrameEnvironment`.

    A ball starts in a random cell of the top row of a square grid and falls a cell a step, drifting a cell to the left,
    to the right or not at all, and bouncing off the walls. The paddle on the bottom row moves a cell to the left, stays
    or moves to the right. A ball that reaches the bottom row gives 1 if the paddle is below it, else −1; the next one
    starts, and the last one ends the episode. Every ball can be caught, so the best return is ``balls``
    (``best_return``). The drift is not to be seen in one frame.

    Args:
        cells: width and height of the grid.
        cell: pixels of a cell's side; frames are (cells · cell) × (cells · cell).
        paddle: cells that the paddle covers, an odd number.
        balls: of an episode.
    """

    name = "catch"
    num_actions = 3
    action_labels: tuple[str, ...] = ("LEFT", "STAY", "RIGHT")

    def __init__(self, cells: int = 12, cell: int = 2, paddle: int = 3, balls: int = 1) -> None:
        if cells < 4 or cell < 1 or balls < 1 or not 1 <= paddle < cells or paddle % 2 == 0:
            raise SappError(
                f"catch: cells {cells}, cell {cell}, paddle {paddle}, balls {balls} do not make a game; "
                f"give at least 4 cells, an odd paddle narrower than that, and 1 or more of the others"
            )
        self._cells, self._cell, self._reach, self._balls = cells, cell, paddle // 2, balls
        self.frame_shape = (cells * cell, cells * cell)
        self.max_episode_steps = balls * (cells - 1) + 1
        self.best_return = float(balls)
        self._seed = 0
        self._forget(0)

    def _forget(self, count: int) -> None:
        self.truncated = np.zeros(count, bool)
        self.gain = np.zeros(count)
        self.lives = np.zeros(count, np.int32)
        self._over = np.zeros(count, bool)
        self._paddle = np.zeros(count, np.int64)
        self._row = np.zeros(count, np.int64)
        self._column = np.zeros(count, np.int64)
        self._drift = np.zeros(count, np.int64)
        self._ball = np.zeros(count, np.int64)
        # Where the balls of the episode start and how they drift, drawn when it starts.
        self._starts = np.zeros((count, self._balls, 2), np.int64)
        self._streams = [np.random.default_rng(0)] * count

    def reset(self, count: int, seed: int, episode: IntArray | None = None) -> Frames:
        """Starts `count` rows; see `FrameEnvironment.reset`."""
        self._seed = check_seed(seed)
        self._forget(count)
        return self.restart(np.arange(count), np.arange(count) if episode is None else np.asarray(episode))

    def restart(self, rows: IntArray, episode: IntArray | None = None) -> Frames:
        """Starts new episodes in some rows; see `FrameEnvironment.restart`."""
        rows = np.asarray(rows)
        for index, row in enumerate(rows.tolist()):
            if episode is not None:
                self._streams[row] = generator(self._seed, int(np.asarray(episode)[index]))
            stream = self._streams[row]
            self._starts[row, :, 0] = stream.integers(self._cells, size=self._balls)
            self._starts[row, :, 1] = stream.integers(-1, 2, size=self._balls)
        self._paddle[rows] = self._cells // 2
        self._ball[rows], self._row[rows] = 0, 0
        self._column[rows], self._drift[rows] = self._starts[rows, 0, 0], self._starts[rows, 0, 1]
        self._over[rows], self.gain[rows] = False, 0
        return self._draw()[rows]

    def step(self, action: IntArray) -> tuple[Frames, npt.NDArray[np.float32], BoolArray]:
        """Advances all rows; see `FrameEnvironment.step`."""
        chosen = np.asarray(action, np.int64)
        if chosen.shape != self._over.shape:
            raise SappError(f"catch takes {len(self._over)} actions, not {chosen.shape}: was it reset for them?")
        going = ~self._over
        moved = np.clip(self._paddle + chosen - 1, self._reach, self._cells - 1 - self._reach)
        self._paddle = np.where(going, moved, self._paddle)
        beyond = self._column + self._drift
        bounced = (beyond < 0) | (beyond >= self._cells)
        self._drift = np.where(going & bounced, -self._drift, self._drift)
        self._column = np.where(going, self._column + self._drift, self._column)
        self._row = self._row + going
        landed = going & (self._row == self._cells - 1)
        caught = np.abs(self._column - self._paddle) <= self._reach
        self.gain = np.where(landed, np.where(caught, 1.0, -1.0), 0.0)
        self._ball = self._ball + landed
        self._over = self._over | (landed & (self._ball == self._balls))
        again = np.flatnonzero(landed & ~self._over)
        fresh = self._starts[again, self._ball[again]]
        self._row[again], self._column[again], self._drift[again] = 0, fresh[:, 0], fresh[:, 1]
        return self._draw(), self.gain.astype(np.float32), self._over.copy()

    def _draw(self) -> Frames:
        count = len(self._over)
        cells = np.zeros((count, self._cells, self._cells), np.uint8)
        each = np.arange(count)
        for offset in range(-self._reach, self._reach + 1):
            cells[each, -1, self._paddle + offset] = 128
        cells[each, self._row, self._column] = 255
        return cells.repeat(self._cell, axis=1).repeat(self._cell, axis=2)


def behaviour_logs(episodes: int, seed: int = 0, skill: float = 0.4, name: str = "catch") -> FrameDataset:
    """Episodes by a player who follows the ball with probability ``skill`` and else moves at random."""
    game, rng = Catch(), np.random.default_rng(seed)
    frames = game.reset(episodes, seed)
    rows: list[tuple[np.ndarray, ...]] = []
    while True:
        follow = 1 + np.sign(_middle(frames[:, :-2]) - _middle(frames[:, -1:]))
        action = np.where(rng.random(episodes) < skill, follow, rng.integers(3, size=episodes))
        following, reward, terminal = game.step(action)
        rows.append((frames, action, reward, terminal))
        if terminal.all():
            break
        frames = following
    frame, action, reward, terminal = (
        np.stack(each, 1).reshape(-1, *each[0].shape[1:]) for each in zip(*rows, strict=True)
    )
    timeout = np.zeros(len(action), bool)
    return FrameDataset(frame, action, reward, terminal, timeout, num_actions=3, name=name, environment="catch")


def _middle(frames: Frames) -> npt.NDArray[np.float64]:
    """The middle column of what is lit, in pixels."""
    light = frames.sum(1, dtype=np.float64)
    return np.asarray(np.round((light * np.arange(light.shape[1])).sum(1) / light.sum(1)))
