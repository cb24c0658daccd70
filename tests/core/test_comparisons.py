"""Comparisons over tasks against SciPy, against brute force, and against simulated truths."""

from __future__ import annotations

import numpy as np
import pytest
from populations import POPULATIONS, covered
from scipy import stats

from sapp.core.comparisons import (
    Comparison,
    alone_only,
    compare,
    family,
    family_told,
    holm,
    iqm_over_tasks,
    mean_over_tasks,
    performance_profile,
    probability_of_improvement,
)
from sapp.core.errors import SappError
from sapp.core.statistics import Estimate, average, iqm, student, wilson

RNG = np.random.default_rng(3)


def by_seed(values) -> dict:
    return dict(enumerate(np.asarray(values, float).tolist()))


def listed(seeds) -> np.ndarray:
    return np.array(list(seeds.values()))


ONE = {"a": by_seed(RNG.normal(50, 10, 5)), "b": by_seed(RNG.normal(20, 5, 4))}
TWO = {"a": by_seed(RNG.normal(45, 10, 5)), "b": by_seed(RNG.normal(21, 5, 4))}


def test_a_shared_seed_is_found_by_itself_not_by_its_place() -> None:
    """Seeds 0, 1, 2 against 1, 2, 3: by position the difference would be −9, over the seeds 1 and 2 it is 1."""
    ours, theirs = {0: 1.0, 1: 11.0, 2: 21.0}, {1: 10.0, 2: 20.0, 3: 30.0}
    found = compare(ours, theirs)
    assert (found.estimate.value, found.pairs, found.paired) == (1.0, 2, True)
    assert found.interval == (1.0, 1.0, 1.0)


def test_the_order_of_seeds_and_tasks_does_not_matter() -> None:
    expected = stats.ttest_rel(listed(ONE["a"]), listed(TWO["a"])).confidence_interval(0.95)
    for _ in range(5):
        mixed = {seed: TWO["a"][seed] for seed in RNG.permutation(5).tolist()}
        found = compare(ONE["a"], mixed)
        assert found.pairs == 5
        np.testing.assert_allclose(found.interval[1:], (expected.low, expected.high))


def test_seeds_that_one_side_lacks_are_in_no_pair() -> None:
    theirs = {seed: value for seed, value in TWO["a"].items() if seed != 2} | {9: 1e6}
    kept = [0, 1, 3, 4]
    found = compare(ONE["a"], theirs)
    assert found.pairs == 4
    assert found.estimate.value == pytest.approx(np.mean([ONE["a"][seed] - TWO["a"][seed] for seed in kept]))


def test_start_states_are_part_of_who_is_paired_with_whom() -> None:
    ours = {(seed, start): seed * 10.0 + start for seed in range(3) for start in range(4)}
    theirs = {(seed, start): value - 2.0 for (seed, start), value in reversed(ours.items()) if start != 1}
    found = compare(ours, theirs)
    assert (found.estimate.value, found.pairs, found.interval.low) == (2.0, 9, 2.0)


def test_without_two_shared_seeds_the_difference_is_welchs_and_says_so() -> None:
    theirs = {seed + 4: value for seed, value in TWO["a"].items()}  # seed 4 alone is shared
    found = compare(ONE["a"], theirs)
    expected = stats.ttest_ind(listed(ONE["a"]), listed(TWO["a"]), equal_var=False).confidence_interval(0.95)
    assert (found.pairs, found.paired) == (1, False)
    np.testing.assert_allclose(found.interval[1:], (expected.low, expected.high))
    assert not compare({0: 1.0}, {0: 2.0}).interval.known


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, float("nan"), 0.6]) == pytest.approx([1.0, float("nan"), 1.0], nan_ok=True)
    assert holm([]) == []


