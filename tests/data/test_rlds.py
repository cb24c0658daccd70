from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sapp.data import Ledger, load_vectors
from sapp.data.columns import Columns
from sapp.data.ledger import Kind
from sapp.data.rlds import steps_of_rlds
from sapp.data.table import Table

LENGTHS, ENDS = [6, 3, 8], [False, True, False]


def rows() -> dict[str, Any]:
    """Three episodes as RLDS has them: a row more than steps, for the last observation."""
    count = [n + 1 for n in LENGTHS]
    at = np.concatenate([np.arange(n) for n in count])
    number = np.repeat(range(3), count)
    last = at == np.repeat(LENGTHS, count)
    return {
        "observation": np.column_stack([100 * number + at, number]), "action": np.where(last, 0.0, 0.5),
        "reward": np.where(last, 0.0, 1.0), "is_first": at == 0, "is_last": last,
        "is_terminal": last & np.repeat(ENDS, count),
    }  # fmt: skip


def test_the_last_observation_is_no_step() -> None:
    data = load_vectors(rows())
    assert data.episode_lengths.tolist() == LENGTHS
    assert data.terminal[data.episode_ends].tolist() == ENDS
    assert data.timeout[data.episode_ends].tolist() == [True, False, True]
    assert data.episode_returns.tolist() == LENGTHS
    np.testing.assert_array_equal(data.next_observation[:, 0], data.observation[:, 0] + 1)
    assert set(data.action[:, 0].tolist()) == {0.5}
    ledger = Ledger.of(data)
    assert (ledger.rows, ledger.dropped, data.size) == (20, 3, 17)
    assert "3 rows marked is_last hold an episode's last observation only" in ledger.lines(Kind.DROPPED)[0]


def test_what_only_looks_like_it_is_left_alone() -> None:
    def unchanged(table: dict[str, Any], columns: Columns | None = None) -> Ledger:
        given, ledger = Table.of_arrays(table, 20, "x"), Ledger()
        assert steps_of_rlds(given, columns or Columns(), ledger)[0] is given
        return ledger

    paid = rows()
    paid["reward"] = paid["reward"] + paid["is_last"]
    assert "3 rows marked is_last have a reward" in unchanged(paid).lines(Kind.WARNING)[0]
    for change in ({"is_first": np.zeros(20, bool)}, {"next_observation": paid["observation"]}):
        assert unchanged({**rows(), **change}).entries == []
    unchanged(rows(), Columns(ignore=("is_first",)))
    unchanged(rows(), Columns(observation=("observation",), action=("action",)))
    with pytest.raises(AssertionError):
        unchanged(rows())
