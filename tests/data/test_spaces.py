"""Spaces as arrays: Gymnasium's own flattening is the reference."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from sapp.core.errors import SappError
from sapp.data.spaces import MAX_ENUMERATED, actions_of, flatten_rows, observation_size

OBSERVATIONS = {
    "box": spaces.Box(-1, 1, (2, 3)),
    "discrete": spaces.Discrete(5, start=2),
    "multidiscrete": spaces.MultiDiscrete([3, 2], start=[1, 0]),
    "multibinary": spaces.MultiBinary(4),
    "dict": spaces.Dict({"b": spaces.Box(0, 1, (2,)), "a": spaces.Discrete(3)}),
    "tuple": spaces.Tuple((spaces.Discrete(2), spaces.Dict({"x": spaces.Box(0, 9, (1,), np.float64)}))),
}


def stacked(space: spaces.Space, points: list) -> object:
    """Points as Minari keeps them: an array per leaf."""
    if isinstance(space, spaces.Dict):
        return {key: stacked(part, [point[key] for point in points]) for key, part in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(stacked(part, [point[i] for point in points]) for i, part in enumerate(space.spaces))
    return np.stack([np.asarray(point) for point in points])


@pytest.mark.parametrize("name", list(OBSERVATIONS))
def test_rows_are_flattened_as_gymnasium_does(name: str) -> None:
    space = OBSERVATIONS[name]
    space.seed(0)
    points = [space.sample() for _ in range(7)]
    found = flatten_rows(space, stacked(space, points), "observation", "here")
    expected = np.stack([spaces.flatten(space, point) for point in points])
    np.testing.assert_array_equal(found, expected)
    assert observation_size(space, "here") == expected.shape[1]


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (spaces.Box(0, 255, (84, 84, 3), np.uint8), "images"),
        (spaces.Dict({"text": spaces.Text(5)}), "Text"),
        (spaces.Sequence(spaces.Discrete(2)), "Sequence"),
    ],
)
def test_observations_without_a_fixed_vector_are_refused(space: spaces.Space, words: str) -> None:
    with pytest.raises(SappError, match=f"here: .*{words}"):
        observation_size(space, "here")


@pytest.mark.parametrize(
    ("space", "count"),
    [
        (spaces.Discrete(4, start=-1), 4),
        (spaces.MultiDiscrete([3, 2], start=[1, 0]), 6),
        (spaces.MultiDiscrete([[2, 2], [2, 3]]), 24),
        (spaces.MultiBinary(3), 8),
    ],
)
def test_discrete_actions_go_there_and_back(space: spaces.Space, count: int) -> None:
    actions = actions_of(space, "here")
    assert actions.num_actions == actions.size == count
    taken = [actions.to_environment(number) for number in range(count)]
    assert all(space.contains(each) for each in taken)
    assert len({str(each) for each in taken}) == count
    rows = np.stack([np.asarray(each) for each in taken])
    np.testing.assert_array_equal(actions.from_rows(rows, "here"), range(count))


def test_enumerated_actions_say_what_they_stand_for() -> None:
    actions = actions_of(spaces.MultiDiscrete([2, 3]), "here")
    assert actions.labels == ("(0, 0)", "(0, 1)", "(0, 2)", "(1, 0)", "(1, 1)", "(1, 2)")
    assert actions.to_environment(4).tolist() == [1, 1]
    assert actions_of(spaces.Discrete(3), "here").labels is None


def test_vectors_keep_their_shape_and_bounds() -> None:
    space = spaces.Dict({"b": spaces.Box(-2, 2, (2, 2)), "a": spaces.Box(0, 1, (1,))})
    actions = actions_of(space, "here")
    assert actions.num_actions is None
    assert actions.low.tolist() == [0, -2, -2, -2, -2]
    assert actions.high.tolist() == [1, 2, 2, 2, 2]
    taken = actions.to_environment(np.array([0.5, 1, 2, -1, -2]))
    assert taken["a"].tolist() == [0.5]
    assert taken["b"].tolist() == [[1, 2], [-1, -2]]


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (spaces.Box(-np.inf, np.inf, (2,)), "no finite action_low"),
        (spaces.MultiBinary(30), rf"1,073,741,824 combinations; up to {MAX_ENUMERATED:,}"),
        (spaces.Text(3), "actions are Text"),
        (spaces.Box(0, 9, (2,), np.int64), "vectors of real numbers"),
        (spaces.Tuple((spaces.Box(-1, 1, (2,)), spaces.Box(0, 9, (2,), np.int64))), "vectors of real numbers"),
        (spaces.Dict({"a": spaces.Box(-1, 1, (2,)), "b": spaces.Discrete(2)}), "vectors of real numbers"),
    ],
)
def test_other_actions_are_refused(space: spaces.Space, words: str) -> None:
    with pytest.raises(SappError, match=words):
        actions_of(space, "here")
    if "finite" in words:
        assert actions_of(space, "here", (-np.ones(2), np.ones(2))).high.tolist() == [1, 1]


def test_recorded_values_outside_their_space_are_named() -> None:
    with pytest.raises(SappError, match="action at row 1 is not in the action space"):
        actions_of(spaces.Discrete(3), "here").from_rows(np.array([2, 3]), "here")
    with pytest.raises(SappError, match="observation at row 2 is outside"):
        flatten_rows(spaces.Discrete(3), np.array([0, 2, -1]), "observation", "here")
