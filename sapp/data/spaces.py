"""Gymnasium spaces as the arrays that learners take: one flattening for loading and for playing.

Observations become vectors exactly as ``gymnasium.spaces.flatten`` makes them: Dict and Tuple spaces are joined part by
part, Discrete and MultiDiscrete ones become one-hot. Actions are either vectors (Box, or Dict and Tuple of Boxes) or
one discrete action: MultiDiscrete and MultiBinary spaces are enumerated, every combination a discrete action.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sapp.core.errors import SappError

MAX_ENUMERATED = 1_000
"""Combinations of a MultiDiscrete or MultiBinary action space that are still enumerated as discrete actions."""


def is_image(space: Any) -> bool:
    """Whether an observation space is one of images: a uint8 Box of two or three dimensions."""
    return getattr(space, "dtype", None) == np.uint8 and len(space.shape or ()) in (2, 3)


def observation_size(space: Any, where: str) -> int:
    """Length of an observation once flattened; ``where`` is what an error names."""
    from gymnasium import spaces

    if is_image(space):
        raise SappError(
            f"{where}: its observations are images ({space.shape}), which can be played for Atari games (ALE/...) "
            "and catch only; wrap it so that observations are vectors"
        )
    for leaf in _leaves(space):
        if not isinstance(leaf, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
            raise SappError(
                f"{where}: its observations hold {type(leaf).__name__}, which has no fixed vector; wrap it so that "
                "observations are Box, Discrete, MultiDiscrete or MultiBinary, alone or in a Dict or Tuple"
            )
    return int(spaces.flatdim(space))


def _leaves(space: Any) -> list[Any]:
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        return [leaf for part in space.spaces.values() for leaf in _leaves(part)]
    if isinstance(space, spaces.Tuple):
        return [leaf for part in space.spaces for leaf in _leaves(part)]
    return [space]


def flatten_rows(space: Any, values: Any, what: str, where: str) -> np.ndarray:
    """Many points of a space, as Minari keeps them (an array per leaf, one row per step), flattened: [rows, size]."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        return np.concatenate([flatten_rows(part, values[key], what, where) for key, part in space.items()], axis=1)
    if isinstance(space, spaces.Tuple):
        pairs = zip(space.spaces, values, strict=True)
        return np.concatenate([flatten_rows(part, value, what, where) for part, value in pairs], axis=1)
    if isinstance(space, spaces.Discrete):
        return _one_hot(np.asarray(values).reshape(-1, 1) - int(space.start), [int(space.n)], what, where)
    if isinstance(space, spaces.MultiDiscrete):
        counts = space.nvec.reshape(-1)
        digits = np.asarray(values).reshape(-1, len(counts)) - np.asarray(space.start).reshape(-1)
        return _one_hot(digits, counts.tolist(), what, where)
    if not isinstance(space, spaces.Box | spaces.MultiBinary):
        raise SappError(f"{where}: {what} is {type(space).__name__}, which has no fixed vector")
    array = np.asarray(values)
    return array.reshape(len(array), -1)


def _one_hot(digits: np.ndarray, counts: list[int], what: str, where: str) -> np.ndarray:
    if digits.dtype.kind not in "iu":
        raise SappError(f"{where}: {what} is {digits.dtype} where its space is discrete; store whole numbers")
    if (bad := np.argwhere((digits < 0) | (digits >= np.asarray(counts)))).size:
        row = int(bad[0, 0])
        raise SappError(f"{where}: {what} at row {row} is outside its discrete space of {counts} values")
    out = np.zeros((len(digits), sum(counts)), np.float32)
    offsets = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
    np.put_along_axis(out, digits.astype(np.int64) + offsets, 1.0, axis=1)
    return out


