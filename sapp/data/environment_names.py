"""Names of environments: what a user types may import a module, what a file holds never does."""

from __future__ import annotations

import importlib
import importlib.util
from typing import overload

from sapp.core.errors import SappError

ROBOTICS = ("AdroitHand", "AntMaze", "Fetch", "FrankaKitchen", "HandManipulate", "HandReach", "PointMaze")
"""How ids of gymnasium-robotics begin."""


def register_robotics(name: str) -> None:
    """Let gymnasium-robotics register its environments, if one of them is meant and it is installed."""
    import gymnasium

    if name not in gymnasium.registry and name.startswith(ROBOTICS) and importlib.util.find_spec("gymnasium_robotics"):
        gymnasium.register_envs(importlib.import_module("gymnasium_robotics"))


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
