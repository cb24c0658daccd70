"""What a policy earns: a run's, or a function of your own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sapp
from sapp.core.errors import SappError
from sapp.envs.point import controller


def test_a_function_and_a_run_are_played_from_the_same_starts(trained: Path) -> None:
    (own,) = sapp.evaluate(controller, "point", episodes=3, seed=5)
    again = sapp.evaluate(controller, "point", episodes=3, seed=5)[0]
    np.testing.assert_array_equal(own.returns, again.returns)
    assert own.returns.shape == own.lengths.shape == own.scores.shape == (3,)
    run = sapp.Run(trained)
    played = run.evaluate(episodes=3, seed=5)
    for found in (sapp.evaluate(trained, episodes=3, seed=5), sapp.evaluate(run, episodes=3, seed=5)):
        np.testing.assert_array_equal(found[0].returns, played[0].returns)


def test_what_cannot_be_played_is_said() -> None:
    with pytest.raises(SappError, match=r"needs an environment to play in: sapp.evaluate\(policy, env\)"):
        sapp.evaluate(controller)
    with pytest.raises(SappError, match="catch has images for observations"):
        sapp.evaluate(controller, "catch")