@dataclass(frozen=True)
class Actions:
    """An action space as learners see it, and the way back to what the environment takes.

    Attributes:
        space: Gymnasium's.
        num_actions: how many discrete actions there are; None where actions are vectors.
        low: lowest action, float32 [A]; of vectors only.
        high: highest action, float32 [A]; of vectors only.
        counts: values of each part of an enumerated space, the last part varying fastest.
        starts: lowest value of each part.
        labels: what enumerated actions stand for, such as "(1, 0)".
    """

    space: Any
    num_actions: int | None
    low: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    high: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))
    counts: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()
    labels: tuple[str, ...] | None = None

    @property
    def size(self) -> int:
        """Width of an action as a network gives it: dimensions, or the number of discrete actions."""
        return len(self.low) if self.num_actions is None else self.num_actions

    def to_environment(self, action: Any) -> Any:
        """One action, a vector [A] or a discrete action's number, as the environment's ``step`` takes it."""
        from gymnasium import spaces

        if self.num_actions is None:
            return spaces.unflatten(self.space, np.asarray(action, np.float32))
        parts = np.unravel_index(int(action), self.counts)
        values = np.asarray([part + start for part, start in zip(parts, self.starts, strict=True)])
        if isinstance(self.space, spaces.Discrete):
            return int(values[0])
        return values.reshape(self.space.shape).astype(self.space.dtype)

    def from_rows(self, values: Any, where: str) -> np.ndarray:
        """Recorded actions, one row per step: float [rows, A], or numbers of discrete actions, int32 [rows]."""
        if self.num_actions is None:
            return flatten_rows(self.space, values, "action", where)
        digits = np.asarray(values).reshape(-1, len(self.counts)) - np.asarray(self.starts)
        wrong = (digits < 0) | (digits >= np.asarray(self.counts)) | (digits != np.floor(digits))
        if wrong.any():
            row = int(np.argwhere(wrong)[0, 0])
            raise SappError(f"{where}: the action at row {row} is not in the action space {self.space}")
        return np.ravel_multi_index(tuple(digits.astype(np.int64).T), self.counts).astype(np.int32)


def actions_of(space: Any, where: str, bounds: tuple[Any, Any] = (None, None)) -> Actions:
    """How learners see an action space; refuses what is neither vectors with bounds nor a few discrete actions.

    Args:
        space: Gymnasium's.
        where: what an error names.
        bounds: lowest and highest action, in place of the space's own.
    """
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return Actions(space, int(space.n), counts=(int(space.n),), starts=(int(space.start),))
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        return _enumerated(space, where)
    leaves = _leaves(space)
    if not all(isinstance(leaf, spaces.Box) and np.issubdtype(leaf.dtype, np.floating) for leaf in leaves):
        raise SappError(
            f"{where}: its actions are {space}; actions can be vectors of real numbers (Box), Discrete, MultiDiscrete "
            "or MultiBinary"
        )
    low, high = (
        np.concatenate([np.asarray(getattr(leaf, end)).reshape(-1) for leaf in leaves]).astype(np.float32)
        if own is None
        else np.broadcast_to(np.asarray(own, np.float32), (sum(math.prod(leaf.shape) for leaf in leaves),))
        for end, own in zip(("low", "high"), bounds, strict=True)
    )
    for key, value in (("action_low", low), ("action_high", high)):
        if not np.isfinite(value).all():
            raise SappError(f"{where}: the action space has no finite {key} ({space}); give {key}, or rescale actions")
    return Actions(space, None, low, high)


def _enumerated(space: Any, where: str) -> Actions:
    from gymnasium import spaces

    binary = isinstance(space, spaces.MultiBinary)
    counts = (2,) * math.prod(space.shape) if binary else tuple(space.nvec.reshape(-1).tolist())
    starts = (0,) * len(counts) if binary else tuple(np.asarray(space.start).reshape(-1).tolist())
    total = math.prod(counts)
    if total > MAX_ENUMERATED:
        raise SappError(
            f"{where}: its actions are {space}, {total:,} combinations; up to {MAX_ENUMERATED:,} are enumerated as "
            "discrete actions: wrap it so that fewer are offered"
        )
    values = np.stack(np.unravel_index(np.arange(total), counts), 1) + np.asarray(starts)
    labels = tuple(f"({', '.join(map(str, row))})" for row in values.tolist())
    return Actions(space, total, counts=counts, starts=starts, labels=labels)
