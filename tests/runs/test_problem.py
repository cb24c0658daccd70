"""Units of a problem by hand: observations as they are logged, actions as they are logged, returns as scores."""

from __future__ import annotations

from dataclasses import asdict

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from frame_logs import make_log

from sapp.core.errors import SappError
from sapp.data import Dataset
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


def test_problems_of_frames_and_of_vectors_number_their_actions_alike() -> None:
    frames = make_log([3, 2], [True, False])
    flat = Dataset(
        frames.frames.reshape(5, -1), frames.action, frames.reward, frames.frames.reshape(5, -1), frames.terminal,
        frames.timeout, num_actions=3,
    )  # fmt: skip
    one, other = Problem.of(frames, None), Problem.of(flat, None)
    assert (one.action_low, one.action_high) == ([0.0], [2.0])
    for name in ("action_low", "action_high", "action_size", "num_actions", "discrete", "episodes"):
        assert getattr(one, name) == getattr(other, name), name
    assert (one.observation_size, one.frame, one.transitions) == (4 * 4 * 4, [4, 4, 4], 4)
    np.testing.assert_array_equal(one.to_units(np.array([2, 0])), [2, 0])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"transitions": -1}, "'transitions' is -1"),
        ({"observation_size": 0}, "'observation_size' is 0"),
        ({"play_limit": 0}, "'play_limit' is 0"),
        ({"observation_offset": [1.0], "observation_scale": SCALE}, "'observation_offset' has 1 values, not 2"),
        ({"reference_scores": [1.0]}, "'reference_scores' has 1 values, not 2"),
        ({"action_labels": ["a"]}, "'action_labels' has 1 values, not 0"),
        ({"action_low": [0.0]}, "'action_low' has 1 values, not 2"),
        ({"action_low": [2.0, 0.0]}, "'action_low' must be below 'action_high'"),
        ({"action_low": [0.0], "action_high": [1.0, 2.0], "num_actions": 2}, "'action_low' must be below"),
        ({"num_actions": 3}, "'num_actions' is 3, 'action_size' 2"),
        ({"frame": [1, 1, 3]}, r"'frame' \[1, 1, 3\] does not make observations of 2 values"),
        ({"frame": [-1, -1, 2]}, "does not make observations of 2 values"),
        ({"observation_offset": OFFSET, "observation_scale": [1.0, 0.0]}, "'observation_scale' must be above 0"),
        ({"observation_offset": OFFSET}, "belong together"),
        ({"observation_scale": SCALE}, "belong together"),
        ({"mask_at": 0}, "'mask_at' is 0: no mask"),
        ({"mask_at": -1, "num_actions": 2}, "'mask_at' is -1: no mask"),
        ({"mask_at": 1, "num_actions": 2}, "'mask_at' is 1: no mask"),
        ({"reference_scores": [1.0, 1.0]}, "'reference_scores' are equal"),
        ({"name": "a\x1b"}, "control characters"),
        ({"fingerprint": "no"}, "its fingerprint is none"),
    ],
)
def test_descriptions_whose_parts_do_not_fit_are_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(SappError, match=f"^dataset 0: .*{words}"):
        decoded({**asdict(problem()), **changes}, "dataset 0")


@pytest.mark.parametrize(
    "changes",
    [
        {}, {"transitions": 0, "episodes": 0, "play_limit": 1}, {"mask_at": 0, "num_actions": 2},
        {"frame": [1, 1, 2], "num_actions": 2, "action_labels": ["a", "b"], "action_low": [1.0], "action_high": [1.0]},
        {"observation_offset": OFFSET, "observation_scale": SCALE, "reference_scores": [1.0, 0.0]},
        {"fingerprint": "0af9"}, {"observation_size": 1, "action_size": 1, "action_low": [0.0], "action_high": [1.0]},
    ],
)  # fmt: skip
def test_descriptions_whose_parts_fit_are_taken(changes: dict[str, object]) -> None:
    wanted = {**asdict(problem()), **changes}
    assert asdict(decoded(wanted, "dataset 0")) == wanted


def test_numbers_of_actions_are_taken_from_zero_to_the_last() -> None:
    three = Problem("x", None, "f", None, None, 2, 3, [0.0], [2.0], 0, 0, num_actions=3)
    np.testing.assert_array_equal(three.from_units(np.array([0, 2]), 2), [0, 2])
    for wrong in ([-1, 0], [0, 3]):
        with pytest.raises(SappError, match="actions of x are 0 to 2; one is outside"):
            three.from_units(np.array(wrong), 2)
    with pytest.raises(SappError, match="whole numbers below 3 for each of 2"):
        three.from_units(np.array([0.0, 1.0]), 2)


def test_masks_go_where_the_data_have_them() -> None:
    masked = Problem("x", None, "f", None, None, 4, 2, [0.0], [1.0], 0, 0, num_actions=2, mask_at=1)
    np.testing.assert_array_equal(masked.batch(np.array([7.0, 8.0]), np.array([1, 0])), [[7, 1, 0, 8]])
    many = masked.batch(np.array([[7.0, 8.0], [5.0, 6.0]]), np.array([[1, 0], [0, 1]]))
    np.testing.assert_array_equal(many, [[7, 1, 0, 8], [5, 0, 1, 6]])
    with pytest.raises(SappError, match="give 2 values of 0 and 1 per observation"):
        masked.batch(np.array([7.0, 8.0]), np.array([1, 0, 1]))
    with pytest.raises(SappError, match="2 of them say which actions are possible: give action_mask"):
        masked.batch(np.array([7.0, 8.0]))
    with pytest.raises(SappError, match="leave action_mask out"):
        problem().batch(np.array([7.0, 8.0]), np.array([1, 0]))
