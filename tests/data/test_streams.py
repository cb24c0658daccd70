"""What tells streams of rows apart, array by array: who acts by turns, counters, ids, next observations."""

from __future__ import annotations

import numpy as np
import pytest

from sapp.data.streams import (
    changes_within,
    codes,
    first_that,
    goes_on,
    ids_of,
    late_starts,
    looks_like_ids,
    looks_like_successor,
    marks_starts,
    names_who_acts,
    restarts,
)

WHO, ENDS = np.array([0, 1, 0, 1]), np.array([False, True, True, False])
ODD = np.array([False, True] * 3)


def test_names() -> None:
    assert all(map(names_who_acts, ("env_id", "Agent", "worker_index", "environment")))
    assert not any(map(names_who_acts, ("agency", "envelope", "action")))
    assert all(map(marks_starts, ("is_first", "First_Step", "episode_start", "is_episode_starts", "start_of_episode")))
    assert not any(map(marks_starts, ("first", "start", "is_last", "restart")))
    assert first_that(["obs", "env_id", "agent", "robot"], ["agent"]) == ["env_id", "robot"]


def test_codes_count_from_the_first_row() -> None:
    assert codes(np.array(["b", "a", "b", "c"], object)).tolist() == [0, 1, 0, 2]
    assert codes(np.array([[7], [7], [3]])).tolist() == [0, 0, 1]


def test_who_acts_changes_within_episodes() -> None:
    assert changes_within(WHO, ENDS, None)
    assert not changes_within(np.array([0, 0, 1, 1]), np.array([False, True, False, False]), None)
    assert not changes_within(WHO, ENDS, np.array([4, 5, 4, 5]))
    assert changes_within(WHO, ENDS, np.array([4, 4, 5, 5]))


def test_ids_of_those_who_act() -> None:
    assert ids_of(WHO, ENDS, None).tolist() == [0, 1, 0, 2]
    assert ids_of(WHO, ENDS, np.array([9, 9, 8, 8])).tolist() == [0, 1, 2, 3]


def test_an_episode_goes_on_where_times_differ_or_successors_are_the_next_rows() -> None:
    seen, episode = np.arange(8.0).reshape(4, 2), np.zeros(4)
    assert goes_on(WHO, episode, np.arange(4), seen, None)
    assert not goes_on(WHO, episode, np.array([0, 0, 1, 1]), seen, None)  # two act at each time
    code = np.array([0, 1, 0, 1, 0, 1])
    rows = np.arange(6.0)[:, None]
    assert goes_on(code, None, None, rows, rows + 1)
    assert not goes_on(code, None, None, rows, rows + 2)  # the next of one's own rows
    assert not goes_on(code, None, None, rows, None)
    assert not goes_on(code, None, None, rows, np.zeros((6, 2)))
    # of five rows before a change three go on with their own next row, one with the next of all
    assert not goes_on(code, None, None, rows, rows + np.array([[1.0], [2], [2], [2], [2], [2]]))
    assert goes_on(code, None, None, rows, rows + np.array([[1.0], [1], [2], [1], [2], [2]]))


def test_counters_that_start_again() -> None:
    starts = restarts(np.array([1, 2, 3, 1, 2, 1, 2, 3]))
    assert starts is not None
    assert np.flatnonzero(starts).tolist() == [3, 5]


@pytest.mark.parametrize("time", [[1, 2, 3], [1, 2, 3, 2, 3], [0, 0, 0], [7]])
def test_counters_that_do_not(time: list[int]) -> None:
    assert restarts(np.array(time)) is None


def test_ids_keep_a_value_over_a_run_of_rows() -> None:
    ids = np.array([7, 7, 3, 3, 5, 5])
    assert looks_like_ids(ids, ~ODD)
    assert not looks_like_ids(ids, ODD)  # says what is known
    assert not looks_like_ids(np.array([7, 7, 3, 3, 7, 7]), np.zeros(6, bool))  # a value comes again
    assert not looks_like_ids(ids.astype(float), ~ODD)


def test_successors_are_the_next_rows_observations() -> None:
    seen = np.arange(16.0).reshape(8, 2)
    assert looks_like_successor(seen + 2, seen)
    assert not looks_like_successor(seen, seen)
    assert not looks_like_successor(seen[:, :1] + 2, seen)


@pytest.mark.parametrize(("first", "said"), [([25, 0, 0, 0], 1), ([0, 0, 0, 0], 0), ([0, 40, 80, 120], 0), ([3, 0], 0)])
def test_episodes_that_begin_late(first: list[int], said: int) -> None:
    found = late_starts("step", np.array(first))
    assert len(found) == said
    assert all("1 of 4 episodes begin at step 25 or later, the others at 0" in str(each) for each in found)
