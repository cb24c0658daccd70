"""Episodes in flat arrays, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.data.episodes import Episodes, read_only


@pytest.fixture
def episodes() -> Episodes:
    found = Episodes()
    found.name = "log"
    found.reward = np.array([1, 2, 3, 4, 5, 6], np.float32)
    found.terminal = np.array([0, 0, 1, 0, 0, 0], bool)
    found.timeout = np.array([0, 0, 0, 0, 1, 1], bool)
    return found


def test_boundaries_lengths_and_returns(episodes: Episodes) -> None:
    assert episodes.episode_starts.tolist() == [0, 3, 5]
    assert episodes.episode_ends.tolist() == [2, 4, 5]
    assert episodes.episode_lengths.tolist() == [3, 2, 1]
    assert episodes.episode_returns.tolist() == [6, 9, 6]
    assert episodes.step.tolist() == [0, 1, 2, 0, 1, 0]


def test_rows_of_the_first_so_many_or_of_chosen_ones(episodes: Episodes) -> None:
    assert episodes.episode_rows(2).tolist() == [0, 1, 2, 3, 4]
    assert episodes.episode_rows([2, 0]).tolist() == [5, 0, 1, 2]
    for wrong, message in ((4, "cannot take 4 episodes, choose 1 to 3"), ([3], "no episode 3, choose from 0 to 2"),
                           ([], "no episodes asked for")):  # fmt: skip
        with pytest.raises(SappError, match=f"log: {message}"):
            episodes.episode_rows(wrong)


def test_a_view_is_read_only_and_the_callers_array_is_not() -> None:
    own = np.zeros(3)
    view = read_only(own)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    own[0] = 2
    assert view[0] == 2
