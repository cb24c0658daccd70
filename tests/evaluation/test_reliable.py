"""Statistics over tasks against independent computations by brute force and by SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from sapp.core.comparisons import (
    iqm_over_tasks,
    mean_over_tasks,
    paired_over_tasks,
    performance_profile,
    probability_of_improvement,
    spearman,
)
from sapp.core.errors import SappError

RNG = np.random.default_rng(3)
ONE = {"a": RNG.normal(50, 10, 5), "b": RNG.normal(20, 5, 4)}
TWO = {"a": RNG.normal(45, 10, 5), "b": RNG.normal(21, 5, 4)}


def test_iqm_is_scipys_trimmed_mean_over_all_runs() -> None:
    everything = np.concatenate(list(ONE.values()))
    assert iqm_over_tasks(ONE).estimate == pytest.approx(stats.trim_mean(everything, 0.25))


def test_mean_weighs_tasks_alike_however_many_seeds_they_have() -> None:
    assert mean_over_tasks(ONE).estimate == pytest.approx((ONE["a"].mean() + ONE["b"].mean()) / 2)


def test_bootstrap_of_two_seeds_by_enumeration() -> None:
    """With two seeds in each of two tasks all 16 resamples can be listed; the quantiles must be theirs."""
    scores = {"a": np.array([0.0, 8.0]), "b": np.array([1.0, 3.0])}
    exact = [
        (np.mean(first) + np.mean(second)) / 2
        for first in itertools.product(scores["a"], repeat=2)
        for second in itertools.product(scores["b"], repeat=2)
    ]
    interval = mean_over_tasks(scores, confidence=0.8, resamples=40_000)
    low, high = np.quantile(np.repeat(exact, 2_500), (0.1, 0.9))
    assert interval.low == pytest.approx(low, abs=1e-9)
    assert interval.high == pytest.approx(high, abs=1e-9)


def test_bootstrap_agrees_with_scipys_where_there_is_one_task() -> None:
    values = RNG.normal(size=30)
    mine = mean_over_tasks({"only": values}, resamples=20_000)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", random_state=np.random.default_rng(0)
    ).confidence_interval
    assert mine.low == pytest.approx(theirs.low, abs=0.02)
    assert mine.high == pytest.approx(theirs.high, abs=0.02)


def test_the_same_seed_gives_the_same_interval_and_another_one_another() -> None:
    assert iqm_over_tasks(ONE, seed=1) == iqm_over_tasks(ONE, seed=1)
    assert iqm_over_tasks(ONE, seed=1) != iqm_over_tasks(ONE, seed=2)


def test_probability_of_improvement_is_mann_whitneys_by_task() -> None:
    expected = np.mean([stats.mannwhitneyu(ONE[t], TWO[t]).statistic / (len(ONE[t]) * len(TWO[t])) for t in ONE])
    found = probability_of_improvement(ONE, TWO)
    assert found.estimate == pytest.approx(expected)
    assert 0 <= found.low <= found.estimate <= found.high <= 1


def test_ties_count_half() -> None:
    assert probability_of_improvement({"a": [1.0, 2.0]}, {"a": [1.0, 2.0]}).estimate == 0.5


def test_pairs_are_never_split() -> None:
    """A constant lead of 1 has no spread at all once seeds are paired, however much the seeds differ."""
    second = {name: values - 1.0 for name, values in ONE.items()}
    found = paired_over_tasks(ONE, second)
    assert (found.estimate, found.low, found.high) == pytest.approx((1.0, 1.0, 1.0))
    gap = paired_over_tasks(ONE, TWO).estimate
    assert gap == pytest.approx(np.mean([(ONE[t] - TWO[t]).mean() for t in ONE]))


def test_profile_counts_runs_above_each_threshold() -> None:
    points = np.linspace(0, 80, 9)
    found = performance_profile(ONE, points)
    for point, share in zip(points, found.share, strict=True):
        assert share == pytest.approx(
            np.mean([sum(v > point for v in values) / len(values) for values in ONE.values()])
        )
    assert (found.low <= found.share + 1e-12).all()
    assert (found.high >= found.share - 1e-12).all()
    assert (np.diff(found.share) <= 0).all()


def test_rank_correlation_is_scipys() -> None:
    first, second = RNG.integers(0, 6, 20), RNG.normal(size=20)
    assert spearman(first, second) == pytest.approx(stats.spearmanr(first, second).statistic)
    assert np.isnan(spearman([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mean_over_tasks({}), "no tasks"),
        (lambda: mean_over_tasks({"a": []}), "a: scores have shape"),
        (lambda: mean_over_tasks({"a": [1.0, np.nan]}), "seed 1 is not finite"),
        (lambda: paired_over_tasks({"a": [1.0]}, {"a": [1.0, 2.0]}), "same seeds"),
        (lambda: probability_of_improvement({"a": [1.0]}, {"b": [1.0]}), "scored by one method only"),
        (lambda: mean_over_tasks({"a": [1.0]}, confidence=1.5), "between 0 and 1"),
        (lambda: mean_over_tasks({"a": [1.0]}, resamples=0), "at least 1"),
        (lambda: performance_profile({"a": [1.0]}, []), "thresholds"),
    ],
)
def test_bad_input_is_one_clear_line(call, words: str) -> None:
    with pytest.raises(SappError, match=words):
        call()
