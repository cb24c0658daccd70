"""What image environments offer, the stacks that policies act on, and how policies are played in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from sapp.core.errors import SappError
from sapp.envs.base import BoolArray, IntArray, check_seed

Frames = npt.NDArray[np.uint8]

Act = Callable[[Frames], npt.ArrayLike]
"""Stacks uint8 [B, stack, H, W] → actions [B]; shapes never change, so it may be compiled."""


class FrameEnvironment(Protocol):
    """Many copies ("rows") of one image environment with discrete actions, stepped together.

    An observation is the newest frame alone; ``Stacker`` makes stacks of them. The environment counts steps: a row
    whose episode ends, by a terminal or by ``truncated``, has to be restarted by whoever drives it. Until then its
    frame stays, its reward is 0 and its flags stay set, whatever its action.

    Attributes:
        name: what `sapp.envs.make` was asked for.
        frame_shape: height and width.
        num_actions: how many actions there are.
        action_labels: their names, in order.
        max_episode_steps: the time limit.
        truncated: bool [count], rows whose episode has ended at the time limit.
        gain: float64 [count], the reward of the last step before clipping: what returns are sums of.
        lives: int32 [count], lives left; zeros where the game has none. Losing one ends nothing.
    """

    name: str
    frame_shape: tuple[int, int]
    num_actions: int
    action_labels: tuple[str, ...]
    max_episode_steps: int
    truncated: BoolArray
    gain: npt.NDArray[np.float64]
    lives: npt.NDArray[np.int32]

    def reset(self, count: int, seed: int, episode: IntArray | None = None) -> Frames:
        """Makes `count` rows and starts episode `episode[i]` (by default i) in row i; returns frames [count, H, W].

        An episode is a function of (seed, episode number) and of the actions taken in it.
        """
        ...

    def restart(self, rows: IntArray, episode: IntArray | None = None) -> Frames:
        """Starts new episodes in some rows; returns the frames of those rows.

        Without episode numbers a row goes on with its own random stream, which is quicker for Atari.
        """
        ...

    def step(self, action: IntArray) -> tuple[Frames, npt.NDArray[np.float32], BoolArray]:
        """Advances all rows: (frames [count, H, W], rewards in [−1, 1] [count], terminals [count])."""
        ...


class Stacker:
    """The newest frames of every row of an environment, oldest first, zeros before an episode's first frame."""

    def __init__(self, count: int, frame_shape: tuple[int, int], stack: int = 4) -> None:
        self.stacks: Frames = np.zeros((count, stack, *frame_shape), np.uint8)

    def start(self, frames: Frames, rows: IntArray | None = None) -> Frames:
        """First frames of episodes in some rows (by default all); returns all stacks."""
        which = slice(None) if rows is None else rows
        self.stacks[which] = 0
        self.stacks[which, -1] = frames
        return self.stacks

    def push(self, frames: Frames) -> Frames:
        """One more frame of every row; returns all stacks."""
        self.stacks[:, :-1] = self.stacks[:, 1:]
        self.stacks[:, -1] = frames
        return self.stacks


class Play(NamedTuple):
    """What playing measured, by episode.

    Attributes:
        returns: undiscounted sums of unclipped rewards; [members, episodes] where episodes were asked for, [episodes]
            in the order they ended where steps were.
        lengths: agent steps, of the same shape.
    """

    returns: npt.NDArray[np.float64]
    lengths: npt.NDArray[np.int64]


