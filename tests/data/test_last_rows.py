"""What logs leave empty at the ends of episodes: read for what it is, or refused with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from log_sources import frame, in_form

from sapp.core.errors import SappError
from sapp.data import Dataset, Ledger, load_vectors

LENGTHS = [4, 5, 3]


def _with_last_observations(flag: str) -> dict[str, Any]:
    """A row more per episode, without action and reward; the first two episodes end, the third is cut."""
    rows: dict[str, list[Any]] = {key: [] for key in ("episode", "step", "obs", "action", "reward", "terminal")}
    for number, steps in enumerate(LENGTHS):
        for step in range(steps + 1):
            rows["episode"].append(number)
            rows["step"].append(step)
            rows["obs"].append([10.0 * number + step, 0.5 * step])
            rows["action"].append(0.1 * step if step < steps else np.nan)
            rows["reward"].append(1.0 + step if step < steps else np.nan)
            ends = {"last": step == steps, "before": step == steps - 1, "both": step >= steps - 1}[flag]
            rows["terminal"].append(ends and number < 2)
    return {key: np.array(value) for key, value in rows.items()}


@pytest.mark.parametrize("flag", ["last", "before", "both"])
@pytest.mark.parametrize("form", ["csv", "dictionary"])
def test_rows_with_an_observation_only_are_the_next_one_of_the_row_before(tmp_path: Path, flag: str, form: str) -> None:
    data = load_vectors(in_form(_with_last_observations(flag), form, tmp_path))
    assert data.episode_lengths.tolist() == LENGTHS
    assert data.terminal[data.episode_ends].tolist() == [True, True, False]
    np.testing.assert_allclose(data.observation[:, 0], [0, 1, 2, 3, 10, 11, 12, 13, 14, 20, 21, 22])
    np.testing.assert_allclose(data.next_observation[:, 0], data.observation[:, 0] + 1)
    np.testing.assert_allclose(data.episode_returns, [10, 15, 6])
    ledger = Ledger.of(data)
    assert (ledger.rows, ledger.dropped) == (15, 3)
    assert any("3 last rows of episodes have neither action nor reward" in line for line in ledger.lines())


def test_rows_before_gaps_have_no_known_successor() -> None:
    table = _with_last_observations("last")
    table = {key: value[np.arange(15) != 7] for key, value in table.items()}  # step 2 of the second episode
    data = load_vectors(table, columns={"episode": "episode", "time": "step", "gaps": "split"})
    assert data.observation[:, 0].tolist() == [0, 1, 2, 3, 10, 13, 14, 20, 21, 22]
    assert data.next_observation[:, 0].tolist() == [1, 2, 3, 4, 11, 14, 15, 21, 22, 23]
    assert data.episode_lengths.tolist() == [4, 1, 2, 3]


def test_where_only_some_episodes_have_such_a_row_it_is_an_empty_value() -> None:
    table = {key: value[:-1] for key, value in _with_last_observations("last").items()}
    with pytest.raises(SappError, match="'action' is empty or NaN at row 4"):
        load_vectors(table)


def test_whole_numbers_with_an_empty_cell_are_discrete_actions(tmp_path: Path) -> None:
    table = _with_last_observations("last")
    cells = ["" if np.isnan(value) else str(int(10 * value) % 3) for value in table["action"]]
    rows = zip(table["episode"], table["step"], table["obs"][:, 0], cells, table["reward"], table["terminal"],
               strict=True)  # fmt: skip
    text = "\n".join(",".join(map(str, row)).replace("nan", "") for row in rows)
    (tmp_path / "log.csv").write_text(f"episode,step,obs,action,reward,terminal\n{text}\n")
    data = load_vectors(tmp_path / "log.csv")
    assert data.num_actions == 3
    assert data.action.tolist() == [0, 1, 2, 0, 0, 1, 2, 0, 1, 0, 1, 2]
    words = text.replace(",0,1.0", ",none,1.0")
    (tmp_path / "log.csv").write_text(f"episode,step,obs,action,reward,terminal\n{words}\n")
    assert load_vectors(tmp_path / "log.csv").action_labels == ("0", "1", "2", "none")


def _with_successors(empty: list[int], shift: float = 0.0) -> dict[str, Any]:
    table = frame(LENGTHS)
    ends = np.cumsum(LENGTHS) - 1
    after = np.roll(table["obs"], -1, axis=0) + shift
    after[ends] = 77.0
    after[empty] = np.nan
    terminal = np.isin(np.arange(12), ends[:2])
    return {"episode": table["episode"], "obs": table["obs"], "action": table["action"], "next_obs": after,
            "reward": np.ones(12), "terminal": terminal}  # fmt: skip


def test_successors_are_not_needed_where_the_task_ended() -> None:
    data = load_vectors(_with_successors([3, 8]))
    np.testing.assert_array_equal(data.next_observation[[3, 8]], data.observation[[3, 8]])
    np.testing.assert_array_equal(data.next_observation[11], [77, 77])
    assert (data.size, data.terminal.sum(), data.timeout.sum()) == (12, 2, 1)


def test_successors_that_are_empty_at_every_end_are_taken_from_the_rows() -> None:
    data = load_vectors(_with_successors([3, 8, 11]), last_step="drop")
    assert isinstance(data, Dataset)
    assert data.episode_lengths.tolist() == [4, 5, 2]
    np.testing.assert_array_equal(data.next_observation[9], data.observation[10])


def test_what_followed_a_cut_is_never_filled() -> None:
    with pytest.raises(SappError, match="'next_obs' is empty or NaN at row 11 and cannot be filled"):
        load_vectors(_with_successors([3, 8, 11], shift=0.5), columns={"missing": "fill"})


def test_rewards_of_the_step_before_are_refused() -> None:
    table = _with_successors([])
    table["reward"][[0, 4, 9]] = np.nan
    with pytest.raises(SappError, match=r"'reward' is empty on the first row of every episode.*move rewards up"):
        load_vectors(table)
