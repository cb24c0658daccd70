"""The grid of estimators and controls: which variants it has, its mixtures, its page, and one tiny run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sapp.core.comparisons import holm
from sapp.core.statistics import average
from sapp.experiments.datasets import load_dataset
from sapp.experiments.driver import run_experiment
from sapp.experiments.grid import scaled
from sapp.experiments.store import Store
from sapp.report.sources import read
from sapp.weights import Control, RescaledWeights, control
from studies.skewed_coverage import grid as study
from studies.skewed_coverage.grid import ESTIMATORS, MEAN, SHARE, grid, mix
from studies.skewed_coverage.tables import gaps

STUDY = Path(__file__).parents[2] / "studies" / "skewed_coverage"


def test_every_estimator_has_every_control_at_one_mean_and_what_none_changes_runs_once() -> None:
    declared = grid(scaled("paper"))
    assert len(declared.variants) == len(set(declared.variants)) == 3 * len(ESTIMATORS) + 2
    expected = {"CQL": "uniform", "random": "random"} | dict.fromkeys(ESTIMATORS, "real")
    for family in declared.families:
        for name, make in family.variants.items():
            weights = make("walker2d-medium").weights
            assert isinstance(weights, RescaledWeights)
            assert weights.mean == MEAN
            assert isinstance(weights.of, Control)
            assert weights.of.kind == control(weights.of.of, expected.get(name, name.split("-")[-1])).kind
            assert type(weights.of.of) is ESTIMATORS[family.name]
            assert [float(bound) for bound in weights.of.bounds()] == [0.5, 1.5]


def test_a_mixture_has_the_better_policys_share_in_whole_episodes() -> None:
    worse, better = load_dataset("point-120"), load_dataset("point-60")
    mixed = mix(worse, better, "mixed", 1_500)
    assert mixed.name == "mixed"
    bad = int(np.searchsorted(worse.episode_ends + 1, (1 - SHARE) * 1_500)) + 1
    rows = int(worse.episode_ends[bad - 1]) + 1
    assert (1 - SHARE) * 1_500 <= rows < (1 - SHARE) * 1_500 + worse.episode_lengths.max()
    np.testing.assert_array_equal(mixed.observation[:rows], worse.observation[:rows])
    np.testing.assert_array_equal(mixed.observation[rows:], better.observation[: len(mixed) - rows])
    assert SHARE * 1_500 <= len(mixed) - rows < SHARE * 1_500 + better.episode_lengths.max()
    assert (mixed.terminal | mixed.timeout)[-1]


def test_mixtures_are_made_of_the_two_datasets_of_their_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def some(name: str, folder: Path | None) -> object:
        asked.append(name)
        return load_dataset("point-60")

    monkeypatch.setattr(study, "load_dataset", some)
    assert study.load("hopper-random95-medium5", None).name == "hopper-random95-medium5"
    assert asked == ["hopper-random", "hopper-medium"]


def test_what_the_page_says_follows_from_its_rows() -> None:
    """Nothing at the end; late, one of twelve means leaves out 0 clearly, and not with Holm's correction."""
    (experiment,) = read([STUDY / "rows" / "scores.csv"])
    assert len(experiment.members) == 275
    final, late = ({key: average(each) for key, each in gaps(experiment, share).items()} for share in (None, 0.5))
    assert all(each.p > 0.05 for each in final.values())
    assert min(holm([each.p for each in late.values()])) > 0.1
    lowest = min(late, key=lambda key: late[key].p)
    assert lowest == ("occupancy", "shuffled")
    assert late[lowest].p == pytest.approx(0.011, abs=5e-4)


@pytest.mark.slow
def test_a_tiny_run_of_all_variants(tmp_path: Path) -> None:
    scale = replace(scaled("smoke", steps=4, seeds=(0,)), pretrain=2, ratio=2)
    tiny = grid(scale).only(["point-60"], ["CQL", "dualdice-frozen", "occupancy", "infonce-shuffled"])
    run_experiment(tiny, tmp_path, progress=False, say=lambda _: None)
    with Store(tmp_path / "results.sqlite") as store:
        assert {row["variant"] for row in store.rows("cells")} == set(tiny.variants)
