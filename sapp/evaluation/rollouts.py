"""Whole episodes of many policies at once, all from the same start states."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sapp.core.errors import SappError
from sapp.envs.base import BatchEnvironment

Act = Callable[[npt.NDArray[np.float32]], npt.ArrayLike]
"""Observations [members, episodes, O] → actions [members, episodes, A], or numbers of discrete actions [members,
episodes]; shapes never change, so it may be compiled."""


class Rollouts(NamedTuple):
    """What evaluation measured.

    Attributes:
        returns: undiscounted sum of rewards, [members, episodes].
        lengths: steps, [members, episodes].
    """

    returns: npt.NDArray[np.float64]
    lengths: npt.NDArray[np.int64]


def evaluate(
    act: Act,
    environment: BatchEnvironment,
    members: int,
    episodes: int,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> Rollouts:
    """Plays `episodes` whole episodes with each of `members` policies.

    Episode e starts in the same state for every member (and has the same environment noise), so that members can be
    compared pair by pair. An episode ends at a terminal or at the environment's time limit; a finished one is not
    simulated on, while `act` keeps being asked for it.

    Args:
        act: the policies, all members at once; `act` clips nothing and neither do we.
        environment: where; its rows are reset.
        members: number of policies.
        episodes: per policy.
        seed: of the starts.
        progress: called after each step with (steps done, time limit).
    """
    returns, _, lengths = _play(act, environment, members, episodes, seed, 1.0, progress)
    return Rollouts(returns, lengths)


class Discounted(NamedTuple):
    """What ``evaluate_discounted`` measured, each [members, episodes]: Σ γᵗ r, Σ r and steps."""

    discounted: npt.NDArray[np.float64]
    returns: npt.NDArray[np.float64]
    lengths: npt.NDArray[np.int64]


def evaluate_discounted(
    act: Act, environment: BatchEnvironment, members: int, episodes: int, seed: int, discount: float
) -> Discounted:
    """Plays as ``evaluate`` does, and also sums rewards discounted: the truth that off-policy estimates are held to.

    What the time limit cuts off is missing from it: γ to the power of the limit should be small.
    """
    returns, discounted, lengths = _play(act, environment, members, episodes, seed, discount, None)
    return Discounted(discounted, returns, lengths)


def _play(
    act: Act,
    environment: BatchEnvironment,
    members: int,
    episodes: int,
    seed: int,
    discount: float,
    progress: Callable[[int, int], None] | None,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Returns, discounted returns and lengths, each [members, episodes]."""
    if members < 1 or episodes < 1:
        raise SappError(f"cannot evaluate {members} policies for {episodes} episodes: both must be at least 1")
    shape = (members, episodes)
    count = members * episodes
    observation = environment.reset(count, seed, np.tile(np.arange(episodes), members))
    returns, discounted, lengths = np.zeros(count), np.zeros(count), np.zeros(count, np.int64)
    active = np.ones(count, bool)
    for time in range(environment.max_episode_steps):
        action = np.asarray(act(np.asarray(observation, np.float32).reshape(*shape, -1)))
        wanted = shape if environment.num_actions is not None else (*shape, environment.action_size)
        if action.shape != wanted:
            mine, theirs = (action.shape[1:], wanted[1:]) if members == 1 else (action.shape, wanted)
            kind = "" if environment.num_actions is None else " (one whole number for each observation)"
            raise SappError(
                f"the policy gave actions of shape {mine} for {episodes} observations of {environment.name}, which "
                f"takes {theirs}{kind}: was it made for another environment?"
            )
        observation, reward, terminal = environment.step(action.reshape(count, *wanted[2:]), active)
        returns[active] += reward[active]
        discounted[active] += discount**time * reward[active]
        lengths[active] += 1
        active &= ~(terminal | environment.truncated)
        if progress is not None:
            progress(time + 1, environment.max_episode_steps)
        if not active.any():
            break
    return returns.reshape(shape), discounted.reshape(shape), lengths.reshape(shape)


def evaluate_one(
    act: Callable[[npt.NDArray[np.float32]], npt.ArrayLike], environment: BatchEnvironment, episodes: int, seed: int
) -> Rollouts:
    """Plays episodes with one policy (observations [episodes, O] → actions [episodes, A] or [episodes]).

    The arrays of the result are [episodes].
    """
    result = evaluate(lambda observation: np.asarray(act(observation[0]))[None], environment, 1, episodes, seed)
    return Rollouts(result.returns[0], result.lengths[0])
