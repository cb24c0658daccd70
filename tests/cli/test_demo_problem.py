"""The demonstration's problems: regret in percent, strengths that were tuned elsewhere, and the answer by the exact
solution."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from sapp.cli.demo_problem import ALPHAS, CASES, EVEN, FIRST_SEED, UNEVEN, exact_regrets, learning_worlds, regrets
from sapp.core.statistics import student
from sapp.tabular.uneven_coverage import make_world
from studies.uneven_coverage import tuning

ROOT = Path(__file__).parents[2]


def test_regret_is_0_for_the_best_policy_and_100_for_the_mean_action() -> None:
    world = make_world(CASES[EVEN], 1)
    at_random = float((world.occupancy * (world.reward.max(1) - world.reward.mean(1))).sum())
    np.testing.assert_allclose(regrets(np.array([world.lost(world.reward), at_random]), [world, world]), [0.0, 100.0])


def test_the_entrance_is_half_of_the_value_and_one_row_in_25_or_in_2() -> None:
    for case, share in ((UNEVEN, 1 / 25), (EVEN, 1 / 2)):
        world = make_world(CASES[case], 0)
        assert world.occupancy[:40].sum() == pytest.approx(0.5)
        assert world.share[:40].sum() == pytest.approx(share)


def test_exactly_the_state_helps_where_coverage_is_uneven_and_only_there() -> None:
    uneven, even = exact_regrets(UNEVEN, 40), exact_regrets(EVEN, 40)
    assert student(uneven["SA-CQL"] - uneven["CQL"]).interval().high < 0.0
    assert student(uneven["shuffled"] - uneven["CQL"]).interval().high > -0.5
    assert student(even["SA-CQL"] - even["CQL"]).interval().high > 0.0


def test_strengths_are_those_of_the_rows_and_of_other_worlds() -> None:
    with (ROOT / "studies/uneven_coverage/rows/demo_alphas.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert tuning.best(rows) == ALPHAS
    seeds = {int(row["world"].rsplit("-", 1)[1]) for row in rows}
    assert max(seeds) < FIRST_SEED
    assert set(learning_worlds(3)) == {"uneven-0", "uneven-1", "uneven-2", "even-0", "even-1"}
