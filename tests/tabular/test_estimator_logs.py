"""Finite MDPs as logs that estimators take."""

from __future__ import annotations

import numpy as np
import pytest
from ward_logs import logs
from ward_logs import task as task

from sapp.ope.fqe import returns_to_go
from sapp.tabular.estimator_logs import normalised_value
from sapp.tabular.tasks import Task


def test_logs_of_a_finite_task(task: Task) -> None:
    data = logs(task, 2000)
    assert data.num_episodes == 2000
    assert data.terminal[data.episode_ends].all()
    mean = (0.9 ** data.step[data.episode_ends] * data.reward[data.episode_ends]).mean()
    exact = normalised_value(task.mdp, task.behaviour) / 0.1
    assert mean == pytest.approx(exact, abs=4 * 0.5 / 2000**0.5)
    np.testing.assert_allclose(returns_to_go(data, data.reward, 0.9)[data.episode_starts].mean(), mean, rtol=1e-6)
