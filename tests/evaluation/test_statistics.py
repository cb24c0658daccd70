import numpy as np
import pytest
from scipy import stats

from sapp.core.errors import SappError
from sapp.core.statistics import iqm_statistic, mean_of_groups, seeds_and_episodes
from sapp.evaluation import bootstrap_interval, iqm, mean, paired_difference, standard_error

SAMPLE = np.random.default_rng(0).gamma(2.0, 100.0, 60)


def test_known_values():
    assert mean([[1, 2], [3, 6]]) == 3
    assert standard_error([1, 2, 3, 4]) == pytest.approx(np.std([1, 2, 3, 4], ddof=1) / 2)
    assert standard_error(SAMPLE) == pytest.approx(stats.sem(SAMPLE))
    assert np.isnan(standard_error([5.0]))
    assert iqm([0, 1, 2, 3, 4, 5, 6, 1000]) == pytest.approx(3.5)
    assert iqm(SAMPLE) == pytest.approx(stats.trim_mean(SAMPLE, 0.25))


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_interval_is_scipys(confidence):
    expected = stats.bootstrap(
        (SAMPLE,), np.mean, n_resamples=20_000, method="percentile", confidence_level=confidence, rng=1
    ).confidence_interval
    found = bootstrap_interval(SAMPLE, seed=0, confidence=confidence, resamples=20_000)
    assert found.estimate == pytest.approx(SAMPLE.mean())
    width = expected.high - expected.low
    assert found.low == pytest.approx(expected.low, abs=0.03 * width)
    assert found.high == pytest.approx(expected.high, abs=0.03 * width)


def test_the_interquartile_mean_has_an_interval_too():
    found = bootstrap_interval(SAMPLE, seed=0, statistic=iqm_statistic)
    expected = stats.bootstrap(
        (SAMPLE,), lambda values, axis: stats.trim_mean(values, 0.25, axis=axis), method="percentile", rng=1
    ).confidence_interval
    assert found.estimate == pytest.approx(iqm(SAMPLE))
    assert found.low == pytest.approx(expected.low, abs=0.05 * (expected.high - expected.low))


def test_the_seed_decides():
    assert bootstrap_interval(SAMPLE, seed=4) == bootstrap_interval(SAMPLE, seed=4)
    assert bootstrap_interval(SAMPLE, seed=4) != bootstrap_interval(SAMPLE, seed=5)


def test_coverage():
    rng = np.random.default_rng(0)
    hits = 0
    for seed in range(300):
        interval = bootstrap_interval(rng.normal(3, 1, 40), seed, confidence=0.9, resamples=500)
        hits += interval.low <= 3 <= interval.high
    assert 0.83 < hits / 300 < 0.95


def test_strata_keep_their_sizes():
    """Between-group spread must not enter: groups far apart, no spread within."""
    values = np.repeat([0.0, 100.0, 1000.0], [5, 3, 2])
    labels = np.repeat(["a", "b", "c"], [5, 3, 2])
    assert bootstrap_interval(values, 0, strata=labels) == pytest.approx((230, 230, 230))
    assert bootstrap_interval(values, 0).high > 300
    spread = values + np.random.default_rng(0).normal(size=10)
    interval = bootstrap_interval(spread, 0, strata=labels)
    assert interval.high - interval.low < 2


def test_pairs_are_not_split():
    start = np.random.default_rng(0).normal(0, 100, 50)
    gain = np.random.default_rng(1).normal(2, 1, 50)
    interval = paired_difference(start + gain, start, seed=0)
    assert interval.estimate == pytest.approx(gain.mean())
    expected = bootstrap_interval(gain, seed=0)
    assert interval == pytest.approx(expected)
    assert 0 < interval.low < interval.high < 4


def test_a_large_sample_is_resampled_in_parts():
    values = np.random.default_rng(0).normal(size=3_000)
    found = bootstrap_interval(values, seed=0, resamples=2000)
    assert found.high - found.low == pytest.approx(2 * 1.96 * standard_error(values), rel=0.1)


def test_bad_requests():
    with pytest.raises(SappError, match="no values"):
        mean([])
    with pytest.raises(SappError, match="value 1 is not finite"):
        bootstrap_interval([1.0, np.nan], 0)
    with pytest.raises(SappError, match="one label per value"):
        bootstrap_interval([1.0, 2.0], 0, strata=[1])
    with pytest.raises(SappError, match="confidence"):
        bootstrap_interval([1.0, 2.0], 0, confidence=95)
    with pytest.raises(SappError, match="shapes"):
        paired_difference([1.0], [1.0, 2.0], 0)


def test_interval_is_about_seeds_not_only_episodes():
    """Two policies, each of which always scores the same: thousands of episodes tell no more than two seeds."""
    values = np.repeat([[0.0], [10.0]], 1000, axis=1)
    interval = seeds_and_episodes(values, seed=0)
    assert (interval.estimate, interval.low, interval.high) == (5.0, 0.0, 10.0)
    same = seeds_and_episodes(np.ones((3, 5)), seed=0)
    assert (same.low, same.high) == (1.0, 1.0)
    with pytest.raises(SappError, match="seeds, episodes"):
        seeds_and_episodes(np.ones(3), seed=0)


def test_a_mean_of_groups_has_students_and_welchs_intervals():
    """One group is Student's t, two with opposite signs are half of Welch's difference."""
    first, second = SAMPLE[:7], SAMPLE[7:12] * 3.0
    one = mean_of_groups([first], confidence=0.9)
    expected = stats.ttest_1samp(first, 0.0).confidence_interval(0.9)
    np.testing.assert_allclose(one, (first.mean(), expected.low, expected.high))
    welch = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    np.testing.assert_allclose(mean_of_groups([first, -second])[1:], np.array([welch.low, welch.high]) / 2)
    assert mean_of_groups([[1.0, 1.0], [3.0, 3.0]]) == (2.0, 2.0, 2.0)
    with pytest.raises(SappError, match="at least two values"):
        mean_of_groups([[1.0, 2.0], [1.0]])
