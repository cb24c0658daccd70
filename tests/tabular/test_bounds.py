"""The constants of the bounds, and the bounds themselves, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sapp import SappError
from sapp.tabular import FiniteMDP, Log, c0_printed, c0_repaired, empirical, suboptimality, upper_bound
from sapp.tabular.bounds import UpperBound
from sapp.theory.families import Instances


def bandit(policies: list[list[float]], draws: int = 10**12, others: int | None = None) -> Instances:
    """One state, rewards 1 and 0, actions logged ``draws`` times each; γ = 0.9, so d = 10, w = 10 or, normalised, 1."""
    mdp = FiniteMDP(np.ones((1, 1, 2, 1)), np.array([[[1.0, 0.0]]]), np.ones((1, 1)), 0.9)
    counts = np.array([[[[draws], [others or draws]]]])
    model = empirical(Log(counts, np.array([[[draws, 0.0]]])), np.ones((1, 1)), 0.9)
    return Instances("bandit", (0,), mdp, model, np.array(policies)[None, :, None, :])


BETA, GREEDY = [0.5, 0.5], [1.0, 0.0]


def test_bounds_by_hand() -> None:
    assert c0_printed(3, 4, 2, 0.9, 0.05) == pytest.approx(10 * math.sqrt(0.5 * math.log(2 * 3 * 2 / 0.05)))
    assert c0_printed(3, 4, np.inf, 0.9, 0.05) == pytest.approx(10 * math.sqrt(0.5 * math.log(2 * 3 * 4 / 0.05)))
    assert c0_repaired(3, 2, 0.9, 0.05) == pytest.approx(20 * math.sqrt(0.5 * math.log(2 * 3 * 2 / 0.05)))
    bound = upper_bound(np.array([0.0, 2.0]), np.full((2, 1), 10.0), np.full((2, 1), 0.3), np.array([[0.5], [0.0]]))
    np.testing.assert_allclose(bound.inf, [0 + 3 + 5, 2 + 3 + 0])
    np.testing.assert_allclose(bound.sup, [3 - 5, 3])
    assert bound.total == pytest.approx(5 + 3)
    made = bandit([BETA, GREEDY])
    assert suboptimality(made.mdp[0], np.array([BETA])) == pytest.approx(5.0)
    assert c0_printed(1, 1, 1, 0.0, 0.5) == pytest.approx(math.sqrt(0.5 * math.log(4)))


@pytest.mark.parametrize(
    ("discount", "delta", "word"),
    [(0.9, 0.0, "delta"), (0.9, 1.0, "delta"), (1.0, 0.05, "discount"), (-0.1, 0.05, "discount")],
)
def test_constants_of_no_sense_are_refused(discount: float, delta: float, word: str) -> None:
    with pytest.raises(SappError, match=f"{word} is "):
        c0_printed(1, 1, 1, discount, delta)
    with pytest.raises(SappError, match=f"{word} is "):
        c0_repaired(1, 1, discount, delta)
    with pytest.raises(SappError, match="needs a finite class of policies"):
        c0_repaired(1, np.inf, 0.9, 0.05)


def test_bounds_of_many_problems_name_the_policy_of_each() -> None:
    """What it costs to visit a state that is never visited is nothing, were it infinite."""
    inf, sup = np.array([[3.0, 1.0, 2.0], [5.0, 6.0, 4.0]]), np.array([[1.0, 2.0, 0.0], [9.0, 7.0, 8.0]])
    bound = UpperBound(inf, sup)
    assert bound.arg_inf.tolist() == [1, 2]
    assert bound.arg_sup.tolist() == [1, 0]
    assert bound.total.tolist() == [1 + 2, 4 + 9]
    occupancy, width = np.array([[[0.0, 2.0], [1.0, 1.0]]]), np.array([[[np.inf, 3.0], [2.0, 5.0]]])
    found = upper_bound(np.zeros((1, 2)), occupancy, width, np.ones((1, 2, 2)))
    np.testing.assert_allclose(found.inf, [[6 + 2, 7 + 2]])
    np.testing.assert_allclose(found.sup, [[6 - 2, 7 - 2]])