def test_a_familys_interval_excludes_zero_just_where_holms_p_is_below_five_per_cent() -> None:
    both = set()
    for _ in range(200):
        values = RNG.normal(0, 1, 8) * 3.0
        found = family([Comparison(Estimate(float(v), 1.0, 6.0), 3, True) for v in values])
        for each in found:
            rejected = each.holm.low > 0 or each.holm.high < 0
            assert rejected == (each.holm_p < 0.05)
            assert each.looked_at == 8
            assert each.holm.low <= each.raw.low <= each.raw.high <= each.holm.high
            both.add(rejected)
    assert both == {True, False}
    single = family([Comparison(Estimate(2.0, 1.0, 6.0), 3, True), compare({0: 1.0}, {0: 2.0})])
    assert single[0].looked_at == 1
    assert single[0].holm == single[0].raw
    assert not single[1].raw.known


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("name", POPULATIONS)
def test_a_family_of_no_differences_is_wrong_one_time_in_twenty_and_not_one_in_two(name, seeds) -> None:
    """Twelve differences, each of which is 0; together their intervals hold that as often as one of them is to."""
    rng, population = np.random.default_rng(seeds), POPULATIONS[name]
    raw = corrected = whole = 0
    for _ in range(300):
        one, other = population.draw(rng, (2, 12, seeds))
        found = family([compare(by_seed(ours), by_seed(theirs)) for ours, theirs in zip(one, other, strict=True)])
        raw += any(each.p < 0.05 for each in found)
        corrected += any(each.holm_p < 0.05 for each in found)
        whole += all(each.holm.low <= 0 <= each.holm.high for each in found)
    assert raw / 300 > 0.2
    assert corrected / 300 <= 0.09
    assert whole == 300 - corrected


def test_a_family_is_told_with_how_many_were_looked_at() -> None:
    p = [0.001, 0.03, 0.6, float("nan")]
    assert family_told(p) == (
        "Of 3 differences, 2 are significant at the 5 % level before Holm's correction (0.2 expected by chance) and 1 "
        "after it."
    )
    assert family_told([0.5] * 40, "means") == (
        "Of 40 means, none are significant at the 5 % level before Holm's correction (2.0 expected by chance) and none "
        "after it."
    )
    assert alone_only(p) == [False, True, False, False]


def test_iqm_is_scipys_trimmed_mean_over_all_runs() -> None:
    everything = np.concatenate([listed(seeds) for seeds in ONE.values()])
    assert iqm_over_tasks(ONE).estimate == pytest.approx(stats.trim_mean(everything, 0.25))


def test_iqm_of_one_task_has_yuens_interval() -> None:
    """n = 9, two cut at each end: t with h − 1 = 4 degrees, the Winsorised spread over h(h − 1)."""
    values = RNG.normal(50, 10, 9)
    moved = np.clip(values, np.sort(values)[2], np.sort(values)[-3])
    error = np.sqrt(8 * moved.var(ddof=1) / (5 * 4))
    middle, half = stats.trim_mean(values, 0.25), stats.t.ppf(0.975, 4) * error
    np.testing.assert_allclose(iqm_over_tasks({"a": by_seed(values)}), (middle, middle - half, middle + half))
    assert not iqm_over_tasks({"a": {0: 1.0}}).known


def test_mean_weighs_tasks_alike_however_many_seeds_they_have() -> None:
    found = mean_over_tasks(ONE)
    assert found.estimate == pytest.approx((listed(ONE["a"]).mean() + listed(ONE["b"]).mean()) / 2)
    np.testing.assert_allclose(found, average([student(listed(seeds)) for seeds in ONE.values()]).interval())


def test_probability_of_improvement_is_mann_whitneys_by_task() -> None:
    expected = np.mean(
        [stats.mannwhitneyu(listed(ONE[t]), listed(TWO[t])).statistic / (len(ONE[t]) * len(TWO[t])) for t in ONE]
    )
    found = probability_of_improvement(ONE, TWO)
    assert found.estimate == pytest.approx(expected)
    assert 0 <= found.low < found.estimate < found.high <= 1


def test_many_seeds_on_one_task_do_not_make_up_for_few_on_another() -> None:
    """The mean of two shares, of 3 and of 12 trials, varies as a share of 2²/(1/3 + 1/12) = 9.6 trials."""
    one, other = ({"a": by_seed(RNG.normal(0, 1, 3)), "b": by_seed(RNG.normal(0, 1, 12))} for _ in range(2))
    found = probability_of_improvement(one, other)
    assert found == pytest.approx(wilson(found.estimate, 9.6))


def test_ties_count_half_and_a_clean_sweep_of_three_is_no_certainty() -> None:
    assert probability_of_improvement({"a": by_seed([1.0, 2.0])}, {"a": by_seed([1.0, 2.0])}).estimate == 0.5
    sweep = probability_of_improvement({"a": by_seed([5.0, 6.0, 7.0])}, {"a": by_seed([1.0, 2.0, 3.0])})
    assert (sweep.estimate, sweep.high) == (1.0, 1.0)
    assert sweep.low == pytest.approx(0.4385, abs=1e-4)


def test_profile_counts_runs_above_each_threshold() -> None:
    points = np.linspace(0, 80, 9)
    found = performance_profile(ONE, points)
    for point, share in zip(points, found.share, strict=True):
        assert share == pytest.approx(
            np.mean([sum(v > point for v in seeds.values()) / len(seeds) for seeds in ONE.values()])
        )
    assert (found.low <= found.share).all()
    assert (found.high >= found.share).all()
    assert (np.diff(found.share) <= 0).all()


