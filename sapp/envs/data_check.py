"""Logs against the environment they are said to be from: actions, starts and scales, before anything is trained."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sapp.core.errors import SappError
from sapp.data.action_units import rescaled
from sapp.data.dataset import Dataset
from sapp.data.frames import FrameDataset
from sapp.envs.base import BatchEnvironment
from sapp.envs.gymnasium_batch import GymnasiumBatch

STARTS = 32
"""Starts of the environment that are compared with those of the logs."""
_ROWS = 8
SHIFT, SPREAD = 4.0, 2.5
"""Deviations between the means of starts, and ratio of their deviations, beyond which they are not the same."""
_ENOUGH = 20
"""Episodes from which on the spread of their starts says something."""


def compare(data: Dataset, environment: BatchEnvironment) -> list[str]:
    """What does not fit between logs and environment, a sentence each; what cannot be right raises ``SappError``.

    Args:
        data: the logs.
        environment: that they are said to be from.
    """
    from sapp.envs import fitted

    mine = data.observation_size, data.action_size, data.num_actions
    environment = fitted(environment, data.observation_size, data.mask_at)
    theirs = environment.observation_size, environment.action_size, environment.num_actions
    if mine != theirs:
        raise SappError(
            f"{data.name}: has {_sizes(*mine)}, {environment.name} has {_sizes(*theirs)}; name the environment it is "
            f"from"
        )
    lines = [] if data.discrete else _actions(data, environment)
    return lines + (_observations(data, environment) or _starts(data, environment))


def stretched(data: Dataset, environment: BatchEnvironment) -> Dataset:
    """The logs with their action bounds stretched to the environment's, see ``sapp.data.action_units.rescaled``."""
    if data.discrete or environment.num_actions is not None or data.action_size != environment.action_size:
        raise SappError(
            f"{data.name}: its actions are not vectors of the {environment.action_size} values that {environment.name} "
            f"takes, so they cannot be stretched to them; leave rescale_actions out"
        )
    return rescaled(data, environment.action_low, environment.action_high)


def stretched_to_own(data: Dataset | FrameDataset) -> Dataset:
    """The logs with their actions in the units of the environment that they name."""
    from sapp.envs import make

    if not isinstance(data, Dataset):
        raise SappError(f"{data.name}: actions of games are discrete, so none can be stretched")
    if data.environment is None:
        raise SappError(f"{data.name}: --rescale-actions needs to know the environment; name it with --environment")
    return stretched(data, make(data.environment, physics=data.physics, usual_steps=data.play_limit))


def _actions(data: Dataset, environment: BatchEnvironment) -> list[str]:
    low, high, slack = _bounds(environment)
    over = (data.action.min(axis=0) < low - slack) | (data.action.max(axis=0) > high + slack)
    theirs = f"{environment.name} takes {_range(low, high)}"
    if over.any():
        worst = int(np.argmax(np.where(over, np.max(np.abs(data.action), axis=0), 0)))
        raise SappError(
            f"{data.name}: action dimension {worst} goes from {data.action[:, worst].min():g} to "
            f"{data.action[:, worst].max():g} in the logs, but {theirs}: a policy could not act as the logs do; if the "
            f"logs are in other units, use --rescale-actions (sapp.envs.data_check.stretched), else name the "
            f"environment they are from"
        )
    return compare_bounds(data.action_low, data.action_high, environment)


def compare_bounds(action_low: ArrayLike, action_high: ArrayLike, environment: BatchEnvironment) -> list[str]:
    """What to say where the bounds within which a policy acts are not those of the environment.

    Args:
        action_low: of the logs [A].
        action_high: of the logs [A].
        environment: that is played.
    """
    low, high, slack = _bounds(environment)
    mine = np.asarray(action_low, np.float32), np.asarray(action_high, np.float32)
    if np.all(np.abs(mine[0] - low) <= slack) and np.all(np.abs(mine[1] - high) <= slack):
        return []
    share = float(np.max((mine[1] - mine[0]) / (high - low)))
    return [
        f"the logs' actions lie in {_range(*mine)}, but {environment.name} takes {_range(low, high)}: a policy will "
        f"play within the logs' bounds, at {share:.0%} of the environment's range. If the logs hold shares of that "
        f"range, use --rescale-actions; if they are in the environment's units, give its bounds as action_low and "
        f"action_high"
    ]


