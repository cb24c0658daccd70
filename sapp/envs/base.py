"""What every environment offers: many copies stepped in lockstep, each start a function of (seed, episode number)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from sapp.core.errors import SappError

Array = npt.NDArray[np.floating]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.integer]


class BatchEnvironment(Protocol):
    """Many copies ("rows") of one environment, stepped together.

    An *episode number* names an episode: its start state, and whatever randomness the environment itself has, depend
    only on (seed, episode number), never on which row plays it or on what the other rows do. The environment does not
    count steps: whoever drives it ends an episode after `max_episode_steps`.

    Attributes:
        name: what `sapp.envs.make` was asked for.
        physics: the variant of the simulator, such as "d4rl"; empty where there is only one.
        observation_size: length of an observation.
        action_size: length of an action.
        action_low: lowest action, one value per dimension.
        action_high: highest action, one value per dimension.
        max_episode_steps: the time limit.
        truncated: rows whose last step ended the episode from outside for a reason other than the time limit.
    """

    name: str
    physics: str
    observation_size: int
    action_size: int
    action_low: Array
    action_high: Array
    max_episode_steps: int
    truncated: BoolArray

    def reset(self, count: int, seed: int, episode: IntArray | None = None) -> Array:
        """Makes `count` rows and starts episode `episode[i]` (by default i) in row i; returns observations [count, O].

        Rows may share an episode number: that is how several policies are compared from the same starts.
        """
        ...

    def restart(self, rows: IntArray, episode: IntArray) -> Array:
        """Starts new episodes of the same seed in some rows; returns the observations of those rows."""
        ...

    def step(self, action: Array, active: BoolArray | None = None) -> tuple[Array, Array, BoolArray]:
        """Advances the active rows (by default all) by one action each.

        Returns (observations [count, O], rewards [count], terminals [count]). Rows that are not active keep their
        state and observation, with reward 0 and terminal False.
        """
        ...


def generator(seed: int, episode: int) -> np.random.Generator:
    """The random stream of one episode; the only place where (seed, episode number) becomes randomness."""
    # the last number keeps these streams apart from `default_rng(seed)` and from a policy's stream
    return np.random.default_rng((check_seed(seed), int(episode), 1))


def check_seed(seed: int) -> int:
    """Returns the seed as an int, or says that it cannot be one."""
    if seed < 0:
        raise SappError(f"seed {seed} is negative: use a whole number from 0 up")
    return int(seed)


def check_action(action: Array, count: int, size: int, name: str) -> npt.NDArray[np.float64]:
    """Returns actions as float64 [count, size], or says what is wrong with them."""
    checked = np.asarray(action, np.float64)
    if checked.shape != (count, size):
        raise SappError(f"{name} takes actions of shape ({count}, {size}), not {checked.shape}: was it reset for them?")
    if not np.isfinite(checked).all():
        row = int(np.argwhere(~np.isfinite(checked).all(-1))[0, 0])
        raise SappError(f"the action for row {row} of {name} is not finite: the policy that made it has diverged")
    return checked
