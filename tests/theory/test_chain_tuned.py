"""The chain with α tuned: fair to every method, and what it tells about log–min–max."""

from __future__ import annotations

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.theory.chain import Setting, choice
from sapp.theory.chain_tuned import GRID, METHODS, Tuned, losses, problems, tuned_chain, weights


@pytest.fixture(scope="module")
def outwards() -> dict[str, Tuned]:
    return {row.method: row for row in tuned_chain(200)}


def test_alpha_is_chosen_on_the_first_half_and_judged_on_the_second() -> None:
    settings = problems(12, 20, True, 0)
    made = losses(settings, True)
    rows = {row.method: row for row in tuned_chain(12)}
    for row in rows.values():
        values = made[row.method]
        assert values.shape == (len(GRID), 12)
        best = values[:, :6].mean(1).argmin()
        assert row.alpha == GRID[best]
        assert row.loss == pytest.approx(values[best, 6:].mean())
        assert row.difference.estimate == pytest.approx(row.loss - rows["pp"].loss)


def test_no_method_can_lose_by_being_pessimistic_at_all() -> None:
    made = losses(problems(6, 20, False, 1), False)
    for name in METHODS:
        np.testing.assert_allclose(made[name][0], made["none"][0], err_msg=name)


def test_the_better_side_is_the_better_known_one_if_the_behaviour_knows() -> None:
    knowing, either = problems(50, 20, True, 0), problems(50, 20, False, 0)
    assert all(each.left_reward <= each.right_reward for each in knowing)
    assert 10 < sum(each.left_reward <= each.right_reward for each in either) < 40
    assert all(1 <= each.left <= 6 for each in knowing + either)
    assert all(each.left + each.right == 20 for each in knowing + either)


def test_losses_by_hand() -> None:
    """One coin each side, no pessimism: the winner is chosen, ties go to one half."""
    discount = 0.8
    setting = Setting(arm=1, left=1, right=1, left_reward=0.6, right_reward=0.5, discount=discount)
    found = losses([setting], False, [0.0])
    worth = 0.5 * discount / (1 - 0.5 * discount**2)
    only_left, only_right = 0.6 * 0.5, 0.4 * 0.5
    tie = 1 - only_left - only_right
    assert choice(setting).truth.max() == pytest.approx(worth * 0.6)
    assert found["none"].item() == pytest.approx(worth * 0.1 * (only_right + tie / 2))
    assert found["pp"].item() == pytest.approx(found["none"].item())


@pytest.mark.parametrize("follow", [False, True])
def test_much_pessimism_goes_where_the_log_goes(follow: bool) -> None:
    rare = Setting(left=5, right=95)
    always_right = choice(rare, follow).truth[3]
    assert losses([rare], follow, [1.0])["w"].item() == pytest.approx(choice(rare, follow).truth.max() - always_right)


def test_weights_by_hand() -> None:
    (setting, *_) = problems(4, 20, True, 3)
    made = choice(setting, True)
    found = weights(made)
    visited = made.occupancy[0] * made.model.visits > 0
    assert found["log"][0][visited].min() == 0
    mean = (found["log"] * made.model.visits).sum(-1)
    np.testing.assert_allclose(mean, 1)
    assert (found["log-one"] * made.model.visits).sum(-1).mean() == pytest.approx(1)
    assert len({tuple(row) for row in found["log-held"].round(9)}) == 1
    assert len({tuple(row) for row in found["log"].round(9)}) > 1


def test_log_min_max_is_worst_because_each_policy_has_its_own_range(outwards: dict[str, Tuned]) -> None:
    """With one range for all policies, or held weights, it is as good as the others."""
    difference = {name: row.difference for name, row in outwards.items()}
    assert difference["log"].low > 0.01
    assert difference["log"].estimate == max(each.estimate for each in difference.values())
    assert difference["log-one"].high < 0.001
    assert difference["log-held"].high < 0
    assert difference["none"].low > 0.01


def test_where_policies_share_one_ratio_nothing_is_lost_by_it() -> None:
    """Uniform on the arms log–min–max is no worse than w: the arms' ratios are in every policy's range."""
    rows = {row.method: row for row in tuned_chain(200, follow=False)}
    assert rows["log"].difference.high < 0
    assert rows["log"].loss < rows["w"].loss < rows["pp"].loss


@pytest.mark.parametrize(("arguments", "word"), [({"count": 3}, "problems is 3"), ({"total": 3}, "total is 3")])
def test_bad_arguments(arguments: dict[str, int], word: str) -> None:
    with pytest.raises(SappError, match=word):
        tuned_chain(**arguments)
