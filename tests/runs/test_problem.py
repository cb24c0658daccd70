"""Units of a problem by hand: observations as they are logged, actions as they are logged, returns as scores."""

from __future__ import annotations

from dataclasses import asdict

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.evaluation.online_evaluation import _act
from sapp.runs.problem import Problem
from sapp.runs.problem import problem as decoded

LOW, HIGH, OFFSET, SCALE = [-2.0, 0.0], [2.0, 10.0], [1.0, 200.0], [2.0, 50.0]


class Echo(eqx.Module):
    """A policy whose action is the observation times a factor, at once its own distribution."""

    factor: jax.Array
    seen: jax.Array | None = None

    def __call__(self, observation: jax.Array) -> Echo:
        return Echo(self.factor, observation)

    def mode(self) -> jax.Array:
        return self.factor * self.seen


def problem(**more) -> Problem:
    return Problem("x", None, "f", None, None, 2, 2, LOW, HIGH, 0, 0, **more)


def test_observations_are_scaled_as_the_data_were() -> None:
    scaled = problem(observation_offset=OFFSET, observation_scale=SCALE)
    found = scaled.to_network(np.array([[3.0, 300.0], [1.0, 100.0]]))
    np.testing.assert_allclose(found, [[1.0, 2.0], [0.0, -2.0]])
    plain = np.array([[3.0, 300.0]])
    np.testing.assert_array_equal(problem().to_network(plain), plain)


def test_actions_leave_and_enter_in_the_datas_units() -> None:
    unit, own = np.array([[-1.0, -1.0], [0.0, 0.5], [1.0, 1.0]], np.float32), [[-2.0, 0.0], [0.0, 7.5], [2.0, 10.0]]
    np.testing.assert_allclose(problem().to_units(unit), own)
    np.testing.assert_allclose(problem().from_units(np.array(own), 3), unit, atol=1e-6)
    with pytest.raises(SappError, match="2 values for each of 3 observations"):
        problem().from_units(np.zeros((2, 2)), 3)


def test_policies_are_played_in_the_environments_units() -> None:
    """Two members that answer with what they see, halved and as it is: −½ and 1 by the data's statistics."""

    actors = Echo(jnp.array([0.5, 1.0]))
    seen = np.broadcast_to(np.array([0.0, 250.0]), (2, 3, 2))
    played = _act(actors, problem(observation_offset=OFFSET, observation_scale=SCALE), seen)
    assert played.shape == (2, 3, 2)
    np.testing.assert_allclose(played[0], np.broadcast_to([-0.5, 7.5], (3, 2)))
    np.testing.assert_allclose(played[1], np.broadcast_to([-1.0, 10.0], (3, 2)))


def test_returns_are_scored_by_the_datas_own_references() -> None:
    found = problem(reference_scores=[10.0, 30.0]).scores(np.array([10.0, 20.0, 40.0]))
    np.testing.assert_allclose(found, [0, 50, 150])
    assert problem().scores(np.array([1.0])) is None


@pytest.mark.parametrize(
    ("ledger", "words"),
    [
        ({"a": 1}, "has 'a'"),
        ({"rows": 1, "columns": [], "entries": [{"kind": "eaten", "what": "x"}]}, "is 'eaten'"),
        ({"rows": 1, "columns": [{"name": "x"}], "entries": []}, "lacks 'use'"),
        ({"rows": "1", "columns": [], "entries": []}, "'rows' is '1'; it must be a whole number"),
    ],
)
def test_a_ledger_that_is_none_is_refused(ledger: dict[str, object], words: str) -> None:
    with pytest.raises(SappError, match=words):
        decoded({**asdict(problem()), "ledger": ledger}, "dataset 0")
