"""From what was read off the networks to estimates, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sapp.ope.doubly_robust import Values, dice_of_bags, doubly_robust, fqe_of_bags
from sapp.ope.estimators import Fitted, Settings

# one policy, two bags, episodes of lengths 2, 5 and 10: the first bag holds them 2, 0, 1 times, the second 0, 1, 1
COUNTS, LENGTHS = np.array([[2, 0, 1], [0, 1, 1]]), np.array([2, 5, 10])
START = np.array([[[1.0, 2.0, 4.0], [3.0, 5.0, 9.0]]])
REWARD = np.array([[[1.0, 7.0, 3.0], [2.0, 4.0, 6.0]]])
ERROR = np.array([[[0.5, 1.5, 9.0], [0.25, 9.0, 9.0]]])
WEIGHT = np.array([[[1.0, 9.0, 2.0], [9.0, 3.0, 4.0]]])


def fitted(terminals: bool) -> Fitted:
    rest = {"mass": 1.0, "nu_size": np.ones((1, 2)), "dice_alive": np.ones((1, 2), bool), "seconds": 0.0}
    return Fitted(
        START, REWARD, ERROR, WEIGHT, WEIGHT**2, COUNTS, LENGTHS, terminals, history=np.ones((10, 1, 2)),
        settings=Settings(discount=0.8), **rest,
    )  # fmt: skip


def test_fqe_is_the_mean_over_the_starts_of_a_bag() -> None:
    assert fqe_of_bags(fitted(True))[0] == pytest.approx([0.2 * (2 * 1.0 + 4.0) / 3, 0.2 * (5.0 + 9.0) / 2])


def test_dualdice_is_normalised_by_its_own_ratios_where_nothing_ends_and_by_rows_elsewhere() -> None:
    """The true mean of ζ is 1 only without terminals."""
    weighted = [2 * 1.0 + 3.0, 4.0 + 6.0]
    assert dice_of_bags(fitted(False))[0] == pytest.approx([weighted[0] / (2 * 1.0 + 2.0), weighted[1] / (3.0 + 4.0)])
    assert dice_of_bags(fitted(True))[0] == pytest.approx([weighted[0] / (2 * 2 + 10), weighted[1] / (5 + 10)])


def test_the_combination_judges_each_episode_by_bags_that_did_not_hold_it() -> None:
    """The first episode by the second bag, the second by the first, the third by none: it is left out."""
    found = doubly_robust(fitted(True), 0, 2).point[0]
    assert found == pytest.approx(0.2 * (3.0 + 2.0) / 2 + (0.25 + 1.5) / (2 + 5))


def test_an_interval_holds_the_middle_share_of_a_policys_replicates() -> None:
    rising = np.linspace(0.0, 100.0, 1001)
    values = Values(np.array([40.0, 1.0]), np.column_stack([rising, 2 * rising]))
    assert values.interval(0) == pytest.approx((40.0, 2.5, 97.5))
    assert values.interval(1, 0.8) == pytest.approx((1.0, 20.0, 180.0))
