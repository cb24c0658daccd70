"""Worlds of uneven coverage: their logs, their ratio, and what a wrong choice loses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sapp.tabular.uneven_coverage import Setting, make_world

SETTING = Setting(episodes=60, length=20)


def test_a_world_counts_its_own_logs_and_knows_its_ratio() -> None:
    world = make_world(SETTING, 3)
    state = world.data.observation.argmax(1)
    assert len(world.data) == 60 * 20
    assert world.visits.sum() == len(world.data)
    np.testing.assert_array_equal(world.visits.sum(1), np.bincount(state, minlength=20))
    for s, a in ((0, 1), (7, 4), (15, 2)):
        rows = (state == s) & (world.data.action == a)
        if rows.any():
            assert world.mean[s, a] == pytest.approx(world.data.reward[rows].mean(), rel=1e-5)
    assert world.occupancy.sum() == pytest.approx(1.0)
    assert (world.share * world.ratio).sum() == pytest.approx(1.0)
    # half of the discounted visits are to the entrance, one row in twenty is
    assert (world.share[:10]).sum() == pytest.approx(1 / 20)
    starts = np.arange(len(world.data)) % 20 == 0
    assert set(state[starts]) == set(range(10))
    assert state[~starts].min() >= 10


def test_the_behaviour_prefers_good_actions_if_it_has_skill() -> None:
    def preference(skill: float) -> float:
        worlds = [make_world(replace(SETTING, length=200, skill=skill), seed) for seed in range(3)]
        return float(np.mean([np.corrcoef(w.reward[10:].ravel(), w.visits[10:].ravel())[0, 1] for w in worlds]))

    assert preference(3.0) > 0.6
    assert abs(preference(0.0)) < 0.2


def test_what_is_lost_is_zero_for_the_truth_and_the_gap_for_one_wrong_choice() -> None:
    world = make_world(SETTING, 0)
    assert world.lost(world.reward) == 0.0
    wrong = world.reward.copy()
    worst = int(wrong[12].argmin())
    wrong[12, worst] = 100.0
    gap = world.reward[12].max() - world.reward[12, worst]
    assert world.lost(wrong) == pytest.approx(0.5 / 10 * gap)
