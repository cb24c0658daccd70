"""A small task with three policies, and logs of its behaviour: what the tests of estimates share."""

from __future__ import annotations

import numpy as np
import pytest

from sapp.data import Dataset
from sapp.ope.targets import Targets
from sapp.tabular.estimator_logs import draw_logs, table_policy
from sapp.tabular.tasks import HORIZON, Task, ward


@pytest.fixture(scope="module")
def task() -> Task:
    return ward(np.random.default_rng(3), states=6, actions=3, discount=0.9)


def tilt(task: Task, temperature: float) -> np.ndarray:
    q = task.mdp.action_value(task.mdp.value(task.behaviour))
    weight = task.behaviour * np.exp((q - q.max(-1, keepdims=True)) / temperature)
    return weight / weight.sum(-1, keepdims=True)


@pytest.fixture(scope="module")
def policies(task: Task) -> dict[str, np.ndarray]:
    return {"behaviour": task.behaviour, "better": tilt(task, 0.1), "worse": tilt(task, -0.1)}


def logs(task: Task, episodes: int, seed: int = 0) -> Dataset:
    return draw_logs(task.mdp, task.behaviour, episodes, HORIZON, seed, task.ends, task.paying)


def targets_of(policies: dict[str, np.ndarray], data: Dataset) -> Targets:
    return Targets.of([table_policy(name, policy) for name, policy in policies.items()], data)
