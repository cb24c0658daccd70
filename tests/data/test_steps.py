"""Last rows without a successor: what is dropped is counted and named."""

from __future__ import annotations

from pathlib import Path

import pytest
from value_logs import log, read, with_, write

from sapp.core.errors import SappError
from sapp.data import Ledger, load
from sapp.data.ledger import Kind


def test_what_is_dropped_after_a_split_is_named_by_its_row(tmp_path: Path) -> None:
    table = log(obs=with_(log()["obs"], 7, None), step=[0, 1, 2, 3, 0, 1, 5, 6])
    data = read(tmp_path, table, missing="drop", gaps="split")
    assert data.reward.tolist() == [0, 1, 2, 3, 4]
    said = Ledger.of(data).lines(Kind.DROPPED)[0]
    assert said.startswith("1 of 3 episodes were dropped for empty values, 2 rows (the first empty value is at row 7)")


def test_episodes_of_one_row_that_vanish_are_counted(tmp_path: Path) -> None:
    table = log(episode=[0, 0, 0, 1, 2, 3, 3, 3], step=[0, 1, 2, 0, 0, 0, 1, 2], terminal=None)
    path = write(tmp_path / "log.parquet", table)
    with pytest.raises(SappError, match=r"57\.1 % of the reward and 50 % of the episodes; if every"):
        load(path)
    data = load(path, last_step="drop")
    assert data.num_episodes == 2
    assert data.reward.tolist() == [0, 1, 5, 6]
    (line,) = Ledger.of(data).lines(Kind.DROPPED)
    assert "4 rows were dropped; 2 episodes of one such row are gone altogether (57.1% of the reward)" in line
    ended = load(path, last_step="end")
    assert ended.terminal.sum() == ended.num_episodes == 4
    assert ended.reward.sum() == 28


def test_no_episode_is_said_to_vanish_where_none_does(tmp_path: Path) -> None:
    path = write(tmp_path / "log.parquet", log(terminal=None))
    (line,) = Ledger.of(load(path, last_step="drop")).lines(Kind.DROPPED)
    assert line.endswith("no known next state: 2 rows were dropped (35.7% of the reward)")


def test_where_steps_are_missing_nothing_ended_whatever_is_said_of_last_rows(tmp_path: Path) -> None:
    table = log(step=[0, 1, 2, 3, 0, 1, 5, 6], terminal=None)
    data = read(tmp_path, table, terminal=None, gaps="split", last_step="end")
    # steps 0 1 | 5 6: the row before the gap has no successor
    assert data.reward.tolist() == [0, 1, 2, 3, 4, 6, 7]
    assert data.terminal.tolist() == [False, False, False, True, False, False, True]
    assert data.timeout.tolist() == [False, False, False, False, True, False, False]
