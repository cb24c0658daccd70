"""Widened intervals, the yardstick they are judged by, and what is quoted."""

from __future__ import annotations

import numpy as np
import pytest

from sapp.ope.calibration import EXACT, NETWORKS, widened
from sapp.ope.doubly_robust import Values
from sapp.ope.estimators import Settings
from sapp.ope.offline import evaluate_offline, scales
from sapp.tabular.estimator_logs import draw_logs, table_policy
from sapp.tabular.tasks import ward


def test_intervals_and_differences_widen_alike() -> None:
    rng = np.random.default_rng(0)
    values = Values(np.array([1.0, 3.0]), np.array([1.0, 3.0]) + rng.normal(size=(4_000, 2)))
    wide = widened(values, 2.9)
    for policy in range(2):
        before, after = values.interval(policy), wide.interval(policy)
        assert after.estimate == before.estimate
        assert after.high - after.estimate == pytest.approx(2.9 * (before.high - before.estimate))
    gaps = [np.ptp(np.quantile(np.diff(each.replicates), (0.025, 0.975))) for each in (values, wide)]
    assert gaps[1] == pytest.approx(2.9 * gaps[0])
    assert widened(values, EXACT).interval(0) == pytest.approx(values.interval(0))


def test_the_yardstick_is_the_spread_of_returns_or_a_fifth_of_that_from_all_states() -> None:
    assert scales(np.linspace(0, 10, 101), np.linspace(4, 8, 101)) == pytest.approx((3.6, 3.6))
    assert scales(np.linspace(0, 10, 101), np.full(101, 5.0)) == pytest.approx((0.0, 1.8))


def test_networks_quote_fqe_and_solved_equations_the_combination() -> None:
    task = ward(np.random.default_rng(3), states=6, actions=3, discount=0.9)
    data = draw_logs(task.mdp, task.behaviour, 200, 50, 0, task.ends, task.paying)
    policy = [table_policy("own", task.behaviour)]
    solved = evaluate_offline(policy, data, Settings(discount=0.9, exact=True))
    fitted = evaluate_offline(policy, data, Settings(discount=0.9, steps=60, bags=3, hidden=(8,), batch_size=32))
    assert (solved.diagnoses[0].chosen, fitted.diagnoses[0].chosen) == ("dr", "fqe")
    assert NETWORKS > EXACT == 1.0
