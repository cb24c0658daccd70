"""Checks of the arrays that make a dataset; what is wrong is named by field, row and dimension."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sapp.core.errors import SappError, printable

ACTION_SLACK = 1e-5
"""How far, relative to max(1, |bound|), an action may overshoot its bound and be clipped: float32 rounding of tanh."""


class Checked(NamedTuple):
    """Arrays of a dataset, checked and in their final types.

    Attributes:
        arrays: float32, int32 or bool, by name.
        low: action bounds, float32 [A].
        high: likewise.
        num_actions: None where actions are continuous.
        labels: of discrete actions.
    """

    arrays: dict[str, np.ndarray]
    low: np.ndarray
    high: np.ndarray
    num_actions: int | None
    labels: tuple[str, ...] | None


def checked(
    given: Mapping[str, ArrayLike | None],
    extras: Mapping[str, ArrayLike],
    num_actions: int | None,
    labels: Sequence[str] | None,
    low: ArrayLike,
    high: ArrayLike,
    where: str,
) -> Checked:
    """Check and convert the arrays of a dataset; this is the only place that does.

    Args:
        given: observation, action, reward and terminal; next_observation and timeout where they are known.
        extras: further arrays, of as many rows.
        num_actions: how many discrete actions there are, or None.
        labels: their names, or None.
        low: action bounds.
        high: likewise.
        where: what error messages call the data.
    """
    count, names = choices(num_actions, labels, where)
    arrays: dict[str, np.ndarray] = {}
    for key, value in given.items():
        if value is None:
            continue
        if key == "action" and count is not None:
            arrays[key] = chosen_actions(value, count, where)
        elif key in ("observation", "action", "next_observation"):
            arrays[key] = matrix(value, key, where)
        else:
            arrays[key] = vector(value, key, where) if key == "reward" else flags(value, key, where)
    more = {f"extras[{key!r}]": numeric(value, f"extras[{key!r}]", where) for key, value in extras.items()}
    check_rows({**arrays, **more}, where)
    if "next_observation" in arrays:
        check_width(arrays["observation"], arrays["next_observation"], where)
    if count is not None:
        return Checked(arrays, np.zeros(1, np.float32), np.full(1, count - 1, np.float32), count, names)
    small, large = bounds(low, high, arrays["action"].shape[1], where)
    arrays["action"] = within(arrays["action"], small, large, where)
    return Checked(arrays, small, large, None, names)


def units(offset: ArrayLike | None, scale: ArrayLike | None, width: int, where: str) -> dict[str, np.ndarray | None]:
    """How observations were rescaled, checked: both or neither, one number per dimension, scales above 0."""
    if (offset is None) != (scale is None):
        raise SappError(f"{where}: give observation_offset and observation_scale together, or neither")
    found: dict[str, np.ndarray | None] = {"observation_offset": None, "observation_scale": None}
    for key, value in (("observation_offset", offset), ("observation_scale", scale)):
        if value is not None:
            array = found[key] = vector(value, key, where)
            if len(array) != width or (key == "observation_scale" and np.any(array <= 0)):
                raise SappError(f"{where}: {key} needs {width} numbers, scales above 0")
    return found


def numeric(value: ArrayLike, key: str, where: str) -> np.ndarray:
    """As an array of numbers, or what is wrong with it."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise SappError(f"{where}: {key} has rows of different widths; every row needs the same width") from None
    if array.dtype.kind not in "biuf":
        raise SappError(f"{where}: {key} holds {array.dtype}, not numbers; convert it to float32")
    return array


def finite(array: np.ndarray, key: str, where: str) -> np.ndarray:
    """As float32 without NaN and infinity."""
    with np.errstate(over="ignore"):
        small = np.ascontiguousarray(array, np.float32)
    good = np.isfinite(small)
    if not good.all():
        index = tuple(int(i) for i in np.argwhere(~good)[0])
        at = f"row {index[0]}" + (f", dimension {index[1]}" if len(index) > 1 else "")
        bad = int(np.count_nonzero(~good.reshape(len(good), -1).all(axis=1)))
        also = f" ({bad} such rows)" if bad > 1 else ""
        raise SappError(f"{where}: {key} is {array[index]} at {at}{also}; remove or repair that episode")
    return small


def matrix(value: ArrayLike, key: str, where: str) -> np.ndarray:
    """Values that are finite numbers as float32 [N, width], else an error that names ``key`` and ``where``."""
    array = numeric(value, key, where)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        flat = "; of arrays [steps, environments, …] give x.swapaxes(0, 1).reshape(-1, width)" * (array.ndim == 3)
        raise SappError(
            f"{where}: {key} has shape {array.shape}; it must be (rows, width) with width 1 or "
            f"more: one row per step, episodes one after the other{flat}"
        )
    return finite(array, key, where)


