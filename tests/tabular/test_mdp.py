"""Finite MDPs, logs and their empirical MDPs, and how they refuse bad input."""

from __future__ import annotations

import numpy as np
import pytest

from sapp import SappError
from sapp.tabular import (
    FiniteMDP,
    Log,
    Pessimism,
    Ratio,
    deterministic_policies,
    draw_episodes,
    draw_log,
    empirical,
    evaluate,
    garnet,
    grid,
    penalty,
    policy_ratio,
    suboptimality,
    uniform_policy,
)
from sapp.tabular.mdp import chain


def test_policy_iteration_finds_the_best_deterministic_policy() -> None:
    mdp = garnet(np.random.default_rng(0), 20, 4, 2, 2)
    every = deterministic_policies(4, 2)
    wide = mdp.expand()
    best = wide.expected(wide.value(np.broadcast_to(every, (20, *every.shape)))).max(-1)
    policy, value = mdp.optimal()
    np.testing.assert_allclose(mdp.expected(value), best, rtol=1e-12)
    np.testing.assert_allclose(suboptimality(mdp, policy), 0, atol=1e-12)


def test_families_are_what_they_say() -> None:
    rng = np.random.default_rng(0)
    assert np.all((garnet(rng, 5, 6, 3, 2).transition > 0).sum(-1) == 2)
    line = chain(rng, 5, 7)
    assert np.all(line.transition[:, 0, :, 0] == 1)
    assert np.all(line.transition[:, 6, :, 6] == 1)
    np.testing.assert_allclose(line.transition[:, 3, 0, 2], 0.9)
    assert np.all(grid(rng, 5, 3).reward.max((-1, -2)) == 1)


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


@pytest.mark.parametrize(("change", "message"), [
    ({"discount": 1.0}, "discount is 1.0"),
    ({"reward": np.full((2, 2), 3.0)}, "reward leaves"),
    ({"start": np.array([0.5, 0.6])}, "start is not"),
    ({"transition": np.full((2, 2, 2), 0.4)}, "transition holds a row"),
    ({"transition": np.full((2, 2, 3), 1 / 3)}, "transition has shape"),
    ({"reward": np.zeros((2, 3))}, "do not fit"),
])
def test_bad_mdps_get_one_clear_line(change: dict, message: str) -> None:
    good = {
        "transition": np.full((2, 2, 2), 0.5), "reward": np.zeros((2, 2)), "start": np.array([0.5, 0.5]),
        "discount": 0.9,
    }
    with pytest.raises(SappError, match=message):
        FiniteMDP(**(good | change))


def test_other_bad_arguments() -> None:
    mdp = garnet(np.random.default_rng(0), 2)
    with pytest.raises(SappError, match="alpha is -1"):
        Pessimism(-1.0)
    with pytest.raises(SappError, match="divergence 'js' is unknown"):
        Pessimism(1.0, "js")
    with pytest.raises(SappError, match="size is 0"):
        draw_log(mdp, np.random.default_rng(0), 0, uniform_policy(6, 3))
    with pytest.raises(SappError, match="one MDP"):
        draw_episodes(mdp, np.random.default_rng(0), 5, uniform_policy(6, 3), 5)
    with pytest.raises(SappError, match="deterministic policies"):
        deterministic_policies(30, 5)
