"""What every environment offers: many copies stepped together, each start a function of (seed, episode number)."""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sapp.core.errors import SappError

Array = npt.NDArray[np.floating]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.integer]
Actions = npt.NDArray[Any]
"""Vectors [count, A], or numbers of discrete actions [count]."""


class BatchEnvironment(Protocol):
    """Many copies ("rows") of one environment, stepped together.

    An *episode number* names an episode: its start state, and whatever randomness the environment itself has, depend
    only on (seed, episode number), never on which row plays it or on what the other rows do. The environment does not
    count steps: whoever drives it ends an episode after `max_episode_steps`.

    Attributes:
        name: what `sapp.envs.make` was asked for.
        physics: the variant of the simulator, such as "d4rl"; empty where there is only one.
        identity: the name by which ``sapp.envs.make`` makes it again; None for an object that has none.
        observation_size: length of an observation.
        action_size: length of an action, or the number of discrete actions.
        num_actions: how many discrete actions there are; None where actions are vectors.
        action_labels: what the discrete actions are called, where they have names.
        action_low: lowest action, one value per dimension; 0 where actions are discrete.
        action_high: highest action, one value per dimension; the number of the last one where actions are discrete.
        max_episode_steps: the time limit.
        truncated: rows whose last step ended the episode from outside for a reason other than the time limit.
    """

    name: str
    identity: str | None
    physics: str
    observation_size: int
    action_size: int
    num_actions: int | None
    action_labels: tuple[str, ...] | None
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

    def step(self, action: Actions, active: BoolArray | None = None) -> tuple[Array, Array, BoolArray]:
        """Advances the active rows (by default all) by one action each: [count, A], or whole numbers [count].

        Returns (observations [count, O], rewards [count], terminals [count]). Rows that are not active keep their
        state and observation, with reward 0 and terminal False.
        """
        ...


def mask_place(environment: BatchEnvironment) -> int | None:
    """``mask_at`` of an environment; only Gymnasium's have one."""
    found: int | None = getattr(environment, "mask_at", None)
    return found


def cores() -> int:
    """Cores that this process may use."""
    available = getattr(os, "sched_getaffinity", None)
    return len(available(0)) if available is not None else os.cpu_count() or 1


def generator(seed: int, episode: int) -> np.random.Generator:
    """The random stream of one episode; the only place where (seed, episode number) becomes randomness."""
    # the last number keeps these streams apart from `default_rng(seed)` and from a policy's stream
    return np.random.default_rng((check_seed(seed), int(episode), 1))


def check_seed(seed: int) -> int:
    """Returns the seed as an int, or says that it cannot be one."""
    if seed < 0:
        raise SappError(f"seed {seed} is negative: use a whole number from 0 up")
    return int(seed)


def check_action(action: npt.ArrayLike, count: int, size: int, name: str) -> npt.NDArray[np.float64]:
    """Returns actions as float64 [count, size], or says what is wrong with them."""
    checked = np.asarray(action, np.float64)
    if checked.shape != (count, size):
        raise SappError(f"{name} takes actions of shape ({count}, {size}), not {checked.shape}: was it reset for them?")
    if not np.isfinite(checked).all():
        row = int(np.argwhere(~np.isfinite(checked).all(-1))[0, 0])
        raise SappError(f"the action for row {row} of {name} is not finite: the policy that made it has diverged")
    return checked


def check_discrete(action: npt.ArrayLike, count: int, num_actions: int, name: str) -> npt.NDArray[np.int64]:
    """Returns numbers of discrete actions as int64 [count], or says what is wrong with them."""
    checked = np.asarray(action)
    if checked.shape != (count,) or checked.dtype.kind not in "iu":
        raise SappError(
            f"{name} takes {count} whole numbers, not {checked.dtype} of shape {checked.shape}: was it reset for them?"
        )
    if checked.min(initial=0) < 0 or checked.max(initial=0) >= num_actions:
        raise SappError(f"{name}: actions are 0 to {num_actions - 1}, one is outside")
    return checked.astype(np.int64)
