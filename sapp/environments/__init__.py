"""Environments that step many copies at once, D4RL's physics, behaviour policies and normalised scores."""

from __future__ import annotations

import difflib

from sapp.environments.base import BatchEnvironment
from sapp.environments.scores import REFERENCE, base_name, normalized_score, normalized_std
from sapp.errors import SappError

__all__ = ["REFERENCE", "BatchEnvironment", "base_name", "make", "normalized_score", "normalized_std"]

_FAST = {"Hopper-v4": "hopper", "HalfCheetah-v4": "halfcheetah", "Walker2d-v4": "walker2d"}


def make(
    name: str, physics: str | None = None, threads: int | None = None, max_episode_steps: int | None = None
) -> BatchEnvironment:
    """Makes an environment by name.

    Args:
        name: "hopper", "halfcheetah", "walker2d" or a D4RL dataset's name such as "hopper-medium-v2" (with D4RL v2's
            physics by default); "point"; or any registered Gymnasium id with box spaces.
        physics: "d4rl" or "v4" for the first kind; None for the default.
        threads: simulator threads; by default one per core.
        max_episode_steps: the time limit, for Gymnasium ids registered without one.
    """
    from sapp.environments.locomotion import TASKS, Locomotion

    base = base_name(name)
    if name in _FAST or (base in TASKS and name == name.lower()):
        assert base is not None
        return Locomotion(base, physics or ("v4" if name in _FAST else "d4rl"), threads)
    if physics:
        raise SappError(
            f"{name!r} comes in one physics only: leave physics out (hopper, halfcheetah and walker2d have two)"
        )
    if name == "point":
        from sapp.environments.point import Point

        return Point()
    import gymnasium

    from sapp.environments.gymnasium_batch import GymnasiumBatch

    if name not in gymnasium.registry and ":" not in name:
        ours = difflib.get_close_matches(name.lower(), [*TASKS, "point"], 1, 0.75)
        near = ours or difflib.get_close_matches(name, list(gymnasium.registry), 1)
        hint = f"did you mean {near[0]!r}?" if near else "use hopper, halfcheetah, walker2d, point or a Gymnasium id"
        raise SappError(f"environment {name!r} is unknown: {hint}")
    return GymnasiumBatch(name, max_episode_steps)
