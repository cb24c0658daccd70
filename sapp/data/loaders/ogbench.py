"""OGBench's arrays, whose ``terminals`` end a recording and whose ``masks`` end the task."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from sapp.core.errors import SappError


def understood(arrays: Mapping[str, ArrayLike], source: str) -> Mapping[str, ArrayLike]:
    """The same arrays in D4RL's sense where they are OGBench's; any others as they are.

    OGBench marks the last row of each trajectory in ``terminals``; only ``masks`` of 0 say that the task ended there.
    Taken for a terminal, the end of every trajectory would stop bootstrapping. Its files hold no rewards: those come
    with a task.
    """
    if not {"observations", "actions", "terminals"} <= set(arrays):
        return arrays
    if "rewards" not in arrays and ("masks" in arrays or "qpos" in arrays):
        raise SappError(
            f"{source}: holds no rewards, as OGBench's files of trajectories do not: a task defines them; make them "
            "with ogbench.make_env_and_datasets('...-singletask-v0') and give sapp.load the dictionary it returns"
        )
    if "masks" not in arrays:
        return arrays
    ends, ended = np.asarray(arrays["terminals"]) != 0, np.asarray(arrays["masks"]) == 0
    if ends.shape != ended.shape:
        raise SappError(f"{source}: terminals have the shape {ends.shape}, masks {ended.shape}; they must be alike")
    rest = {key: value for key, value in arrays.items() if key != "masks"}
    return {**rest, "terminals": ended, "timeouts": ends & ~ended}
