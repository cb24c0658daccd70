"""Occupancies to 1e-10 on 200 random MDPs."""

from __future__ import annotations

import numpy as np
import pytest
from problems import COUNT, random_problems

from sapp.tabular import (
    activity_matrix,
    normalised_occupancy,
    policy_ratio,
    unnormalised_occupancy,
)

EXACT = {"rtol": 0, "atol": 1e-10}
DISCOUNTS = (0.9, 0.99)


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_occupancies_sum_to_what_their_names_say(discount: float) -> None:
    _, model, policy = random_problems(discount=discount)
    np.testing.assert_allclose(unnormalised_occupancy(model, policy).sum(-1) * (1 - discount), np.ones(COUNT), **EXACT)
    np.testing.assert_allclose(normalised_occupancy(model, policy).sum(-1), np.ones(COUNT), **EXACT)
    mean = np.sum(model.visits * policy_ratio(model, policy, normalised=False), -1)
    np.testing.assert_allclose(mean * (1 - discount), np.ones(COUNT), **EXACT)


def test_occupancy_is_the_sum_over_time() -> None:
    mdp, _, policy = random_problems()
    total, now = np.zeros((COUNT, 6)), mdp.start
    for t in range(400):
        total = total + 0.9**t * now
        now = (now[:, None] @ mdp.step(policy))[:, 0]
    np.testing.assert_allclose(unnormalised_occupancy(mdp, policy), total, **EXACT)


def test_activity_matrix_carries_the_policy() -> None:
    mdp, _, policy = random_problems()
    activity = activity_matrix(policy)
    assert activity.shape == (COUNT, 6, 18)
    np.testing.assert_allclose(activity @ mdp.transition.reshape(COUNT, 18, 6), mdp.step(policy), **EXACT)
    gain = (activity @ mdp.reward.reshape(COUNT, 18, 1))[..., 0]
    np.testing.assert_allclose(gain, (policy * mdp.reward).sum(-1), **EXACT)
