"""Actions between the units of logs and environments, [low, high], and those of networks, [-1, 1]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from sapp.core.errors import SappError

if TYPE_CHECKING:
    from sapp.data.dataset import Dataset


def to_unit(action: ArrayLike, low: ArrayLike, high: ArrayLike, clip: bool = True) -> np.ndarray:
    """Actions from [low, high] to [-1, 1], float32; as they are where those are the units.

    Args:
        action: [..., A].
        low: lowest action, one number or A.
        high: highest action, likewise.
        clip: keep the result within [-1, 1], as an environment does; off to see how far out an action is.
    """
    given, small, large = np.asarray(action), np.asarray(low, np.float64), np.asarray(high, np.float64)
    if np.all(small == -1) and np.all(large == 1):
        unit = np.asarray(given, np.float32)
        inside = not clip or bool(np.all((unit >= -1) & (unit <= 1)))
        return unit if inside else np.clip(unit, -1, 1)
    found = (2 * (given - small) / (large - small) - 1).astype(np.float32)
    return np.clip(found, -1, 1) if clip else found


def from_unit(action: Any, low: Any, high: Any) -> Any:
    """Actions from [-1, 1] to [low, high], float32, within the bounds; of NumPy or of JAX, also where it is traced.

    Args:
        action: [..., A], float32.
        low: lowest action, float32.
        high: highest action, float32.
    """
    if np.all(np.asarray(low) == -1) and np.all(np.asarray(high) == 1):
        return action.clip(-1, 1)
    return (low + (action + 1.0) * 0.5 * (high - low)).clip(low, high)


def rescaled(data: Dataset, low: ArrayLike, high: ArrayLike) -> Dataset:
    """The same logs with their action bounds stretched to others: what was logged as the highest action is ``high``.

    For logs whose actions are shares of what the environment takes, such as [-1, 1] where it takes [-2, 2].
    """
    from dataclasses import replace

    from sapp.data.ledger import Kind, Ledger

    if data.discrete:
        raise SappError(f"{data.name}: actions are discrete, so there is nothing to rescale; leave rescale_actions out")
    small = np.broadcast_to(np.asarray(low, np.float32), data.action_low.shape)
    large = np.broadcast_to(np.asarray(high, np.float32), data.action_high.shape)
    ledger = Ledger.of(data)
    was = ", ".join(f"{a:g} to {b:g}" for a, b in zip(data.action_low[:4], data.action_high[:4], strict=True))
    ledger.say(
        Kind.CHANGED,
        f"actions were stretched from the logs' bounds ({was}) to the environment's",
        rows=len(data), asked=True,
    )  # fmt: skip
    extras = dict(data.extras)
    if "log_prob" in extras:  # a density in stretched units is lower by the stretch
        stretch = np.log((large - small) / (data.action_high - data.action_low), dtype=np.float64).sum()
        extras["log_prob"] = extras["log_prob"] - stretch
    return replace(
        data,
        action=from_unit(data.scaled_action(), small, large).astype(np.float32),
        action_low=small,
        action_high=large,
        extras=extras,
        provenance={**data.provenance, "ledger": ledger.to_json()},
    )