def _bounds(environment: BatchEnvironment) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The environment's action bounds [A], and how far off they may be."""
    low, high = np.asarray(environment.action_low, np.float32), np.asarray(environment.action_high, np.float32)
    return low, high, 1e-3 * np.maximum(high - low, 1e-6)


def _observations(data: Dataset, environment: BatchEnvironment) -> list[str]:
    """Whether observations are such as the environment says that it gives."""
    if not isinstance(environment, GymnasiumBatch) or (bounds := environment.observation_bounds) is None:
        return []
    low, high = bounds
    slack = 1e-3 * np.maximum(1, np.where(np.isfinite(high - low), high - low, 1))
    least, most = data.raw(data.observation.min(axis=0)), data.raw(data.observation.max(axis=0))
    out = np.flatnonzero((least < low - slack) | (most > high + slack))
    if not len(out):
        return []
    i = int(out[0])
    return [
        f"observations lie outside those of {environment.name} in {len(out)} of {data.observation_size} features "
        f"(feature {i}: {least[i]:.3g} to {most[i]:.3g} in the logs, {low[i]:g} to {high[i]:g} there): they are "
        f"standardised, in other units, or from another task, and a policy sees the environment's own when it plays"
    ]


def _starts(data: Dataset, environment: BatchEnvironment) -> list[str]:
    """Whether the episodes of the logs start where those of the environment do."""
    real = [environment.reset(_ROWS, seed=0, episode=np.arange(_ROWS))]
    for first in range(_ROWS, STARTS, _ROWS):
        real.append(environment.restart(np.arange(_ROWS), np.arange(first, first + _ROWS)))
    theirs, mine = np.concatenate(real).astype(np.float64), data.raw(data.initial_observation).astype(np.float64)
    scale = data.observation_std * data.raw_scale
    size = np.maximum(np.maximum(np.abs(theirs.mean(0)), np.abs(mine.mean(0))), scale)
    apart = np.abs(mine.mean(0) - theirs.mean(0)) > SHIFT * (mine.std(0) + theirs.std(0)) + 0.02 * size + 1e-6
    if len(mine) >= _ENOUGH:
        small = 1e-3 * size + 1e-6
        ratio = np.maximum(mine.std(0), small) / np.maximum(theirs.std(0), small)
        apart |= (ratio > SPREAD) | (ratio < 1 / SPREAD)
    if not apart.any():
        return []
    where = np.flatnonzero(apart)
    i = int(where[0])
    return [
        f"episodes of the logs do not start where those of {environment.name} do, in {len(where)} of "
        f"{data.observation_size} features (feature {i}: {mine[:, i].mean():.3g} ± {mine[:, i].std():.2g} in the logs, "
        f"{theirs[:, i].mean():.3g} ± {theirs[:, i].std():.2g} there): are they standardised, in other units, or from "
        f"another task? A policy sees the environment's own observations when it plays"
    ]


def _sizes(observations: int, actions: int, discrete: int | None) -> str:
    kind = f"{actions} values in an action" if discrete is None else f"{discrete} discrete actions"
    return f"{observations} values in an observation and {kind}"


def _range(low: np.ndarray, high: np.ndarray) -> str:
    if np.all(low == low[0]) and np.all(high == high[0]):
        return f"[{low[0]:g}, {high[0]:g}]"
    pairs = ", ".join(f"{a:g} to {b:g}" for a, b in zip(low[:6], high[:6], strict=True))
    return pairs + (" …" if len(low) > 6 else "")
