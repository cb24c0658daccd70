from __future__ import annotations

import json

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.data import Dataset, Ledger, concatenate, load_vectors
from sapp.data.ledger import Column, Kind, refuse_loss, reward_share


def filled() -> Ledger:
    ledger = Ledger(10, [Column("a", "reward"), Column("b", None, "not needed")])
    ledger.say(Kind.READ, "something was read")
    ledger.say(Kind.DROPPED, "3 rows were dropped", rows=3, episodes=1, reward=0.25)
    ledger.say(Kind.WARNING, "beware")
    return ledger


def test_it_accounts_for_rows_and_columns() -> None:
    ledger = filled()
    assert (ledger.dropped, [each.name for each in ledger.used], [each.name for each in ledger.unused]) == (
        3, ["a"], ["b"],
    )  # fmt: skip
    assert ledger.lines() == ["something was read", "3 rows were dropped (25.0% of the reward)"]
    assert ledger.lines(Kind.WARNING) == ["beware"]
    assert ledger.text() == [
        "rows: 10 read, 3 dropped, 7 kept", "columns used: a as reward", "columns not used: b (not needed)",
        "read as: something was read", "dropped: 3 rows were dropped (25.0% of the reward)",
    ]  # fmt: skip


def test_it_survives_json() -> None:
    assert Ledger.from_json(json.loads(json.dumps(filled().to_json()))) == filled()


def test_a_dataset_made_in_memory_has_an_empty_one() -> None:
    data = Dataset([[0.0]], [[0.0]], [1.0], [[0.0]], [True], [False])
    assert Ledger.of(data) == Ledger(1)


def test_joined_datasets_keep_the_account_of_each() -> None:
    rows = {"obs": np.arange(6.0), "action": np.zeros(6), "reward": np.ones(6), "episode": [0] * 3 + [1] * 3}
    first = load_vectors(rows, name="first", last_step="drop")
    second = load_vectors({**rows, "done": [0, 0, 1] * 2}, name="second")
    ledger = Ledger.of(concatenate([first, second]))
    assert (ledger.rows, ledger.dropped) == (12, 2)
    assert [each.name for each in ledger.columns] == ["obs", "action", "reward", "episode", "done"]
    assert any(line.startswith("first: the last step of an episode") for line in ledger.lines(Kind.DROPPED))
    made = Dataset([[0.0]], [[0.0]], [1.0], [[0.0]], [True], [False])
    assert "ledger" not in concatenate([made, made]).provenance


def test_shares_of_the_reward() -> None:
    rows = np.array([True, False, True])
    assert reward_share(np.array([1.0, -2.0, np.nan]), rows) == pytest.approx(1 / 3)
    assert reward_share(np.zeros(3), rows) == 0


def test_a_loss_is_refused_beyond_one_percent() -> None:
    refuse_loss("x", "rows would go", "say so", 0.01, 0.01)
    with pytest.raises(SappError, match=r"x: rows would go, and with that 1\.1 % of the reward; say so"):
        refuse_loss("x", "rows would go", "say so", 0.011, 0.0)
