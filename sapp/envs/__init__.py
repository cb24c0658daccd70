"""Environments that step many copies at once, D4RL's physics, behaviour policies and normalised scores."""

from __future__ import annotations

import difflib
import importlib.util
from typing import TYPE_CHECKING, cast

from sapp.core.errors import SappError
from sapp.core.extras import missing
from sapp.data.environment_names import ROBOTICS, register_robotics, typed_environment
from sapp.data.normalised_scores import REFERENCE, base_name, normalized_score, normalized_std
from sapp.envs.atari import MAX_STEPS, is_atari, make_atari
from sapp.envs.base import BatchEnvironment
from sapp.envs.frames import FrameEnvironment

if TYPE_CHECKING:
    from sapp.envs.gymnasium_batch import Source

__all__ = [
    "REFERENCE",
    "BatchEnvironment",
    "FrameEnvironment",
    "base_name",
    "fitted",
    "make",
    "make_frames",
    "normalized_score",
    "normalized_std",
]

_FAST = {"Hopper-v4": "hopper", "HalfCheetah-v4": "halfcheetah", "Walker2d-v4": "walker2d"}


def make(
    source: Source,
    physics: str | None = None,
    threads: int | None = None,
    max_episode_steps: int | None = None,
    *,
    recorded: bool = False,
    pictures: bool = False,
    usual_steps: int | None = None,
) -> BatchEnvironment:
    """Makes an environment.

    Args:
        source: "hopper", "halfcheetah", "walker2d" or a D4RL dataset's name such as "hopper-medium-v2" (with D4RL v2's
            physics by default); "point"; any registered Gymnasium id, or "module:Id", which imports the module; a
            Gymnasium environment, or a function that makes one; or, which gives a `FrameEnvironment` in place of the
            annotated type, what `make_frames` takes.
        physics: "d4rl" or "v4" for the first kind; None for the default.
        threads: simulator threads; by default one per core.
        max_episode_steps: the time limit, for Gymnasium environments without one.
        recorded: the name is from a file (a dataset's or a run's): no module is imported because of it.
        pictures: whether the environment is going to be drawn.
        usual_steps: the time limit where neither ``max_episode_steps`` nor the environment says one.
    """
    from sapp.envs.gymnasium_batch import GymnasiumBatch

    if not isinstance(source, str):
        if physics:
            raise SappError("physics is for hopper, halfcheetah and walker2d by name; leave it out")
        return GymnasiumBatch(source, max_episode_steps, usual_steps=usual_steps)
    from sapp.envs.locomotion import TASKS, Locomotion

    name = source
    base = base_name(name)
    if name in _FAST or (base in TASKS and name == name.lower()):
        assert base is not None
        return Locomotion(base, physics or ("v4" if name in _FAST else "d4rl"), threads)
    if physics:
        raise SappError(
            f"{name!r} comes in one physics only: leave physics out (hopper, halfcheetah and walker2d have two)"
        )
    if is_frames(name):
        return cast(BatchEnvironment, make_frames(name, threads, max_episode_steps))
    if name == "point":
        from sapp.envs.point import Point

        return Point()
    return GymnasiumBatch(_registered(name, recorded), max_episode_steps, pictures, usual_steps)


def fitted(environment: BatchEnvironment, observation_size: int, mask_at: int | None) -> BatchEnvironment:
    """An environment for data whose observations end in a mask: it appends the mask that it tells besides.

    Args:
        environment: to play.
        observation_size: of the data.
        mask_at: of the data, see ``sapp.data.Dataset``.
    """
    from sapp.envs.gymnasium_batch import GymnasiumBatch

    own = environment.observation_size
    if isinstance(environment, GymnasiumBatch) and mask_at == own == observation_size - environment.action_size:
        environment.append_masks()
    return environment


def _registered(name: str, recorded: bool) -> str:
    """A Gymnasium id that is registered, or what to do about it."""
    import gymnasium

    from sapp.envs.locomotion import TASKS

    if recorded and ":" in name:
        module, _, name = name.partition(":")
        if name not in gymnasium.registry:
            raise SappError(
                f"environment '{module}:{name}' comes from a file and would import {module!r}, which a file may not: "
                f"import it yourself, or name the environment yourself"
            )
    name = typed_environment(name)
    register_robotics(name)
    if name in gymnasium.registry:
        return name
    if name.startswith(ROBOTICS) and importlib.util.find_spec("gymnasium_robotics") is None:
        raise missing(f"environment {name!r}", "gymnasium_robotics")
    ours = difflib.get_close_matches(name.lower(), [*TASKS, "point", "catch"], 1, 0.75)
    near = ours or difflib.get_close_matches(name, list(gymnasium.registry), 1)
    hint = (
        f"did you mean {near[0]!r}?"
        if near
        else "use hopper, halfcheetah, walker2d, point, catch, a Gymnasium id, or module:Id where a module registers it"
    )
    raise SappError(f"environment {name!r} is unknown: {hint}")


def is_frames(name: str) -> bool:
    """Whether `make_frames` makes an environment of this name: "ALE/Pong-v5" and its like, or "catch"."""
    return name == "catch" or is_atari(name)


def make_frames(name: str, threads: int | None = None, max_episode_steps: int | None = None) -> FrameEnvironment:
    """Makes an image environment by name.

    Args:
        name: an Atari game in ALE's namespace, such as "ALE/Pong-v5", in Dopamine's protocol; or "catch".
        threads: emulator threads; by default one per core.
        max_episode_steps: the time limit, for Atari; 27,000 by default.
    """
    if name == "catch":
        from sapp.envs.catch import Catch

        return Catch()
    if is_atari(name):
        return make_atari(name, threads, max_episode_steps=max_episode_steps or MAX_STEPS)
    raise SappError(f"{name!r} is no image environment: use a name such as ALE/Pong-v5, or catch")
