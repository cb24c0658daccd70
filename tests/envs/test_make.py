"""Environments by name: whose batch it is, what it costs to import, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.envs import make
from sapp.envs.gymnasium_batch import GymnasiumBatch
from sapp.envs.locomotion import Locomotion
from sapp.envs.point import Point


@pytest.mark.parametrize(
    ("name", "physics", "expected"),
    [
        ("hopper", None, "d4rl"),
        ("halfcheetah", "v4", "v4"),
        ("walker2d-medium-replay-v2", None, "d4rl"),
        ("hopper_medium_expert-v2", None, "d4rl"),
        ("hopper-random-v2", "v4", "v4"),
        ("Walker2d-v4", None, "v4"),
        ("Hopper-v4", "d4rl", "d4rl"),
    ],
)
def test_locomotion_by_any_of_its_names(name, physics, expected):
    environment = make(name, physics)
    assert isinstance(environment, Locomotion)
    assert environment.physics == expected
    assert environment.max_episode_steps == 1000


def test_the_others():
    assert isinstance(make("point"), Point)
    assert isinstance(make("Pendulum-v1"), GymnasiumBatch)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("hoper", "'hopper'"),
        ("HalfCheeta", "'halfcheetah'"),
        ("Pendulum-v11", "'Pendulum-v1'"),
        ("zzzz", "Gymnasium id"),
    ],
)
def test_unknown_names_get_a_hint(name, hint):
    with pytest.raises(SappError, match=hint) as error:
        make(name)
    assert "\n" not in str(error.value)


def test_physics_only_where_there_are_two():
    with pytest.raises(SappError, match="one physics"):
        make("point", "d4rl")
    with pytest.raises(SappError, match="'v5' is unknown"):
        make("hopper", "v5")


def test_importing_costs_no_simulator():
    code = "import sapp.envs, sapp.evaluation, sys; print('mujoco' in sys.modules, 'gymnasium' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["False", "False"]


def test_any_gymnasium_environment():
    environment = make("MountainCarContinuous-v0")
    many = environment.reset(4, seed=2)
    assert many.shape == (4, 2)
    np.testing.assert_array_equal(environment.reset(2, seed=2), many[:2])
    np.testing.assert_array_equal(environment.reset(2, seed=2, episode=np.array([3, 3])), many[[3, 3]])
    active = np.array([True, False])
    observation, reward, terminal = environment.step(np.full((2, 1), 0.5), active)
    assert observation[0, 1] != many[3, 1]
    np.testing.assert_array_equal(observation[1], many[3])
    assert reward[0] == pytest.approx(-0.1 * 0.25)
    assert reward[1] == 0
    assert not terminal.any()
    assert environment.max_episode_steps == 999


def test_a_batch_steps_as_gymnasium_does():
    import gymnasium

    environment, alone = make("Pendulum-v1"), gymnasium.make("Pendulum-v1")
    start = environment.reset(3, seed=0)
    rng = np.random.default_rng(0)
    alone.reset(seed=0)
    alone.unwrapped.state = np.array([np.arctan2(start[1, 1], start[1, 0]), start[1, 2]])
    for _ in range(50):
        action = rng.uniform(-2, 2, (3, 1)).astype(np.float32)
        observation, reward, _ = environment.step(action)
        expected = alone.step(action[1])
        np.testing.assert_allclose(observation[1], expected[0], atol=1e-3)
        assert reward[1] == pytest.approx(expected[1], abs=1e-3)


def test_a_missing_time_limit_is_asked_for():
    import gymnasium
    from gymnasium.envs.classic_control import PendulumEnv

    gymnasium.register("Endless-v0", PendulumEnv)
    try:
        with pytest.raises(SappError, match="max_episode_steps"):
            make("Endless-v0")
        assert make("Endless-v0", max_episode_steps=7).max_episode_steps == 7
    finally:
        del gymnasium.registry["Endless-v0"]


def test_gymnasium_mujoco_without_its_extra_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio", None)
    for name in [key for key in sys.modules if key.startswith("gymnasium.envs.mujoco")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SappError, match=r"pip install 'sapp-rl\[mujoco\]'"):
        make("Ant-v5")
