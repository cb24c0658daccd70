"""Values as real logs hold them: NaN where a null was meant, text where numbers were, codes, lists with holes."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from sapp.core.errors import SappError
from sapp.data import Dataset, Ledger, load
from sapp.data.check import check
from sapp.data.ledger import Kind

NAN = float("nan")


def log(**more: Any) -> dict[str, Any]:
    """Two episodes of four steps, each to a terminal; rewards 0 to 7, observations 0 to 0.7."""
    return {
        "episode": [0] * 4 + [1] * 4,
        "step": [0, 1, 2, 3] * 2,
        "obs": [0.1 * i for i in range(8)],
        "action": [0.5] * 8,
        "reward": [float(i) for i in range(8)],
        "terminal": [0, 0, 0, 1] * 2,
        **more,
    }


def write(path: Path, table: dict[str, Any]) -> Path:
    pa.parquet.write_table(pa.table({key: value for key, value in table.items() if value is not None}), path)
    return path


def read(folder: Path, table: dict[str, Any], **columns: Any) -> Dataset:
    usual = {"episode": "episode", "time": "step", "observation": "obs", "action": "action", "terminal": "terminal"}
    mapping = {**usual, "scale": "none", **columns}
    data = load(write(folder / "log.parquet", table), columns={k: v for k, v in mapping.items() if v is not None})
    assert isinstance(data, Dataset)
    return data


def refusal(folder: Path, table: dict[str, Any], **columns: Any) -> str:
    with pytest.raises(SappError) as caught:
        read(folder, table, **columns)
    message = str(caught.value)
    assert message.startswith(str(folder / "log.parquet"))
    assert "\n" not in message
    return message


def with_(values: list[Any], row: int, value: Any) -> list[Any]:
    return [*values[:row], value, *values[row + 1 :]]


STEPS = [0.0, 1.0, 2.0, 3.0] * 2
DATES = [np.datetime64("2024-01-01") + day for day in (0, 1, 2, 3)] * 2


@pytest.mark.parametrize("missing", [None, "drop", "fill"])
@pytest.mark.parametrize(
    ("step", "found"),
    [
        (with_(STEPS, 2, NAN), "'step' is empty or NaN at row 2"),
        (with_(STEPS, 5, None), "'step' is empty or NaN at row 5"),
        (with_(STEPS, 6, float("inf")), "'step' is inf at row 6"),
        (np.array(with_(DATES, 2, np.datetime64("NaT"))).astype("datetime64[us]"), "'step' is empty or NaN at row 2"),
        # not a null in the file: the number that stands for NaT
        (
            pa.array(with_(list(range(8)), 3, np.iinfo(np.int64).min)).view(pa.timestamp("us")),
            "'step' is empty or NaN at row 3",
        ),
    ],
)
def test_times_that_are_none(tmp_path: Path, step: Any, found: str, missing: str | None) -> None:
    assert found in refusal(tmp_path, log(step=step), missing=missing)


@pytest.mark.parametrize("value", [NAN, None])
@pytest.mark.parametrize("missing", [None, "drop", "fill"])
def test_episodes_that_are_none(tmp_path: Path, value: float | None, missing: str | None) -> None:
    table = log(episode=pa.array(with_([0.0] * 4 + [1.0] * 4, 2, value), from_pandas=False))
    assert "'episode' is empty or NaN at row 2" in refusal(tmp_path, table, missing=missing)


def test_float_ids_and_times_without_holes_are_good(tmp_path: Path) -> None:
    data = read(tmp_path, log(episode=[0.0] * 4 + [1.0] * 4, step=STEPS))
    assert data.episode_lengths.tolist() == [4, 4]


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


def test_what_is_dropped_after_a_split_is_named_by_its_row(tmp_path: Path) -> None:
    table = log(obs=with_(log()["obs"], 7, None), step=[0, 1, 2, 3, 0, 1, 5, 6])
    data = read(tmp_path, table, missing="drop", gaps="split")
    assert data.reward.tolist() == [0, 1, 2, 3, 4]
    said = Ledger.of(data).lines(Kind.DROPPED)[0]
    assert said.startswith("1 of 3 episodes were dropped for empty values, 2 rows (the first empty value is at row 7)")


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


PAIRS: list[Any] = [[0.1 * i, 1.0 + i] for i in range(8)]
HOLES = {
    "null in a list": [None, 3.0],
    "NaN in a list": [NAN, 3.0],
    "no list at all": None,
}


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float64(), 2), pa.large_list(pa.float64())])
@pytest.mark.parametrize("hole", HOLES)
def test_lists_with_holes(tmp_path: Path, hole: str, kind: pa.DataType) -> None:
    table = log(obs=pa.array(with_(PAIRS, 2, HOLES[hole]), kind))
    message = refusal(tmp_path, table)
    assert "'obs' is empty or NaN at row 2" in message
    assert "missing = 'fill' or 'drop'" in message
    filled = read(tmp_path, table, missing="fill")
    np.testing.assert_allclose(filled.observation[2], [0.1, 2.0] if HOLES[hole] is None else [0.1, 3.0], rtol=1e-6)
    np.testing.assert_allclose(filled.observation[[0, 1, 3, 4, 7]], np.array(PAIRS)[[0, 1, 3, 4, 7]], rtol=1e-6)
    assert read(tmp_path, table, missing="drop").reward.tolist() == [4, 5, 6, 7]


def test_the_column_beside_a_list_is_named(tmp_path: Path) -> None:
    table = log(obs=PAIRS, speed=with_([0.0] * 8, 6, None), heat=[0.0] * 8)
    message = refusal(tmp_path, table, observation=["heat", "obs", "speed"])
    assert "'speed' is empty or NaN at row 6" in message


def test_lists_without_a_single_value(tmp_path: Path) -> None:
    table = log(obs=pa.array([None] * 8, pa.list_(pa.float64())))
    assert "every episode has empty values" in refusal(tmp_path, table, missing="drop")
    assert "'obs' is empty or NaN at row 0" in refusal(tmp_path, log(obs=pa.nulls(8)))


@pytest.mark.parametrize("flag", ["terminal", "timeout"])
@pytest.mark.parametrize(
    ("off", "on", "hole"),
    [(0.0, 1.0, NAN), (0, 1, None), (False, True, None), ("no", "yes", None)],
    ids=["NaN", "null", "bool", "words"],
)
def test_flags_with_holes(tmp_path: Path, flag: str, off: Any, on: Any, hole: Any) -> None:
    column = pa.array([off, hole, off, off, off, off, off, on], from_pandas=False)
    table, columns = log(**{"terminal": None, flag: column}), {"terminal": None, flag: flag}
    columns |= {"last_step": "drop"} if flag == "timeout" else {}
    assert f"'{flag}' is empty or NaN at row 1 and cannot be filled" in refusal(tmp_path, table, **columns)
    message = refusal(tmp_path, table, **columns, missing="fill")
    assert f"'{flag}' is empty or NaN at row 1 and cannot be filled; fix it, or choose missing = 'drop'" in message
    data = read(tmp_path, table, **columns, missing="drop")
    assert data.reward.tolist() == ([4, 5, 6, 7] if flag == "terminal" else [4, 5, 6])


@pytest.mark.parametrize("values", [[0, 1, None, 1, 0, 1, 1, 0], ["a", "b", None, "b", "a", "b", "b", "a"]])
def test_choices_with_holes(tmp_path: Path, values: list[Any]) -> None:
    assert "'action' is empty or NaN at row 2" in refusal(tmp_path, log(action=values), action_kind="discrete")
    data = read(tmp_path, log(action=values), action_kind="discrete", missing="drop")
    assert data.num_actions == 2
    assert data.action.tolist() == [0, 1, 1, 0]


def test_decimals_are_numbers(tmp_path: Path) -> None:
    plain = read(tmp_path, log())
    names = ("obs", "action", "reward", "terminal", "step")
    table = log(**{key: [Decimal(f"{value:.2f}") for value in log()[key]] for key in names})
    assert pa.types.is_decimal(pa.table(table).column("obs").type)
    assert read(tmp_path, table).fingerprint == plain.fingerprint
    pairs = read(tmp_path, log(obs=[[Decimal("0.25"), Decimal("1.50")]] * 8))
    assert pairs.observation[7].tolist() == [0.25, 1.5]


@pytest.mark.parametrize("name", ["obs", "action", "reward"])
@pytest.mark.parametrize("first", ["-0.13", None])
def test_numbers_stored_as_text(tmp_path: Path, name: str, first: str | None) -> None:
    message = refusal(tmp_path, log(**{name: [first, *["-0.13"] * 7]}), missing="drop")
    row = 0 if first else 1
    assert f"column {name!r} holds numbers stored as text ('-0.13' at row {row})" in message
    assert "convert the column to numbers" in message


def test_times_stored_as_text(tmp_path: Path) -> None:
    days = [f"2024-01-0{day}T12:00:00" for day in (1, 2, 3, 4)] * 2
    assert "'step' holds dates stored as text ('2024-01-01T12:00:00' at row 0); convert the column to dates" in refusal(
        tmp_path, log(step=days)
    )
    assert "'step' holds numbers stored as text ('0' at row 0)" in refusal(tmp_path, log(step=list("01230123")))
    slip = refusal(tmp_path, log(step=with_(days, 5, "noon")))
    assert "'step' is 'noon' at row 5, not a number or a date" in slip


@pytest.mark.parametrize(
    ("values", "found", "labels", "numbers"),
    [
        ([-1, 0, 1, -1] * 2, "'action' is -1 at row 0", ["-1", "0", "1"], [0, 1, 2, 0]),
        ([0.0, 2.0, -1.0, 0.0] * 2, "'action' is -1.0 at row 2", ["-1", "0", "2"], [1, 2, 0, 1]),
        ([0.5, 1.0, 0.5, 1.0] * 2, "'action' is 0.5 at row 0", ["0.5", "1"], [0, 1, 0, 1]),
    ],
)
def test_codes_that_are_no_numbers_from_zero(
    tmp_path: Path, values: list[float], found: str, labels: list[str], numbers: list[int]
) -> None:
    message = refusal(tmp_path, log(action=values), action_kind="discrete")
    assert f"{found}, but discrete actions are whole numbers from 0" in message
    assert "action_labels = [" + ", ".join(f'"{label}"' for label in labels) + "]" in message
    data = read(tmp_path, log(action=values), action_labels=labels)
    assert data.action[:4].tolist() == numbers
    assert data.action_labels == tuple(labels)


def test_many_codes_are_not_listed(tmp_path: Path) -> None:
    values = [-1.0 - i for i in range(24)]
    table = {key: list(value) * 3 for key, value in log().items()} | {"step": list(range(12)) * 2, "action": values}
    table |= {"episode": [0] * 12 + [1] * 12, "terminal": [0] * 24}
    message = refusal(tmp_path, table, action_kind="discrete")
    assert "set all 24 codes as action_labels" in message
    assert len(message) < 500


MAPPING = """
episode = "episode"
time = "step"
observation = "obs"
action = "action"
terminal = "terminal"
action_kind = "discrete"
"""


@pytest.mark.parametrize("number", [int, float])
def test_codes_with_holes_between_are_said(tmp_path: Path, number: type) -> None:
    path = write(tmp_path / "log.parquet", log(action=[number(code) for code in (7, 12, 17, 7, 7, 12, 17, 7)]))
    (tmp_path / "map.toml").write_text(MAPPING)
    page = " ".join(check(path, tmp_path / "map.toml").findings)
    assert (
        "actions count from 0 to 17, but 15 of these 18 are never taken (0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 13, 14, "
        '15, 16) (certain): if the numbers are codes, set action_labels = ["7", "12", "17"] in a column mapping'
    ) in page
    # what it advises works, and leaves nothing to say
    (tmp_path / "map.toml").write_text(MAPPING + 'action_labels = ["7", "12", "17"]\n')
    found = check(path, tmp_path / "map.toml")
    assert "3 discrete actions" in found.summary
    assert not any("never taken" in line for line in found.findings)


def test_labels_that_never_occur_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "log.parquet", log(action=list("abababab")))
    (tmp_path / "map.toml").write_text(MAPPING + 'action_labels = ["a", "b", "c"]\n')
    page = " ".join(check(path, tmp_path / "map.toml").findings)
    assert "never taken: c (certain): nothing can be learned of these actions" in page


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
