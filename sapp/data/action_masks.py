"""Masks of the possible actions, which are part of the observations that discrete learners take.

An observation with a mask holds ``num_actions`` values of 0 and 1 from ``Dataset.mask_at`` on. So they go wherever the
observation goes: into targets, policies, estimates, exported files.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sapp.core.errors import SappError

KEY = "action_mask"
"""What Gymnasium's environments call it, in an observation that is a Dict or in what ``step`` says besides."""


def mask_of(values: ArrayLike, key: str, rows: int, count: int | None, where: str) -> np.ndarray:
    """Masks as float32 [rows, count], checked.

    Args:
        values: 0 or 1 for each action of each row.
        key: what they are called.
        rows: how many there must be.
        count: discrete actions; None where actions are vectors, which no mask fits.
        where: what error messages call the data.
    """
    if count is None:
        raise SappError(f"{where}: {key} says which discrete actions are possible, but its actions are vectors")
    mask = np.asarray(values)
    if mask.shape != (rows, count) or mask.dtype.kind not in "biuf":
        raise SappError(
            f"{where}: {key} is {mask.dtype} of shape {mask.shape}; give 0 or 1 for each of the {count} actions in "
            f"each of the {rows} rows"
        )
    wrong = np.argwhere((mask != 0) & (mask != 1))
    if len(wrong):
        row, action = wrong[0].tolist()
        raise SappError(f"{where}: {key} is {mask[row, action]} at row {row}, action {action}; it must be 0 or 1")
    return mask.astype(np.float32)


def check_mask(observation: np.ndarray, action: np.ndarray, at: int, count: int | None, where: str) -> None:
    """Refuse observations without a mask at that place, and logged actions that it rules out.

    Args:
        observation: [N, O].
        action: numbers of discrete actions [N].
        at: where the mask begins.
        count: discrete actions.
        where: what error messages call the data.
    """
    if type(at) is not int or count is None or not 0 <= at <= observation.shape[1] - count:
        raise SappError(f"{where}: mask_at is {at}: observations of {observation.shape[1]} values hold no mask there")
    mask = mask_of(observation[:, at : at + count], KEY, len(observation), count, where)
    ruled_out = np.flatnonzero(mask[np.arange(len(mask)), action] == 0)
    if len(ruled_out):
        row = int(ruled_out[0])
        raise SappError(
            f"{where}: action {action[row]} at row {row} is not possible by its {KEY} ({len(ruled_out)} such rows); "
            f"correct the logs, or leave the mask out (ignore)"
        )


def place_in(space: Any, count: int | None) -> int | None:
    """Where the mask begins in flattened observations of a Gymnasium space: a Dict with a part of that name."""
    from gymnasium import spaces

    if count is None or not isinstance(space, spaces.Dict) or KEY not in space.spaces:
        return None
    part = space[KEY]
    whole = isinstance(part, spaces.MultiBinary) or (
        isinstance(part, spaces.Box) and bool(np.all(part.low >= 0) and np.all(part.high <= 1))
    )
    if not whole or spaces.flatdim(part) != count:
        return None
    before = list(space.spaces)[: list(space.spaces).index(KEY)]
    return sum(int(spaces.flatdim(space[key])) for key in before)


def honoured(observation: np.ndarray, action: np.ndarray, at: int | None, count: int | None) -> int | None:
    """The place of the mask, unless logged actions do not keep to it: then it is a feature like any other."""
    if at is None or count is None:
        return None
    mask = np.asarray(observation)[:, at : at + count]
    kept = np.isin(mask, (0, 1)).all() and (mask[np.arange(len(mask)), np.asarray(action).reshape(-1)] == 1).all()
    return at if kept else None
