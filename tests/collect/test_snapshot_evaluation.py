"""How good snapshots are: all of them played together."""

from __future__ import annotations

import pytest

from sapp.collect.snapshot_evaluation import play
from sapp.core.errors import SappError


def test_a_policy_of_another_task_cannot_play(whole) -> None:
    with pytest.raises(SappError, match="2 observations and 2 actions cannot play hopper"):
        play([whole.snapshot(320)["point/0"]], whole.environment("hopper"), 1, 0, [True])