BANDS = {
    ("normal", 1): (0.925, 0.975), ("normal", 6): (0.93, 0.975), ("normal", 18): (0.935, 0.98),
    ("student3", 1): (0.93, 0.99), ("student3", 6): (0.935, 0.99), ("student3", 18): (0.94, 0.99),
    ("collapse", 1): (0.75, 0.9), ("collapse", 6): (0.87, 0.95), ("collapse", 18): (0.92, 0.98),
}  # fmt: skip
"""Coverage of a nominal 95 %, by tasks: where seeds collapse it falls short with one task and hardly with eighteen."""
IQM_BANDS = {"normal": (0.92, 0.999), "student3": (0.92, 0.999), "collapse": (0.89, 0.999)}


@pytest.mark.parametrize(("tasks", "seeds"), [(1, 3), (1, 5), (1, 10), (6, 3), (6, 5), (6, 10), (18, 3)])
@pytest.mark.parametrize("name", POPULATIONS)
def test_intervals_over_tasks_cover_what_they_say(name, tasks, seeds) -> None:
    """Tasks that differ in level and spread."""
    population, trials = POPULATIONS[name], 500
    rng = np.random.default_rng((tasks, seeds))
    level, spread = np.linspace(0, 100, tasks)[:, None], np.linspace(0.3, 1.5, tasks)[:, None]

    def draw(seeds: int, shift: float = 0.0) -> np.ndarray:
        return level + spread * (population.draw(rng, (tasks, seeds)) - shift)

    def scores(values: np.ndarray) -> dict:
        return {str(task): by_seed(seeds) for task, seeds in enumerate(values)}

    many, shifted = draw(3_000), draw(3_000, 8.0)
    wins = np.mean([(one[:, None] > other[None]).mean() for one, other in zip(many, shifted, strict=True)])
    points = np.quantile(many, (0.1, 0.5, 0.9))
    truth = {"mean": (level + spread * population.mean).mean(), "gap": (spread * 8.0).mean(), "iqm": iqm(many)}
    found: dict[str, list] = {"mean": [], "gap": [], "apart": [], "iqm": [], "wins": []}
    share, above = (many[:, :, None] > points).mean((0, 1)), np.zeros(3)
    for _ in range(trials):
        one, other = scores(draw(seeds)), scores(draw(seeds, 8.0))
        unshared = {task: {seed + seeds: value for seed, value in of.items()} for task, of in other.items()}
        found["mean"].append(mean_over_tasks(one))
        found["iqm"].append(iqm_over_tasks(one))
        found["gap"].append(average([compare(one[task], other[task]).estimate for task in one]).interval())
        found["apart"].append(average([compare(one[task], unshared[task]).estimate for task in one]).interval())
        found["wins"].append(probability_of_improvement(one, other))
        profile = performance_profile(one, points)
        above += (profile.low <= share) & (share <= profile.high)
    low, high = BANDS[name, tasks]
    assert low <= covered(found["mean"], truth["mean"]) <= high
    assert IQM_BANDS[name][0] <= covered(found["iqm"], truth["iqm"]) <= IQM_BANDS[name][1]
    assert 0.925 <= covered(found["gap"], truth["gap"]) <= 0.995
    assert 0.925 <= covered(found["apart"], truth["gap"]) <= 0.995
    assert 0.94 <= covered(found["wins"], wins) <= 1.0  # at least as wide as it must be
    assert (above / trials >= (0.88 if tasks == 1 else 0.94)).all()  # Wilson's of few whole runs comes in steps


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mean_over_tasks({}), "no tasks"),
        (lambda: mean_over_tasks({"a": {}}), "a: give one score per seed"),
        (lambda: mean_over_tasks({"a": [1.0]}), "a: give one score per seed"),
        (lambda: mean_over_tasks({"a": {0: 1.0, 1: np.nan}}), "seed 1 is not finite"),
        (lambda: probability_of_improvement({"a": {0: 1.0}}, {"b": {0: 1.0}}), "scored by one method only"),
        (lambda: mean_over_tasks({"a": {0: 1.0}}, confidence=1.5), "between 0 and 1"),
        (lambda: performance_profile({"a": {0: 1.0}}, []), "thresholds"),
    ],
)
def test_bad_input_is_one_clear_line(call, words: str) -> None:
    with pytest.raises(SappError, match=words):
        call()
