"""Names of environments: what a user types may import a module, what a file holds never does."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
from types import SimpleNamespace
from typing import Any, overload

import numpy as np

from sapp.core.errors import SappError

ROBOTICS = ("AdroitHand", "AntMaze", "Fetch", "FrankaKitchen", "HandManipulate", "HandReach", "PointMaze")
"""How ids of gymnasium-robotics begin."""


def register_robotics(name: str) -> None:
    """Let gymnasium-robotics register its environments, if one of them is meant and it is installed."""
    import gymnasium

    if not name.startswith(ROBOTICS) or importlib.util.find_spec("gymnasium_robotics") is None:
        return
    if name not in gymnasium.registry:
        # it tells of a change of Adroit's rewards, on stderr, whatever is asked for
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            gymnasium.register_envs(importlib.import_module("gymnasium_robotics"))
    _plain_joint_types()


def _plain_joint_types() -> None:
    """Joint types as plain numbers in gymnasium-robotics' utilities.

    They look for a NumPy number among MuJoCo's enums, which MuJoCo 4 finds equal to none: Fetch, the hands and the
    kitchen end in an assertion without a word.
    """
    try:
        import mujoco

        utilities: Any = importlib.import_module("gymnasium_robotics.utils.mujoco_utils")
    except ImportError:  # then making the environment says so
        return
    if np.int32(mujoco.mjtJoint.mjJNT_HINGE) in (mujoco.mjtJoint.mjJNT_HINGE,):
        return
    plain = SimpleNamespace(**{name: int(value) for name, value in mujoco.mjtJoint.__members__.items()})
    utilities.mujoco = _With(mujoco, mjtJoint=plain)


class _With:
    """A module with some of its attributes replaced."""

    def __init__(self, module: Any, **attributes: Any) -> None:
        self._module = module
        vars(self).update(attributes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


@overload
def typed_environment(name: str) -> str: ...
@overload
def typed_environment(name: None) -> None: ...
def typed_environment(name: str | None) -> str | None:
    """The registered id behind a name that a user has typed: "module:Id" imports the module, which registers "Id".

    The only place where an environment's name becomes code. Call it with what comes from the caller or the command
    line, never with what a dataset or a run folder says.
    """
    module, colon, identity = (name or "").partition(":")
    if not colon:
        return name
    try:
        importlib.import_module(module)
    except Exception as error:  # whatever the user's own module raises
        raise SappError(f"{name}: module {module!r} cannot be imported ({type(error).__name__}: {error})") from None
    return identity
