"""Logs as counts, and the empirical MDPs that they define."""

from __future__ import annotations

import numpy as np

from sapp.tabular import (
    Log,
    Pessimism,
    Ratio,
    draw_episodes,
    draw_log,
    empirical,
    evaluate,
    garnet,
    penalty,
    policy_ratio,
    uniform_policy,
)
from sapp.tabular.mdp import chain


def test_empirical_mdp_of_a_log_by_hand() -> None:
    counts = np.zeros((3, 2, 3), np.int64)
    counts[0, 0] = 3, 1, 0
    counts[1, 1] = 0, 0, 4
    log = Log(counts, np.array([[2.0, 0], [0, -4], [0, 0]]))
    model = empirical(log, np.array([1.0, 0, 0]), 0.9, unseen_reward=-1)
    np.testing.assert_array_equal(model.transition[0, 0], [0.75, 0.25, 0])
    np.testing.assert_array_equal(model.transition[0, 1], [1, 0, 0])  # never taken: stays
    np.testing.assert_array_equal(model.reward, [[0.5, -1], [-1, -1], [-1, -1]])
    np.testing.assert_array_equal(model.behaviour, [[1, 0], [0, 1], [0.5, 0.5]])  # the last state was never seen
    np.testing.assert_array_equal(model.visits, [0.5, 0.5, 0])
    np.testing.assert_array_equal(model.support, [[True, False], [False, True], [True, True]])
    smooth = empirical(log, np.array([1.0, 0, 0]), 0.9, smoothing=1.0)
    np.testing.assert_allclose(smooth.behaviour[0], [5 / 6, 1 / 6])


def test_states_and_actions_outside_the_log() -> None:
    counts = np.zeros((2, 2, 2), np.int64)
    counts[0, 0] = 0, 4  # leads to a state never seen
    model = empirical(Log(counts, np.zeros((2, 2))), np.array([1.0, 0]), 0.9)
    ratio = policy_ratio(model, model.behaviour)
    np.testing.assert_allclose(ratio, [0.1, np.inf])
    stays = Pessimism(1.0, "cql", Ratio())
    np.testing.assert_array_equal(penalty(model, model.behaviour, stays), [0, 0])  # no divergence, even at w = ∞
    off = uniform_policy(2, 2)
    assert penalty(model, off, stays)[0] == np.inf
    assert np.isneginf(evaluate(model, off, stays)[0])
    assert np.isfinite(evaluate(model, off, Pessimism(1.0, "tv"))[0])


def test_episodes_are_counted_as_if_drawn_one_by_one() -> None:
    mdp = chain(np.random.default_rng(0), 1, 5, 0.1)[0]
    ends = np.array([True, False, False, False, True])
    behaviour = np.tile([0.3, 0.7], (5, 1))
    log = draw_episodes(mdp, np.random.default_rng(1), 20_000, behaviour, 50, ends)
    assert log.visits[0] == log.visits[4] == 0
    assert log.visits[2] >= 20_000
    right = 0.7 * 0.9 + 0.3 * 0.1  # a walk on five states: chance to end on the right is 1/(1 + (q/p)²)
    ended = log.counts[3, :, 4].sum() / 20_000
    np.testing.assert_allclose(ended, 1 / (1 + ((1 - right) / right) ** 2), atol=0.01)
    assert draw_episodes(mdp, np.random.default_rng(1), 10, behaviour, 50, ends, transitions=500).size >= 500


def test_draws_follow_the_model_and_the_seed() -> None:
    mdp = garnet(np.random.default_rng(0), 3)
    behaviour = uniform_policy(6, 3)
    first, second = (draw_log(mdp, np.random.default_rng(5), 200_000, behaviour) for _ in range(2))
    np.testing.assert_array_equal(first.counts, second.counts)
    model = empirical(first, mdp.start, 0.9)
    np.testing.assert_allclose(model.visits, mdp.start, atol=0.01)
    often = first.pairs[..., None] > 2000
    np.testing.assert_allclose(np.where(often, model.transition - mdp.transition, 0), 0, atol=0.06)
