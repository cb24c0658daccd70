"""Normalised scores: 0 for the random policy, 100 for the reference expert, as D4RL defines them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from sapp.core.errors import SappError

REFERENCE: dict[str, tuple[float, float]] = {
    "halfcheetah": (-280.178953, 12135.0),
    "hopper": (-20.272305, 3234.3),
    "walker2d": (1.629008, 4592.3),
    "point": (1.8, 38.2),
}
"""Returns that count as 0 and as 100: D4RL's own, and for `point` the measured ones of `sapp.envs.point`."""

_D4RL_NAME = re.compile(
    r"(?P<base>hopper|halfcheetah|walker2d)-(?P<kind>random|medium|expert|medium-replay|full-replay|medium-expert)"
    r"(?:-v\d+)?"
)


def base_name(environment: str) -> str | None:
    """The environment behind a name with a reference score ("hopper-medium", "Hopper-v4" → "hopper"), else None."""
    if environment in REFERENCE:
        return environment
    match = _D4RL_NAME.fullmatch(environment.replace("_", "-"))
    if match:
        return match["base"]
    bare = re.sub(r"-v\d+$", "", environment).lower()
    return bare if bare in REFERENCE else None


def reference(environment: str) -> tuple[float, float]:
    """The returns that count as 0 and as 100 in an environment."""
    base = base_name(environment)
    if base is None:
        near = difflib.get_close_matches(environment, REFERENCE, 1)
        known = f"known are {', '.join(sorted(REFERENCE))}; report returns instead"
        hint = f"did you mean {near[0]!r}?" if near else known
        raise SappError(f"environment {environment!r} has no reference scores: {hint}")
    return REFERENCE[base]


@overload
def normalized_score(environment: str, ret: float) -> float: ...
@overload
def normalized_score(environment: str, ret: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]: ...
def normalized_score(environment: str, ret: float | npt.NDArray[np.floating]) -> float | npt.NDArray[np.float64]:
    """Returns on D4RL's scale of 0 to 100; what lies outside the references is not clipped."""
    low, high = reference(environment)
    score = 100.0 * (np.asarray(ret, np.float64) - low) / (high - low)
    return float(score) if score.ndim == 0 else score


@overload
def normalized_std(environment: str, std: float) -> float: ...
@overload
def normalized_std(environment: str, std: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]: ...
def normalized_std(environment: str, std: float | npt.NDArray[np.floating]) -> float | npt.NDArray[np.float64]:
    """A spread of returns (standard deviation or error) on the same scale: scaled, never offset."""
    low, high = reference(environment)
    score = 100.0 * np.asarray(std, np.float64) / (high - low)
    return float(score) if score.ndim == 0 else score


def recorded_references(provenance: Mapping[str, Any]) -> list[float] | None:
    """The returns that count as 0 and as 100 by a dataset's own metadata, if it has them and they make sense."""
    found = provenance.get("reference_scores")
    if not isinstance(found, list) or len(found) != 2 or not all(isinstance(value, int | float) for value in found):
        return None
    low, high = float(found[0]), float(found[1])
    return [low, high] if np.isfinite([low, high]).all() and low < high else None
