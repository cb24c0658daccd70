"""The baselines' grid declares what the page compares, and the page says what the rows say."""

from __future__ import annotations

import numpy as np

from sapp.experiments.grid import scaled
from sapp.weights import Control
from studies.baselines.grid import ALGORITHMS, STATE_AWARE, grid
from studies.baselines.tables import DATASETS, METHODS, PUBLISHED, of, scores, state_aware


def test_every_state_aware_variant_has_its_controls_and_shares_its_beginning() -> None:
    declared = grid(scaled("paper"))
    assert declared.datasets == ("halfcheetah-medium", "hopper-medium", "walker2d-medium")
    assert declared.variants[: len(ALGORITHMS)] == ALGORITHMS
    for name, family in zip(STATE_AWARE, declared.families[len(ALGORITHMS) :], strict=True):
        made = {each: make("hopper-medium") for each, make in family.variants.items()}
        assert len(made) == 4
        assert all(isinstance(each.weights, Control) for each in made.values())
        assert len({type(each) for each in made.values()}) == 1
        phases = family.phases(declared.scale, declared.datasets)
        clone = made[f"sa-{name}"].preparation
        assert [phase.steps for phase in phases] == [*([clone] if clone else []), 20_000, 100_000, 1_000_000]


def test_a_learning_rate_that_decays_does_so_over_the_scales_length() -> None:
    declared = grid(scaled("small"))
    assert declared.families[ALGORITHMS.index("iql")].variants["iql"]("hopper-medium").decay_steps == 200_000


def test_what_the_page_says_of_published_scores_follows_from_its_rows() -> None:
    made = scores()
    for name in ("TD3+BC", "IQL", "ReBRAC", "Fisher-BRC"):
        method, run = METHODS[name]
        for dataset, published in zip(DATASETS, PUBLISHED[name][1:], strict=True):
            steps = of(made, method, run, dataset)
            assert abs(np.mean(list(steps[max(steps)].values())) - float(published)) < 4, (name, dataset)
    assert "and none after it" in state_aware(made)


def test_a_longer_run_takes_the_place_of_a_shorter_one() -> None:
    assert max(of(scores(), "bc", "bc+bcq", "hopper-medium-v2")) == 200_000
    assert max(of(scores(), "bc", "bc+bcq", "walker2d-medium-v2")) == 60_000