def play(
    act: Act,
    environment: FrameEnvironment,
    *,
    episodes: int | None = None,
    steps: int | None = None,
    epsilon: float = 0.001,
    seed: int = 0,
    members: int = 1,
    rows: int = 16,
    stack: int = 4,
    progress: Callable[[int], None] | None = None,
) -> Play:
    """Plays whole episodes with ε-greedy policies and measures unclipped returns.

    With ``episodes``, each member plays as many, all side by side, member m's episode e in row m · episodes + e, where
    it has the same start and the same stream of sticky actions for every member. With ``steps``, one member
    plays until that many are done in all, and episodes under way are then played to their end, as Dopamine does.

    Args:
        act: the policies: stacks [B, stack, H, W] → actions [B].
        environment: where; its rows are reset.
        episodes: of each member; or give ``steps``.
        steps: agent steps in all; or give ``episodes``.
        epsilon: chance of a uniformly random action.
        seed: of the starts, the environment's noise and the random actions.
        members: number of policies.
        rows: played side by side, where ``steps`` are asked for.
        stack: frames of an observation.
        progress: called after each step with the number of episodes that have ended.
    """
    if (episodes is None) == (steps is None):
        raise SappError("play: give either episodes or steps")
    if min(1 if episodes is None else episodes, 1 if steps is None else steps, members, rows) < 1:
        raise SappError("play: episodes, steps, members and rows must be at least 1")
    if steps is not None and members != 1:
        raise SappError("play: several members are compared by episodes; give episodes, not steps")
    check_epsilon(epsilon)
    count = rows if episodes is None else members * episodes
    frames = environment.reset(count, seed, None if episodes is None else np.tile(np.arange(episodes), members))
    random = explorer(seed)
    stacks = Stacker(count, environment.frame_shape, stack)
    stacks.start(frames)
    returns, lengths, active = np.zeros(count), np.zeros(count, np.int64), np.ones(count, bool)
    ended: list[tuple[float, int]] = []
    done = 0
    while active.any():
        action = noisy(act(stacks.stacks), environment, random, epsilon)
        frames, _, terminal = environment.step(action)
        stacks.push(frames)
        returns[active] += environment.gain[active]
        lengths[active] += 1
        done += int(active.sum())
        over = active & (terminal | environment.truncated)
        ended += [(float(returns[row]), int(lengths[row])) for row in np.flatnonzero(over)]
        if steps is not None and done < steps and over.any():
            again = np.flatnonzero(over)
            stacks.start(environment.restart(again), again)
            returns[again], lengths[again] = 0, 0
        else:
            active &= ~over
        if progress is not None:
            progress(len(ended))
    if episodes is not None:
        return Play(returns.reshape(members, episodes), lengths.reshape(members, episodes))
    return Play(np.array([gain for gain, _ in ended]), np.array([length for _, length in ended], np.int64))


def explorer(seed: int) -> np.random.Generator:
    """The random stream of ε-greedy actions."""
    return np.random.default_rng((check_seed(seed), 0, 2))  # 2: apart from the streams of episodes


def noisy(
    action: npt.ArrayLike,
    environment: FrameEnvironment,
    random: np.random.Generator,
    epsilon: float | npt.NDArray[np.floating],
) -> npt.NDArray[np.int64]:
    """Actions with each replaced by a uniformly random one with chance ε (of all rows, or [count]); checks them."""
    chosen = np.array(action)
    count = len(environment.lives)
    if chosen.shape != (count,) or chosen.dtype.kind not in "iu":
        raise SappError(
            f"the policy gave {chosen.dtype} actions of shape {chosen.shape} for {environment.name}, which takes "
            f"whole numbers of shape ({count},): was it trained on another environment?"
        )
    wrong = np.flatnonzero((chosen < 0) | (chosen >= environment.num_actions))
    if len(wrong):
        raise SappError(
            f"the policy gave action {chosen[wrong[0]]} for {environment.name}, whose actions are 0 to "
            f"{environment.num_actions - 1}: was it trained on another environment?"
        )
    explore = random.random(count) < epsilon
    uniform = random.integers(environment.num_actions, size=count)
    return np.where(explore, uniform, chosen).astype(np.int64)


def check_epsilon(epsilon: float) -> None:
    """Says so where ε is no probability."""
    if not 0 <= epsilon <= 1:
        raise SappError(f"epsilon is {epsilon:g}; it must be between 0 and 1")
