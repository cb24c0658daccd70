"""Gymnasium's descriptions of the two physics."""

from __future__ import annotations

import pytest

from sapp.envs.gymnasium_specs import environment_spec


def test_the_two_physics_differ(gymnasium_mujoco):
    masses = [
        gymnasium_mujoco.make(environment_spec("hopper", physics)).unwrapped.model.body_mass.sum()
        for physics in ("d4rl", "v4")
    ]
    assert masses[0] != pytest.approx(masses[1], rel=1e-3)