def choices(count: int | None, labels: Sequence[str] | None, where: str) -> tuple[int | None, tuple[str, ...] | None]:
    """The number of discrete actions and their names, checked against each other."""
    names = None if labels is None else tuple(printable(str(label)) for label in labels)
    if names is not None and len(set(names)) != len(names):
        double = next(name for name in names if names.count(name) > 1)
        raise SappError(f"{where}: action label {double!r} appears more than once; give each action its own")
    if count is None:
        count = None if names is None else len(names)
    if count is not None and int(count) < 1:
        raise SappError(f"{where}: num_actions is {count}; it must be 1 or more")
    if names is not None and count is not None and len(names) != count:
        raise SappError(f"{where}: {len(names)} action labels for num_actions {count}; give one label per action")
    return (None if count is None else int(count)), names


def chosen_actions(value: ArrayLike, count: int, where: str) -> np.ndarray:
    """Discrete actions as int32 [N]."""
    array = column(value, "action", where)
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(~(np.isfinite(array) & (array == np.floor(array)) & (array >= 0) & (array < count)))
    if len(wrong):
        raise SappError(
            f"{where}: action is {array[wrong[0]]} at row {wrong[0]}; the {count} discrete actions are whole numbers "
            f"from 0 to {count - 1}"
        )
    return array.astype(np.int32)


def column(value: ArrayLike, key: str, where: str) -> np.ndarray:
    """Values that are numbers as one column [N], else an error that names ``key`` and ``where``."""
    array = numeric(value, key, where)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise SappError(f"{where}: {key} has shape {array.shape}; it must be (rows,) or (rows, 1)")
    return array


def vector(value: ArrayLike, key: str, where: str) -> np.ndarray:
    """Values that are finite numbers as float32 [N], else an error that names ``key`` and ``where``."""
    return finite(column(value, key, where), key, where)


def flags(value: ArrayLike, key: str, where: str) -> np.ndarray:
    """As bool [N], from bool or 0 and 1."""
    array = column(value, key, where)
    if array.dtype == bool:
        return array
    wrong = np.flatnonzero((array != 0) & (array != 1))
    if len(wrong):
        raise SappError(f"{where}: {key} is {array[wrong[0]]} at row {wrong[0]}; flags must be 0 or 1")
    return array == 1


def check_rows(arrays: Mapping[str, np.ndarray], where: str) -> None:
    """Every array has the rows of observation, and there are some."""
    rows = len(arrays["observation"])
    if rows == 0:
        raise SappError(f"{where}: no transitions (0 rows), so no episode starts; give at least one row")
    for key, value in arrays.items():
        if value.ndim == 0 or len(value) != rows:
            have = "no rows" if value.ndim == 0 else f"{len(value)} rows"
            raise SappError(f"{where}: {key} has {have} but observation has {rows}; all fields need the same length")


def check_width(observation: np.ndarray, next_observation: np.ndarray, where: str) -> None:
    """Both observations are of one width."""
    if next_observation.shape != observation.shape:
        raise SappError(
            f"{where}: next_observation is {next_observation.shape[1]} wide but observation is "
            f"{observation.shape[1]}; they must be the same width"
        )


def bounds(low: ArrayLike, high: ArrayLike, width: int, where: str) -> tuple[np.ndarray, np.ndarray]:
    """Action bounds as float32 [A] each, the lower below the higher."""
    both = []
    for key, value in (("action_low", low), ("action_high", high)):
        array = numeric(value, key, where).astype(np.float32)
        if array.shape not in ((), (1,), (width,)):
            raise SappError(f"{where}: {key} has shape {array.shape}; give one number or {width}, one per dimension")
        if not np.isfinite(array).all():
            raise SappError(f"{where}: {key} is not finite ({array.tolist()}); give the environment's action bounds")
        both.append(np.broadcast_to(array, (width,)))
    wrong = np.flatnonzero(both[0] >= both[1])
    if len(wrong):
        i = int(wrong[0])
        raise SappError(f"{where}: action_low {both[0][i]} is not below action_high {both[1][i]} in dimension {i}")
    return both[0], both[1]


def within(action: np.ndarray, low: np.ndarray, high: np.ndarray, where: str) -> np.ndarray:
    """Actions within their bounds; overshoot by rounding is clipped."""
    over = (action < low) | (action > high)
    if not over.any():
        return action
    slack_low, slack_high = (ACTION_SLACK * np.maximum(1, np.abs(bound)) for bound in (low, high))
    wrong = (action < low - slack_low) | (action > high + slack_high)
    if wrong.any():
        row, dimension = (int(i) for i in np.argwhere(wrong)[0])
        raise SappError(
            f"{where}: action is {action[row, dimension]:.6g} at row {row}, dimension {dimension}, outside "
            f"[{low[dimension]:g}, {high[dimension]:g}]; give action_low and action_high if the bounds are others"
            + (", or action_kind = 'discrete' if these number actions" if np.all(action == np.round(action)) else "")
        )
    return np.clip(action, low, high)
