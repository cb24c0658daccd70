"""Estimates that must not be trusted are refused or doubted, with the reason."""

from __future__ import annotations

import numpy as np
import pytest
from ward_logs import logs, targets_of

from sapp.core.errors import SappError
from sapp.data import Dataset
from sapp.ope.diagnostics import Diagnosis, Verdict, diagnose
from sapp.ope.doubly_robust import Values, estimate
from sapp.ope.estimators import Settings
from sapp.ope.exact import fit_exactly
from sapp.ope.offline import evaluate_offline
from sapp.ope.selection import select
from sapp.ope.targets import from_function
from sapp.tabular.estimator_logs import table_policy
from sapp.tabular.tasks import Task


def test_a_policy_off_the_data_is_refused() -> None:
    rng = np.random.default_rng(0)
    steps, size = 20, 60 * 20
    action = rng.uniform(-1.0, 0.0, (size, 1)).astype(np.float32)
    observation = rng.normal(size=(size, 2)).astype(np.float32)
    data = Dataset(
        observation, action, 1 - action[:, 0] ** 2, rng.normal(size=(size, 2)), np.zeros(size, bool),
        (np.arange(size) + 1) % steps == 0, name="half",
    )  # fmt: skip
    settings = Settings(discount=0.8, steps=300, bags=2, hidden=(8,), batch_size=32)
    inside = from_function("inside", lambda x: np.full((len(x), 1), -0.5), data)
    outside = from_function("outside", lambda x: np.full((len(x), 1), 0.95), data)
    report = evaluate_offline([inside, outside], data, settings)
    assert report.diagnoses[0].off_data < 0.1
    assert report.diagnoses[1].off_data > 0.9
    assert report.diagnoses[1].verdict == Verdict.REFUSED
    assert "nearly) never take" in " ".join(map(str, report.diagnoses[1].reasons))
    row = report.row(1)
    assert row["value"] is None
    assert row["fqe"] == pytest.approx(report.interval(1, "fqe").estimate)
    chosen = select(report)
    assert [each.name for each in chosen.order] == ["inside"]
    assert chosen.refused[0][0] == "outside"


def test_a_fit_that_was_hardly_begun_is_not_trusted(task: Task) -> None:
    data = logs(task, 300)
    policy = [table_policy("behaviour", task.behaviour)]
    for steps, horizons, verdict in ((300, 3.0, Verdict.DOUBTFUL), (40, 0.4, Verdict.REFUSED)):
        settings = Settings(discount=0.9, steps=steps, bags=6, hidden=(8,), batch_size=32)
        found = evaluate_offline(policy, data, settings).diagnoses[0]
        assert found.horizons == pytest.approx(horizons)
        assert found.verdict == verdict
        assert f"fitted for {steps} steps, {horizons:.1f} times the horizon" in " ".join(map(str, found.reasons))


def test_an_impossible_estimate_is_refused(task: Task) -> None:
    data = logs(task, 3000)
    fitted = fit_exactly(data, targets_of({"own": task.behaviour}, data), Settings(discount=0.9, exact=True))
    values = estimate(fitted)
    rewards = float(data.reward.min()), float(data.reward.max())

    def verdict(shift: float) -> Diagnosis:
        moved = values | {"dr": Values(values["dr"].point + shift, values["dr"].replicates + shift)}
        return diagnose(fitted, moved, np.zeros(1), rewards, 1.0)[0]

    assert verdict(0.0).verdict == Verdict.TRUSTED
    beyond = verdict(rewards[1] - rewards[0] + 1.0)
    assert beyond.verdict == Verdict.REFUSED
    assert "impossible for these rewards" in " ".join(map(str, beyond.reasons))
    # one that is beyond by less than it is uncertain is doubtful, not refused
    wide = values["dr"].point + (rewards[1] - rewards[0]) * np.random.default_rng(0).normal(size=(500, 1))
    point = np.array([rewards[1] + 0.1 * (rewards[1] - rewards[0])])
    unsure = diagnose(fitted, values | {"dr": Values(point, wide)}, np.zeros(1), rewards, 1e3, None)[0]
    assert unsure.verdict == Verdict.DOUBTFUL


def test_too_few_episodes_are_refused(task: Task) -> None:
    with pytest.raises(SappError, match="one episode is logged"):
        evaluate_offline([table_policy("x", task.behaviour)], logs(task, 1), Settings(discount=0.9, exact=True))
    report = evaluate_offline([table_policy("x", task.behaviour)], logs(task, 3), Settings(discount=0.9, exact=True))
    assert report.diagnoses[0].verdict == Verdict.REFUSED
