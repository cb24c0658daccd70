"""Gymnasium's -v4 environments with the physics of D4RL v2, for whoever wants a plain Gymnasium environment.

A dataset that was recorded with D4RL's physics names one of these in its metadata, so that Minari's
`recover_environment()` gives the environment that made it. Gymnasium alone cannot express it: its -v4 classes take no
other model. Where this package cannot be imported, the environment cannot be recovered; the data load all the same.
"""

from __future__ import annotations

from typing import Any

from gymnasium.envs.mujoco.half_cheetah_v4 import HalfCheetahEnv
from gymnasium.envs.mujoco.hopper_v4 import HopperEnv
from gymnasium.envs.mujoco.walker2d_v4 import Walker2dEnv

from sapp.envs.physics import load_model


class _RestoredModel:
    """Replaces the model that Gymnasium compiles by the restored one."""

    fullpath: str
    width: int
    height: int

    def _initialize_simulation(self) -> tuple[Any, Any]:
        import mujoco

        model = load_model(self.fullpath, "d4rl")
        # as Gymnasium does: the off-screen buffer must hold the picture
        model.vis.global_.offwidth = max(model.vis.global_.offwidth, self.width)
        model.vis.global_.offheight = max(model.vis.global_.offheight, self.height)
        return model, mujoco.MjData(model)


class Hopper(_RestoredModel, HopperEnv):
    """Hopper as D4RL v2 recorded it."""


class HalfCheetah(_RestoredModel, HalfCheetahEnv):
    """HalfCheetah as D4RL v2 recorded it."""


class Walker2d(_RestoredModel, Walker2dEnv):
    """Walker2d as D4RL v2 recorded it."""
