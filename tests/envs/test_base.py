"""What every environment checks: actions, seeds, and where an episode's randomness comes from."""

from __future__ import annotations

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.envs.base import check_action, check_discrete, check_seed, cores, generator


def test_an_episode_has_its_own_randomness_and_always_the_same() -> None:
    draws = {(seed, episode): generator(seed, episode).random() for seed in range(3) for episode in range(3)}
    assert len(set(draws.values())) == 9
    assert generator(2, 1).random() == draws[2, 1]
    assert generator(0, 0).random() != np.random.default_rng(0).random()
    assert cores() >= 1


def test_actions_come_back_in_their_types() -> None:
    assert check_action(np.zeros((2, 3), np.float32), 2, 3, "x").dtype == np.float64
    assert check_discrete(np.array([0, 2], np.int8), 2, 3, "x").dtype == np.int64
    assert check_seed(np.int64(3)) == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_seed(-1), "seed -1 is negative"),
        (lambda: check_action(np.zeros((1, 3)), 2, 3, "hopper"), r"takes actions of shape \(2, 3\), not \(1, 3\)"),
        (lambda: check_action([[0.0], [np.nan]], 2, 1, "hopper"), "the action for row 1 of hopper is not finite"),
        (lambda: check_discrete([0.5], 1, 3, "catch"), "catch takes 1 whole numbers, not float64"),
        (lambda: check_discrete([3], 1, 3, "catch"), "catch: actions are 0 to 2, one is outside"),
    ],
)
def test_what_is_wrong_with_an_action_is_said(call, message: str) -> None:
    with pytest.raises(SappError, match=message):
        call()
