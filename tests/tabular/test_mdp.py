"""Finite MDPs, logs and their empirical MDPs, and how they refuse bad input."""

from __future__ import annotations

import numpy as np
import pytest

from sapp import SappError
from sapp.tabular import (
    FiniteMDP,
    Pessimism,
    deterministic_policies,
    draw_episodes,
    draw_log,
    garnet,
    grid,
    suboptimality,
    uniform_policy,
)
from sapp.tabular.mdp import chain, softmax_policy


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
    np.testing.assert_allclose(line.transition[:, 3, 0, 4], 0.1)
    assert np.abs(line.reward[:, 1:-1]).max() <= 0.1
    assert np.ptp(line.reward[:, [0, -1]], axis=-1).max() == 0
    assert 0.5 < np.abs(line.reward).max() <= 1
    field = grid(rng, 40, 3)
    goal = field.reward.max(-1) == 1
    assert np.all(goal.sum(-1) == 1)
    assert set(np.argwhere(goal)[:, 1].tolist()) == set(range(1, 9))  # never where it starts
    assert np.all(field.start == np.eye(9)[0])
    costs = field.reward[~goal]
    assert np.ptp(costs, axis=-1).max() == 0
    assert -1 <= costs.min() < -0.9
    assert -0.1 < costs.max() <= 0
    stay = np.eye(9)[goal.nonzero()[1], None]
    np.testing.assert_array_equal(field.transition[goal], np.broadcast_to(stay, (40, 4, 9)))
    # from the corner to the right: there, by a slip too, down by one of four slips, or into a wall by two
    free = field.transition[~goal[:, 0], 0, 0]
    np.testing.assert_allclose(free[:, [0, 1, 3]], np.tile([0.1, 0.85, 0.05], (40, 1)))


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


def test_softmax_policies_stay_in_their_support() -> None:
    logits, support = np.log([[1.0, 3.0, 4.0]]), np.array([[True, True, False]])
    np.testing.assert_allclose(softmax_policy(logits), [[1 / 8, 3 / 8, 1 / 2]])
    np.testing.assert_allclose(softmax_policy(logits + 1000, support), [[1 / 4, 3 / 4, 0]])
