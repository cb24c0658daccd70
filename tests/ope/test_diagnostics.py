"""Each reason has its own severity and says what to do; the verdict is the worst of them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ward_logs import logs, targets_of

from sapp.core.errors import SappError
from sapp.core.statistics import Interval
from sapp.data import Dataset
from sapp.ope.diagnostics import (
    Diagnosis,
    Limits,
    Measures,
    Reason,
    Verdict,
    _health,
    diagnose,
    explain,
    reasons_of,
    verdict_of,
)
from sapp.ope.dice import RatioScale
from sapp.ope.doubly_robust import Values, estimate
from sapp.ope.estimators import Settings
from sapp.ope.exact import fit_exactly
from sapp.ope.offline import evaluate_offline
from sapp.ope.selection import select
from sapp.ope.targets import from_function
from sapp.tabular.estimator_logs import table_policy
from sapp.tabular.tasks import Task

GOOD = Measures(
    episodes=100, off_data=0.0, disagreement=1.0, difference=0.1, drift=0.1, outside=0.0, horizons=50.0, unhealthy="",
    scale=1.0, possible=(0.0, 1.0), steps=5_000,
)  # fmt: skip
INSIDE = Interval(0.5, 0.4, 0.6)


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


def test_of_zeta_the_running_mean_counts_not_the_last_one(task: Task) -> None:
    """With a rate of 0 the mean is still ζ as it began, the behaviour's own, however far the last ζ has gone."""
    data = logs(task, 300)
    settings = Settings(discount=0.9, steps=40, bags=6, hidden=(8,), batch_size=32, average_rate=0.0, zeta_lr=0.1)
    found = evaluate_offline([table_policy("behaviour", task.behaviour)], data, settings).diagnoses[0]
    assert found.zeta_mean == pytest.approx(float(RatioScale.of(data, 0.9).mass), rel=0.05)


def test_drift_is_over_the_last_two_of_ten_looks(task: Task) -> None:
    data = logs(task, 100)
    fitted = fit_exactly(data, targets_of({"own": task.behaviour}, data), Settings(discount=0.9, exact=True))

    def drift(looks: slice | int) -> float:
        history = fitted.history.copy()
        history[looks] += 1.0
        moved = replace(fitted, history=history)
        return diagnose(moved, estimate(fitted), np.zeros(1), (0.0, 1.0), 1.0)[0].drift

    assert drift(slice(None)) == drift(slice(-3)) == drift(-2) == 0.0
    assert drift(-3) == drift(-1) > 0.0


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


def test_nothing_speaks_against_a_good_estimate() -> None:
    assert reasons_of(GOOD, INSIDE) == []
    assert verdict_of([]) is Verdict.TRUSTED


@pytest.mark.parametrize(
    ("change", "interval", "verdict", "what", "do"),
    [
        ({"episodes": 29}, INSIDE, "doubtful", "only 29 episodes", "log at least 30"),
        ({"episodes": 3}, INSIDE, "refused", "only 3 episodes", "log at least 30"),
        ({"off_data": 0.2}, INSIDE, "doubtful", "20% of the policy's actions", "a larger --alpha"),
        ({"off_data": 0.7}, INSIDE, "refused", "70% of the policy's actions", "log such actions"),
        ({"outside": 0.1}, INSIDE, "doubtful", "10% of FQE's values", "more --fit-steps"),
        ({"outside": 0.3}, INSIDE, "refused", "impossible for these rewards", "check that terminals are marked"),
        ({"drift": 2.0}, INSIDE, "doubtful", "moved by 2.0 interval widths", "more than --fit-steps 5000"),
        ({"drift": float("inf")}, INSIDE, "refused", "has not settled", "--fit-steps"),
        ({"horizons": 4.0}, INSIDE, "doubtful", "4.0 times the horizon", "at least 5 times"),
        ({"horizons": 0.4}, INSIDE, "refused", "5,000 steps", "a smaller --discount"),
        ({}, Interval(0.5, 0.0, 1.5), "doubtful", "1.5 times as wide", "more --bags"),
        ({}, Interval(0.5, -2.0, 2.0), "refused", "4.0 times as wide", "more episodes"),
        ({}, Interval(1.1, 0.9, 1.3), "doubtful", "1.1 per step, is impossible", "more fit steps"),
        ({}, Interval(1.3, 1.2, 1.4), "refused", "1.3 per step, is impossible", "more logs of such policies"),
        ({"unhealthy": "it diverged"}, INSIDE, "doubtful", "cannot check FQE (it diverged)", "FQE stands alone"),
        ({"disagreement": 5.0, "difference": 0.3}, INSIDE, "doubtful", "disagree by 5.0", "only playing can"),
    ],
)
def test_each_reason_has_its_own_severity_and_a_remedy(
    change: dict[str, float | str], interval: Interval, verdict: str, what: str, do: str
) -> None:
    (reason,) = reasons_of(replace(GOOD, **change), interval)  # type: ignore[arg-type]
    assert reason.verdict == verdict
    assert what in reason.what
    assert do in reason.do


def test_a_disagreement_within_the_scale_of_returns_is_none() -> None:
    assert reasons_of(replace(GOOD, disagreement=5.0, difference=0.2), INSIDE) == []
    (reason,) = reasons_of(replace(GOOD, disagreement=5.0, difference=0.2), INSIDE, Limits(width=(0.1, 3.0)))
    assert "as wide" in reason.what


def test_only_what_refuses_is_called_refused() -> None:
    reasons = reasons_of(replace(GOOD, episodes=29, off_data=0.7), INSIDE)
    assert verdict_of(reasons) is Verdict.REFUSED
    diagnosis = Diagnosis(50.0, 12.0, 29, 1.0, 0.7, 1.0, 0.1, 0.0, 50.0, True, "fqe", verdict_of(reasons), reasons)
    lines = explain(diagnosis)
    assert lines[0] == "effective sample: 12 of 29 episodes (41 %), 50 steps"
    assert [line.split(":")[0] for line in lines[-2:]] == ["doubtful", "refused"]
    assert lines[-2].endswith(": log at least 30")
    assert str(Reason(Verdict.DOUBTFUL, "a", "b")) == "a: b"


@pytest.mark.parametrize(
    ("zeta", "effective", "terminals", "mass", "words"),
    [
        (1.25, 50.0, False, 1.0, ""), (1.26, 50.0, True, 1.0, "which can be at most 1"),
        (np.nan, 50.0, True, 1.0, "which can be at most 1"),
        (0.75, 50.0, False, 1.0, ""), (0.74, 50.0, False, 1.0, "which should be 1"), (0.74, 50.0, True, 1.0, ""),
        (0.1, 50.0, True, 0.4, ""), (0.09, 50.0, True, 0.4, "where the logs' own is 0.4"),
        (1.0, Limits().effective_episodes, True, 1.0, ""),
        (1.0, Limits().effective_episodes - 0.1, True, 1.0, "episodes' worth of data"),
    ],
)  # fmt: skip
def test_ratios_are_healthy_within_limits(
    zeta: float, effective: float, terminals: bool, mass: float, words: str
) -> None:
    fitted: Any = SimpleNamespace(dice_alive=np.array([[True, True], [True, False]]), terminals=terminals, mass=mass)
    healthy, why = _health(fitted, 0, effective, zeta, Limits())
    assert healthy == (not words)
    assert why.endswith(words)
    assert _health(fitted, 1, effective, zeta, Limits()) == (False, "its ratios diverged")
