"""Rows of a log are sorted and repaired, everything beside them moves along, and all of it is taken down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.data import Ledger
from sapp.data.columns import Columns
from sapp.data.ledger import Kind
from sapp.data.log_rows import LogRows
from sapp.data.table import Table

NAN = float("nan")


def rows(
    step: list[int], run: list[int] | None, reward: list[float] | None = None, seen: list[float] | None = None,
    **choices: Any,
) -> LogRows:  # fmt: skip
    """Rows with these steps of these runs; observations number them unless they are given, and so do the extras."""
    number = np.arange(len(step), dtype=float)
    arrays = {
        "observation": np.array(number if seen is None else seen)[:, None],
        "action": np.zeros((len(step), 1)),
        "reward": np.ones(len(step)) if reward is None else np.array(reward),
        "terminal": np.zeros(len(step)),
    }
    table = Table.of_arrays({"step": np.array(step), "seen": arrays["observation"]}, len(step), "log")
    if run is not None:
        arrays["episode"] = np.array(run)
    names: dict[str, Any] = {"observation": ["seen"], "action": ["act"], "reward": "gain", "terminal": "end"}
    mapping = Columns(**names, episode=None if run is None else "run", **choices)
    return LogRows(table, mapping, Ledger(len(step)), arrays, {}, {"number": number})


def test_rows_are_sorted_by_episode_and_time() -> None:
    log = rows([1, 0, 2, 0, 1], [4, 4, 2, 2, 2], time="step")
    log.repair()
    assert log.row.tolist() == log.extras["number"].tolist() == [3, 4, 2, 1, 0]
    assert log.arrays["episode"].tolist() == [2, 2, 2, 4, 4]
    assert log.time is not None
    assert log.time.tolist() == [0, 1, 2, 0, 1]
    assert log.moved == " (rows counted after sorting by episode)"
    assert log.ledger.lines() == ["rows were sorted by run and step"]


def test_without_a_time_episodes_are_brought_together_in_their_order() -> None:
    log = rows([0] * 4, [7, 3, 7, 3])
    log.repair()
    assert log.row.tolist() == [0, 2, 1, 3]
    assert log.time is None
    assert log.ledger.lines() == ["rows were sorted by run"]


def test_ids_that_are_used_again_are_warned_of() -> None:
    runs = np.repeat([0, 1, 2, 0, 1, 2], [7, 4, 9, 5, 8, 7]).tolist()
    log = rows([0] * 40, runs)
    log.repair()
    (warning,) = log.ledger.lines(Kind.WARNING)
    assert warning.startswith("6 runs of rows share 3 ids of run, and each id's rows are read as one episode")
    with pytest.raises(SappError, match=r"log: run 0 has step 0 twice, in row 0 and row 1, which differ"):
        rows([0] * 40, runs, time="step").repair()  # where steps are known it is certain


def test_exact_copies_are_left_out() -> None:
    log = rows([0, 1, 1, 2], [0] * 4, seen=[1, 2, 2, 3], time="step")
    log.extras.clear()
    log.repair()
    assert log.row.tolist() == [0, 1, 3]
    assert log.ledger.dropped == 1
    assert log.moved == " (rows counted without copies)"


def test_episodes_are_split_cut_or_kept_at_gaps() -> None:
    step, run = [0, 1, 2, 5, 6, 0, 1, 2], [0] * 5 + [1] * 3
    split = rows(step, run, time="step", gaps="split")
    split.repair()
    assert split.arrays["episode"].tolist() == [0, 0, 0, 1, 1, 2, 2, 2]
    assert np.flatnonzero(split.holes).tolist() == [2]
    (line,) = split.ledger.lines(Kind.CHANGED)
    assert line.startswith("1 gaps in time in 1 episodes (the first before row 3, run 0, step 5; steps are usually 1")
    cut = rows(step, run, time="step", gaps="cut")
    cut.repair()
    assert cut.row.tolist() == [0, 1, 2, 5, 6, 7]
    assert np.flatnonzero(cut.holes).tolist() == [2]
    (entry,) = cut.ledger.entries
    assert (entry.kind, entry.rows, entry.episodes, entry.reward, entry.asked) == (Kind.DROPPED, 2, 1, 0.25, True)
    kept = rows(step, run, time="step", gaps="keep")
    kept.repair()
    assert kept.arrays["episode"].tolist() == run
    assert not kept.holes.any()
    with pytest.raises(SappError, match="fix them, or choose gaps = 'split', 'cut' or 'keep'"):
        rows(step, run, time="step", gaps="error").repair()
    with pytest.raises(SappError, match=r"with that 12\.5 % of the reward; say what is meant: gaps"):
        rows(step, run, time="step").repair()


def test_a_single_missing_step_is_a_gap() -> None:
    log = rows([0, 1, 2, 4, 5], [0] * 5, time="step", gaps="split")
    log.repair()
    assert log.arrays["episode"].tolist() == [0, 0, 0, 1, 1]


def test_uneven_steps_have_no_gaps() -> None:
    log = rows([0, 1, 5, 7, 20], [0] * 5, time="step")
    log.repair()
    assert log.arrays["episode"].tolist() == [0] * 5
    assert log.ledger.lines() == ["step goes on in uneven steps: every row counts as one step"]


def test_rewards_given_at_ends_are_zero_before() -> None:
    log = rows([0, 1, 2] * 2, [0] * 3 + [1] * 3, reward=[NAN, NAN, 4.0, NAN, NAN, 6.0])
    log.repair()
    assert log.arrays["reward"].tolist() == [0, 0, 4, 0, 0, 6]
    assert log.ledger.lines() == ["4 empty rewards before the ends of episodes were taken as 0"]
    log = rows([0] * 4, None, reward=[NAN, 2.0, NAN, 3.0])
    log.arrays["terminal"] = np.array([0.0, 1.0, 0.0, 1.0])
    log.repair()
    assert log.arrays["reward"].tolist() == [0, 2, 0, 3]


def test_empty_values_are_filled_dropped_or_refused() -> None:
    step, run, seen = [0, 1, 2, 0, 1], [0] * 3 + [1] * 2, [0.5, NAN, 1.5, 2.5, 3.5]
    fill = rows(step, run, seen=seen, missing="fill")
    fill.repair()
    assert fill.arrays["observation"][:, 0].tolist() == [0.5, 0.5, 1.5, 2.5, 3.5]
    assert fill.ledger.lines() == ["1 empty values of observation were filled with the last known ones"]
    drop = rows(step, run, seen=seen, missing="drop")
    drop.repair()
    assert drop.row.tolist() == [3, 4]
    (line,) = drop.ledger.lines()
    assert line.startswith("1 of 2 episodes were dropped for empty values, 3 rows (the first empty value is at row 1)")
    with pytest.raises(SappError, match="log: column 'seen' is empty or NaN at row 1; fix it, or choose missing"):
        rows(step, run, seen=seen).repair()
    with pytest.raises(SappError, match="every episode has empty values"):
        rows(step[:3], run[:3], seen=seen[:3], missing="drop").repair()
    with pytest.raises(SappError, match="missing = 'fill' needs an episode column"):
        rows(step, None, seen=seen, missing="fill").repair()


def test_densities_become_an_extra() -> None:
    log = rows([0, 1], [0, 0])
    log.arrays["log_prob"] = np.array([-0.5, -1.5])
    log.repair()
    assert log.extras["log_prob"].tolist() == [-0.5, -1.5]
    assert "log_prob" not in log.arrays


def test_what_stays_beside_the_rows_moves_with_them() -> None:
    log = rows([0, 1, 0, 1], [0, 0, 1, 1], reward=[1.0, 1.0, 3.0, 3.0])
    log.time, log.holes[1] = np.arange(4) * 10, True
    log.take(np.array([3, 1, 0, 2]))
    assert log.row.tolist() == log.extras["number"].tolist() == [3, 1, 0, 2]
    assert log.time.tolist() == [30, 10, 0, 20]
    assert log.holes.tolist() == [False, True, False, False]
    log.drop(np.array([True, False, False, True]), "two rows", asked=True)
    assert log.row.tolist() == [1, 0]
    assert log.holes.tolist() == [True, False]
    (entry,) = log.ledger.entries
    assert (entry.what, entry.rows, entry.episodes, entry.reward) == ("two rows", 2, 1, 0.75)
