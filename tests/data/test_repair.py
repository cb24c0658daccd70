"""Sparse rewards: empty ones are 0 where most are, and holes stay holes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from value_logs import NAN, log, read, refusal, with_

from sapp.data import Ledger
from sapp.data.ledger import Kind
from sapp.data.repair import drop_copies, forward_fill, gap_rows

SPARSE = [None, None, None, 1.0, None, None, 2.0, 3.0]


@pytest.mark.parametrize("missing", [None, "fill", "drop"])
def test_sparse_rewards_are_zero_before_the_end(tmp_path: Path, missing: str | None) -> None:
    data = read(tmp_path, log(reward=SPARSE), missing=missing)
    assert data.reward.tolist() == [0, 0, 0, 1, 0, 0, 2, 3]
    assert Ledger.of(data).lines(Kind.CHANGED) == ["5 empty rewards before the ends of episodes were taken as 0"]


def test_sparse_rewards_need_one_at_the_end(tmp_path: Path) -> None:
    table = log(reward=with_(SPARSE, 3, None))
    assert "'reward' is empty or NaN at row 3" in refusal(tmp_path, table)
    assert read(tmp_path, table, missing="drop").reward.tolist() == [0, 0, 2, 3]


def test_half_of_the_rewards_empty_is_not_sparse(tmp_path: Path) -> None:
    table = log(reward=[None, None, None, 1.0, 1.0, 1.0, 1.0, 1.0])
    assert "'reward' is empty or NaN at row 0" in refusal(tmp_path, table)


def test_a_gap_in_time_is_no_end_of_a_sparse_reward(tmp_path: Path) -> None:
    data = read(tmp_path, log(reward=SPARSE, step=[0, 1, 2, 3, 0, 1, 5, 6]), gaps="split")
    # steps 0 1 | 5 6: the row before the gap has no successor
    assert data.reward.tolist() == [0, 0, 0, 1, 0, 2, 3]
    assert data.episode_lengths.tolist() == [4, 1, 2]


def test_sparse_rewards_without_an_episode_column(tmp_path: Path) -> None:
    flags = {"terminal": [0, 0, 0, 0, 0, 0, 0, 1], "timeout": [0, 0, 0, 1, 0, 0, 0, 0]}
    none: dict[str, Any] = {"episode": None, "step": None}
    asked = {"episode": None, "time": None, "timeout": "timeout", "last_step": "drop"}
    data = read(tmp_path, log(reward=SPARSE, **flags, **none), **asked)
    assert data.reward.tolist() == [0, 0, 0, 0, 0, 2, 3]  # the time-out on row 3 has no successor
    message = refusal(
        tmp_path, log(reward=with_(SPARSE, 3, None), **flags, **none), episode=None, time=None, timeout="timeout"
    )
    assert "'reward' is empty or NaN at row 3" in message


@pytest.mark.parametrize("value", [NAN, None])
class TestOneRewardMissing:
    """A dense column of rewards with a hole: no 0 is made up."""

    def test_is_refused(self, tmp_path: Path, value: float | None) -> None:
        message = refusal(tmp_path, log(reward=with_(log()["reward"], 1, value)))
        assert "'reward' is empty or NaN at row 1" in message
        assert "missing = 'drop'" in message

    def test_cannot_be_filled(self, tmp_path: Path, value: float | None) -> None:
        message = refusal(tmp_path, log(reward=with_(log()["reward"], 1, value)), missing="fill")
        assert "'reward' is empty or NaN at row 1 and cannot be filled" in message

    def test_drops_its_episode(self, tmp_path: Path, value: float | None) -> None:
        data = read(tmp_path, log(reward=with_(log()["reward"], 1, value)), missing="drop")
        assert data.reward.tolist() == [4, 5, 6, 7]
        assert "1 of 2 episodes were dropped for empty values, 4 rows" in Ledger.of(data).lines(Kind.DROPPED)[0]


def test_missing_values_are_the_last_known_ones_of_their_episode_and_leading_ones_the_first() -> None:
    values = np.array([[NAN, 1.0, NAN, 2.0, NAN, 7.0, NAN, NAN]]).T
    filled, count = forward_fill(values, np.array([0, 0, 0, 0, 1, 1, 1, 2]))
    np.testing.assert_array_equal(filled[:, 0], [1.0, 1.0, 1.0, 2.0, 7.0, 7.0, 7.0, NAN])
    assert count == 4


@pytest.mark.parametrize(
    ("time", "gaps", "usual"),
    [
        ([0, 1, 2, 3, 5, 6, 7, 8], [4], 1.0),
        ([0, 1, 2, 3, 4.4, 5.4, 6.4, 7.4], [], 1.0),  # not one and a half times as long
        ([0, 1, 2, 3, 4.6, 5.6, 6.6, 7.6], [4], 1.0),
        ([0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 13], [8, 9, 10], 1.0),  # seven in ten are equal
        ([0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14], [], None),
        ([0, 1.0005, 2, 3, 7], [4], 1.0),  # equal to a thousandth
        ([0, 0, 0, 0, 5], [], None),
        ([3], [], None),
    ],
)
def test_what_is_a_gap_in_time(time: list[float], gaps: list[int], usual: float | None) -> None:
    found, step = gap_rows(np.zeros(len(time), np.int64), np.array(time, float))
    assert found.tolist() == gaps
    assert step == (None if usual is None else pytest.approx(usual, rel=1e-3))
    seconds = np.datetime64("2024-01-01", "us") + (1e6 * np.array(time)).astype("timedelta64[us]")
    dated, step = gap_rows(np.zeros(len(time), np.int64), seconds)
    assert dated.tolist() == gaps
    assert step == (None if usual is None else pytest.approx(usual, rel=1e-3))
    again, _ = gap_rows(np.repeat([0, 1], len(time)), np.array([*time, *time], float))
    assert again.tolist() == [*gaps, *(len(time) + gap for gap in gaps)]


def test_rows_that_are_the_same_in_all_columns_are_copies_and_others_are_named() -> None:
    order, code, time = np.array([3, 0, 1, 2, 4]), np.array([0, 0, 1, 0, 1]), np.array([5, 5, 5, 4, 6])
    value = np.array([NAN, NAN, 2.0, 1.0, 2.0])
    kept, copies, differing = drop_copies(order, code, time, {"value": value})
    assert (kept.tolist(), copies, differing) == ([3, 0, 2, 4], 1, None)
    kept, copies, differing = drop_copies(order, code, time, {"value": value, "other": np.arange(5)})
    assert (kept.tolist(), copies, differing) == (order.tolist(), 0, (0, 1))
    apart = drop_copies(order, code, np.arange(5), {"value": value})
    assert (apart[0].tolist(), apart[1:]) == (order.tolist(), (0, None))
