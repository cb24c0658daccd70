"""Logs against Pendulum: [-2, 2], starts at any angle and a speed of up to 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.data import Dataset
from sapp.envs import make
from sapp.envs.base import BatchEnvironment
from sapp.envs.data_check import compare, stretched


@pytest.fixture(scope="module")
def pendulum() -> BatchEnvironment:
    return make("Pendulum-v1")


@pytest.fixture(scope="module")
def steps(pendulum: BatchEnvironment) -> dict[str, Any]:
    """Thirty episodes of five steps with random actions."""
    rng, rows = np.random.default_rng(0), 30
    now, found = pendulum.reset(rows, seed=7), []
    for step in range(5):
        action = rng.uniform(-2, 2, (rows, 1)).astype(np.float32)
        after, reward, _ = pendulum.step(action)
        found.append((now, action, reward, after, np.full(rows, step == 4)))
        now = after
    keys = ("observation", "action", "reward", "next_observation", "timeout")
    return {key: np.concatenate(np.swapaxes(np.stack(part), 0, 1)) for key, part in zip(keys, zip(*found, strict=True),
                                                                                      strict=True)}  # fmt: skip


def logged(steps: dict[str, Any], **change: Any) -> Dataset:
    bounds = {"action_low": -2, "action_high": 2}
    return Dataset.from_arrays(**{"terminal": np.zeros(150), "name": "logs", **bounds, **steps, **change})


def test_logs_of_the_environment_fit(steps: dict[str, Any], pendulum: BatchEnvironment) -> None:
    assert compare(logged(steps), pendulum) == []


def test_actions_in_shares_are_warned_of_and_can_be_stretched(
    steps: dict[str, Any], pendulum: BatchEnvironment
) -> None:
    data = logged(steps, action=steps["action"] / 2, action_low=-1, action_high=1)
    (line,) = compare(data, pendulum)
    assert "actions lie in [-1, 1], but Pendulum-v1 takes [-2, 2]" in line
    assert "at 50% of the environment's range" in line
    assert "--rescale-actions" in line
    right = stretched(data, pendulum)
    assert compare(right, pendulum) == []
    np.testing.assert_allclose(right.action, steps["action"], atol=1e-6)


def test_actions_beyond_the_environments_are_refused(steps: dict[str, Any], pendulum: BatchEnvironment) -> None:
    data = logged(steps, action=steps["action"] * 4000, action_low=-8000, action_high=8000)
    with pytest.raises(SappError, match=r"logs: action dimension 0 goes from -7.* but Pendulum-v1 takes \[-2, 2\]"):
        compare(data, pendulum)


def test_observations_that_were_standardised_are_noticed(steps: dict[str, Any], pendulum: BatchEnvironment) -> None:
    mean, std = steps["observation"].mean(0) - 1.0, steps["observation"].std(0) / 3
    scaled = {key: (steps[key] - mean) / std for key in ("observation", "next_observation")}
    (line,) = compare(logged(steps, **scaled), pendulum)
    assert "observations lie outside those of Pendulum-v1 in 3 of 3 features (feature 0: 0.0441 to 8.6 in the" in line
    small = {key: steps[key] * [0.1, 0.1, 1] for key in ("observation", "next_observation")}
    (line,) = compare(logged(steps, **small), pendulum)
    assert "do not start where those of Pendulum-v1 do, in 2 of 3 features" in line
    ours = logged(steps).standardised()  # this one remembers its units
    assert compare(ours, pendulum) == []


def test_choices_cannot_be_stretched(steps: dict[str, Any], pendulum: BatchEnvironment) -> None:
    data = logged(steps, action=np.zeros(150, int), num_actions=2)
    with pytest.raises(SappError, match=r"2 discrete actions, Pendulum-v1 has .* 1 values in an action; name the"):
        compare(data, pendulum)
    with pytest.raises(SappError, match="cannot be stretched to them"):
        stretched(data, pendulum)
