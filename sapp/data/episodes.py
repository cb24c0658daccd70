"""Where episodes begin and end in flat arrays of steps: what every kind of dataset derives from its flags."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from sapp.core.errors import SappError


class Episodes:
    """Episodes one after the other, each ended by a terminal or a time-out.

    Attributes:
        reward: float32 [N].
        terminal: bool [N].
        timeout: bool [N].
        name: what to call it in messages.
    """

    name: str
    reward: np.ndarray
    terminal: np.ndarray
    timeout: np.ndarray

    @cached_property
    def episode_ends(self) -> np.ndarray:
        """Row of the last step of each episode, int64 [E]."""
        return read_only(np.flatnonzero(self.terminal | self.timeout))

    @cached_property
    def episode_starts(self) -> np.ndarray:
        """Row of the first step of each episode, int64 [E]."""
        return read_only(np.concatenate([[0], self.episode_ends[:-1] + 1]))

    @property
    def num_episodes(self) -> int:
        """Number of episodes E."""
        return len(self.episode_ends)

    @cached_property
    def episode_lengths(self) -> np.ndarray:
        """Steps of each episode, int64 [E]."""
        return read_only(self.episode_ends - self.episode_starts + 1)

    @cached_property
    def episode_returns(self) -> np.ndarray:
        """Undiscounted sum of the logged rewards (for Atari: clipped ones) of each episode, float64 [E]."""
        return read_only(np.add.reduceat(self.reward, self.episode_starts, dtype=np.float64))

    @cached_property
    def step(self) -> np.ndarray:
        """Index of a row within its episode, from 0, int32 [N]."""
        starts = np.repeat(self.episode_starts.astype(np.int32), self.episode_lengths)
        return read_only(np.arange(len(self.reward), dtype=np.int32) - starts)

    def episode_rows(self, episodes: int | Sequence[int] | np.ndarray) -> np.ndarray:
        """Rows of the first so many episodes, or of those with the given numbers in the given order."""
        if isinstance(episodes, (int, np.integer)):
            if not 1 <= episodes <= self.num_episodes:
                raise SappError(f"{self.name}: cannot take {episodes} episodes, choose 1 to {self.num_episodes}")
            chosen = np.arange(episodes)
        else:
            chosen = np.asarray(episodes, np.int64).reshape(-1)
            wrong = chosen[(chosen < 0) | (chosen >= self.num_episodes)]
            if len(chosen) == 0 or len(wrong):
                what = f"no episode {wrong[0]}" if len(wrong) else "no episodes asked for"
                raise SappError(f"{self.name}: {what}, choose from 0 to {self.num_episodes - 1}")
        return np.concatenate([np.arange(self.episode_starts[i], self.episode_ends[i] + 1) for i in chosen])


def read_only(value: np.ndarray) -> np.ndarray:
    """A read-only view: the caller's own array stays writable."""
    view = np.ascontiguousarray(value).view()
    view.flags.writeable = False
    return view
