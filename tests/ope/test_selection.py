"""Choosing between policies by their estimates."""

from __future__ import annotations

import numpy as np
import pytest
from ward_logs import logs

from sapp.ope.diagnostics import Verdict
from sapp.ope.doubly_robust import Values
from sapp.ope.estimators import Settings
from sapp.ope.offline import Offline, evaluate_offline
from sapp.ope.selection import select
from sapp.tabular.estimator_logs import table_policy
from sapp.tabular.tasks import Task


def test_selection_is_by_common_replicates(task: Task, policies: dict[str, np.ndarray]) -> None:
    data = logs(task, 3000)
    report = evaluate_offline(
        [table_policy(name, policy) for name, policy in policies.items()], data, Settings(discount=0.9, exact=True)
    )
    found = select(report)
    assert [each.name for each in found.order] == ["better", "behaviour", "worse"]
    assert sum(each.best for each in found.order) == pytest.approx(1.0)
    first, second = found.order[:2]
    apart = np.hypot(first.value.high - first.value.low, second.value.high - second.value.low)
    assert second.behind.high - second.behind.low < 0.8 * apart  # what policies have in common cancels
    assert tuple(first.behind) == (0.0, 0.0, 0.0)
    assert second.behind.low < second.behind.estimate < second.behind.high
    assert second.behind.estimate == pytest.approx(first.value.estimate - second.value.estimate)
    assert 0 <= found.regret <= found.regret_high
    assert found.regret == pytest.approx(
        float(np.mean(report.values["dr"].replicates.max(1) - report.values["dr"].replicates[:, 1]))
    )


def test_an_uncertain_choice_has_regret() -> None:
    rng = np.random.default_rng(0)
    replicates = rng.normal(size=(20_000, 2))
    values = Values(np.zeros(2), replicates)

    class Sure:
        verdict, chosen, reasons = Verdict.TRUSTED, "dr", ()

    report = Offline(("a", "b"), "d", "", {"dr": values}, [Sure(), Sure()], None, Settings(discount=0.5), 0.0)  # type: ignore[arg-type,list-item]
    found = select(report)
    assert found.order[0].best == pytest.approx(0.5, abs=0.02)
    assert found.regret == pytest.approx(1 / np.pi**0.5, abs=0.02)  # E[max(a, b) − a] of two standard normals
