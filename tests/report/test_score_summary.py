"""Numbers of a report by hand: pairs by seed and start state, families, averages, limits."""

from __future__ import annotations

import numpy as np
import pytest
from recorded import experiment, member
from scipy import stats

from sapp.core.statistics import average, student
from sapp.report.score_summary import aggregates, beyond_limit, cells, differences, mean_differences, ratio_quality


def gap(*members):
    found = experiment(*members)
    return differences(found, cells(found))[0]


def test_seeds_are_paired_by_themselves_where_each_side_lacks_some() -> None:
    """SA-CQL's seeds 0, 1, 2 against CQL's 1, 2, 3: over 1 and 2, and not by position (which would be −9)."""
    ours = [member("SA-CQL", seed=seed, scores=(10.0 * seed + 1,)) for seed in (0, 1, 2)]
    theirs = [member("CQL", seed=seed, scores=(10.0 * seed,)) for seed in (3, 1, 2)]
    for members in ((*ours, *theirs), (*theirs, *reversed(ours))):
        found = gap(*members)
        assert tuple(found.corrected.raw) == (1.0, 1.0, 1.0)
        assert found.basis == "2 pairs"


def test_over_datasets_too_with_shuffled_and_missing_seeds() -> None:
    rng = np.random.default_rng(0)
    members, expected = [], []
    for dataset, shared in (("hopper-medium", (1, 2)), ("walker2d-medium", (0, 1, 2))):
        scores = {(v, s): rng.normal(50, 10) for v in ("SA-CQL", "CQL") for s in range(4)}
        seeds = {"SA-CQL": (0, 1, 2), "CQL": (1, 2, 3) if len(shared) == 2 else (2, 0, 1)}
        members += [member(v, dataset, s, (scores[v, s],)) for v, own in seeds.items() for s in own]
        expected.append(student([scores["SA-CQL", s] - scores["CQL", s] for s in shared]))
    order = [members[i] for i in rng.permutation(len(members))]
    found = experiment(*order)
    (mean,) = mean_differences(found, differences(found, cells(found)))
    np.testing.assert_allclose(mean.corrected.raw, average(expected).interval())
    assert (mean.datasets, mean.comparison.pairs, mean.basis) == (2, 5, "5 pairs")


def test_without_two_shared_seeds_groups_are_compared_and_it_is_said() -> None:
    ours = [member("SA-CQL", seed=seed, scores=(value,)) for seed, value in enumerate((60.0, 64.0, 71.0))]
    theirs = [member("CQL", seed=seed, scores=(value,)) for seed, value in ((2, 50.0), (3, 58.0))]
    found = gap(*ours, *theirs)
    expected = stats.ttest_ind((60.0, 64.0, 71.0), (50.0, 58.0), equal_var=False)
    assert found.corrected.p == pytest.approx(expected.pvalue)
    assert found.basis == "unpaired, 3 and 2 seeds"


def test_start_states_that_one_side_lacks_are_left_out_only_if_they_are_the_same_states() -> None:
    ours = [member("SA-CQL", seed=seed, scores={100: {0: 5.0, 2: 9.0, 3: 100.0}}) for seed in (0, 1)]
    theirs = [member("CQL", seed=seed, scores={100: {3: 90.0, 1: 7.0, 0: 1.0}}) for seed in (0, 1)]
    assert gap(*ours, *theirs).corrected.raw.estimate == pytest.approx(7.0)  # episodes 0 and 3: 4 and 10
    elsewhere = [member("CQL", seed=each.seed, scores=each.evaluations, starts="others") for each in theirs]
    assert gap(*ours, *elsewhere).corrected.raw.estimate == pytest.approx(38.0 - 98.0 / 3)


