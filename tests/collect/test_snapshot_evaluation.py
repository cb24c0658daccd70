"""How good snapshots are: all of them played together."""

from __future__ import annotations

import numpy as np
import pytest

from sapp.collect.snapshot_evaluation import play
from sapp.core.errors import SappError


def test_a_policy_of_another_task_cannot_play(whole) -> None:
    with pytest.raises(SappError, match="2 observations and 2 actions cannot play hopper"):
        play([whole.snapshot(320)["point/0"]], whole.environment("hopper"), 1, 0, [True])


def test_modes_are_alike_from_the_same_starts_and_draws_are_not(whole) -> None:
    policies = [whole.snapshot(320)["point/0"]] * 3
    found = play(policies, whole.environment("point"), 2, 0, [False, False, True])
    np.testing.assert_array_equal(found.returns[0], found.returns[1])
    assert (found.returns[2] != found.returns[0]).any()
