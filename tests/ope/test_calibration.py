"""How wide intervals are made: by a factor around the estimate, and by Student's for the number of episodes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from populations import POPULATIONS, covered
from scipy import stats

from sapp.ope.calibration import students_factor, widened
from sapp.ope.doubly_robust import Values, spread


def test_replicates_go_as_many_times_as_far_from_the_estimate() -> None:
    found = widened(Values(np.array([2.0, 5.0]), np.array([[1.0, 5.0], [4.0, 7.0]])), 3.0)
    np.testing.assert_allclose(found.point, [2.0, 5.0])
    np.testing.assert_allclose(found.replicates, [[-1.0, 5.0], [8.0, 11.0]])


def test_intervals_are_students_of_any_number_of_episodes() -> None:
    for count in (3, 11, 40):
        inflated = (count / (count - 1)) ** 0.5
        assert students_factor(count) == pytest.approx(
            stats.t.ppf(0.975, count - 1) / stats.norm.ppf(0.975) * inflated
        )
    factors = [students_factor(count) for count in range(2, 60)]
    assert all(more > fewer for more, fewer in pairwise(factors))
    assert 1 < students_factor(100_000) < 1.0001
    assert students_factor(1) == 1.0, "one episode tells no spread"


@pytest.mark.parametrize("count", [3, 5, 10, 15])
@pytest.mark.parametrize(("name", "least"), [("normal", 0.93), ("student3", 0.93), ("collapse", 0.78)])
def test_intervals_of_few_episodes_cover_what_they_say(name: str, least: float, count: int) -> None:
    """Episodes drawn anew alone would hold the mean of three normal ones three times in four."""
    population, rng = POPULATIONS[name], np.random.default_rng(count)
    found = []
    for returns in population.draw(rng, (800, count)):
        again = returns[rng.integers(0, count, (400, count))].mean(1)
        found.append(widened(Values(np.array([returns.mean()]), again[:, None]), students_factor(count)).interval(0))
    noise = 0.01 if count > 10 else 0.0  # of 800 draws: tighter intervals of more episodes leave no slack for it
    assert covered(found, population.mean) >= least - noise


@pytest.mark.parametrize("count", [3, 5, 10])
@pytest.mark.parametrize(
    ("name", "low", "high"), [("normal", 0.93, 0.97), ("student3", 0.93, 0.98), ("collapse", 0.77, 0.9)]
)
def test_intervals_from_few_bags_cover_what_they_say(name: str, low: float, high: float, count: int) -> None:
    """Bags that are independent, each with the spread that other logs would have: of their mean over as many logs."""
    population, rng = POPULATIONS[name], np.random.default_rng(count)
    found = []
    for number, bags in enumerate(population.draw(rng, (800, count))):
        # replicates are of one log's estimate; the mean of independent bags is √B times as well known
        values = spread(bags[None], number, 400)
        found.append(widened(values, count**-0.5).interval(0))
    assert low <= covered(found, population.mean) <= high