def test_verdicts_go_by_holm_and_say_what_would_hold_alone() -> None:
    rng = np.random.default_rng(1)
    members = [member("SA-CQL", seed=seed, scores=(seed * 10.0,)) for seed in range(4)]
    for name, lead in (("far", 50.0), ("near", 2.0), *((f"same{i}", 0.0) for i in range(4))):
        noise = rng.permutation([-1.0, -0.3, 0.3, 1.0])
        members += [member(name, seed=seed, scores=(seed * 10.0 - lead + noise[seed],)) for seed in range(4)]
    found = experiment(*members)
    verdicts = {each.other: each for each in differences(found, cells(found))}
    assert verdicts["far"].verdict == "higher"
    assert verdicts["near"].verdict == "higher only before correction"
    assert verdicts["same0"].verdict == "no significant difference"
    assert {each.corrected.looked_at for each in verdicts.values()} == {6}


def test_who_lacks_a_dataset_has_no_average_and_no_mean_difference() -> None:
    levels = {"SA-CQL": 60.0, "CQL": 50.0}
    members = [
        member(v, d, s, (level + s,)) for v, level in levels.items() for d in ("a-x", "b-x", "c-x") for s in (0, 1)
    ]
    found = experiment(*members, *(member("half", d, seed, (1.0,)) for d in ("a-x", "b-x") for seed in (0, 1)))
    scored = cells(found)
    first, second = aggregates(found, scored)
    assert (first.variant, second.variant, first.improvement) == ("SA-CQL", "CQL", None)
    assert second.improvement.estimate == 1.0  # that the focus beats it
    gaps = differences(found, scored)
    assert [each.other for each in mean_differences(found, gaps)] == ["CQL"]
    assert {each.other for each in gaps} == {"CQL", "half"}


def test_final_is_at_the_last_step_that_all_have() -> None:
    found = cells(
        experiment(
            member("SA-CQL", scores={100: (1.0, 3.0), 200: (5.0,), 300: (9.0,)}), member("CQL", scores={200: (4.0,)})
        )
    )
    ends = [(each.variant, each.step, each.final.estimate) for each in found]
    assert ends == [("SA-CQL", 200, 5.0), ("CQL", 200, 4.0)]
    assert (found[0].recent, found[0].best, found[0].best_step) == (3.5, 5.0, 200)
    assert not found[0].final.known


def test_values_beyond_their_limit_are_found_on_either_side() -> None:
    limit = [(step, 10.0) for step in (1, 2, 3, 4)]
    values = [(1, 5.0), (2, 11.0), (3, 30.0), (4, 9.0)]
    high = member(seed=0, metrics={"critic/value": values, "critic/value_limit": limit})
    low = member(seed=1, metrics={"critic/value": [(1, 5.0), (4, -12.0)], "critic/value_limit": limit})
    fine = member(seed=2, metrics={"critic/value": [(1, 10.0)], "critic/value_limit": limit})
    found = beyond_limit(experiment(high, low, fine, member(seed=3, metrics={"critic/value": [(1, 1e9)]})))
    told = [(each.seed, each.first, each.share, each.value, each.limit) for each in found]
    assert told == [(0, 2, 0.5, 30.0, 10.0), (1, 4, 0.5, -12.0, 10.0)]


def test_quality_of_ratios_is_nan_where_one_is_constant() -> None:
    scores = {1: (1.0,), 2: (3.0,), 3: (2.0,)}
    both = {"ratio/reward": [(1, 0.1), (2, 0.2), (3, 0.3)], "ratio/reward_normalised": [(1, 0.1), (2, 0.3), (3, 0.2)]}
    moving = member(scores=scores, metrics=both)
    still = member(seed=1, scores=scores, metrics={"ratio/reward": [(1, 0.1), (2, 0.1), (3, 0.1)]})
    first, second = ratio_quality(experiment(moving, still))
    assert (first.correlation, first.points) == (pytest.approx(0.5), 3)
    assert first.normalised == pytest.approx(1.0)
    assert np.isnan(second.correlation)
    assert second.normalised is None
