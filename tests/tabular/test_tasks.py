"""Decision problems with a policy that fills logs: a ward, and ICU-Sepsis where it is installed."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from sapp.tabular.occupancy import unnormalised_occupancy
from sapp.tabular.tasks import Task, icu_sepsis, ward

installed = pytest.mark.skipif(importlib.util.find_spec("icu_sepsis") is None, reason="icu-sepsis is not installed")


@pytest.fixture(scope="module")
def task() -> Task:
    return ward(np.random.default_rng(3))


def test_log_pays_what_its_episodes_paid(task: Task) -> None:
    log = task.draw(np.random.default_rng(0), 2000)
    assert log.size == pytest.approx(2000, rel=0.2)
    assert log.visits[task.ends].sum() == 0
    assert log.reward_sum.sum() == log.counts[:, :, task.paying].sum()
    model = task.model(log)
    assert not np.allclose(model.reward[model.pairs > 0], task.mdp.reward[model.pairs > 0])  # noisy, not the truth
    large = task.model(task.draw(np.random.default_rng(0), 2_000_000))
    many = large.pairs > 10_000
    assert many.sum() > 20
    np.testing.assert_allclose(large.reward[many], task.mdp.reward[many], atol=0.02)


@installed
def test_icu_sepsis_is_what_its_authors_say() -> None:
    task = icu_sepsis()
    assert task.mdp.transition.shape == (716, 25, 716)
    assert task.ends.sum() == 3
    assert task.paying == 714
    going_on = ~np.isin(np.arange(716), np.flatnonzero(task.ends))
    assert going_on.sum() == 713
    assert (task.behaviour[going_on] > 0).sum() == 9252
    visits = 0.01 * unnormalised_occupancy(task.mdp, task.behaviour)[going_on].sum()
    assert visits == pytest.approx(0.1, abs=0.02)  # most of the discounted occupancy lies behind the end
    np.testing.assert_allclose(task.behaviour.sum(-1), 1)
    assert task.length == pytest.approx(9.22, abs=0.05)
    undiscounted = icu_sepsis(0.999999).mdp
    assert undiscounted.expected(undiscounted.value(task.behaviour)) == pytest.approx(0.78, abs=0.006)
    assert undiscounted.expected(undiscounted.optimal()[1]) == pytest.approx(0.88, abs=0.006)
