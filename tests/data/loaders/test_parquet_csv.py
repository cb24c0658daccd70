from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from sapp.core.errors import SappError
from sapp.data import Dataset, Ledger, load


def columns_of(data: Dataset, successors: bool = True) -> dict[str, Any]:
    """A table of one row a step with the usual names; float32 values widened, so that text holds them exactly."""
    table: dict[str, Any] = {
        "episode": np.repeat(np.arange(data.num_episodes), data.episode_lengths),
        "step": data.step,
        "reward": data.reward.astype(np.float64),
        "terminal": data.terminal,
        "timeout": data.timeout,
    }
    for key in ("observation", "action", *(["next_observation"] if successors else [])):
        for i, column in enumerate(getattr(data, key).T.astype(np.float64)):
            table[f"{key}_{i}"] = column
    return table


def write(path: Path, table: dict[str, Any]) -> Path:
    if path.suffix == ".parquet":
        pa.parquet.write_table(pa.table(table), path)
    else:
        names = list(table)
        rows = zip(*(np.asarray(table[name]).tolist() for name in names), strict=True)
        text = "\n".join([",".join(names), *(",".join(str(value) for value in row) for row in rows)])
        path.write_text(text + "\n")
    return path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_d4rls_data_is_the_same_in_every_format(d4rl_file: Path, tmp_path: Path, ending: str) -> None:
    data = load(d4rl_file)
    found = load(write(tmp_path / f"log.{ending}", columns_of(data)))
    assert found.fingerprint == data.fingerprint
    assert found.name == "log"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_in_any_order(small: Dataset, tmp_path: Path, ending: str) -> None:
    order = np.random.default_rng(1).permutation(6)
    shuffled = {key: np.asarray(value)[order] for key, value in columns_of(small).items()}
    found = load(write(tmp_path / f"log.{ending}", shuffled))
    assert found.fingerprint == small.fingerprint
    assert "rows were sorted by episode and step" in Ledger.of(found).lines()


def test_interleaved_episodes_without_a_time_column(small: Dataset, tmp_path: Path) -> None:
    table = {key: np.asarray(value)[[0, 3, 1, 5, 4, 2]] for key, value in columns_of(small).items() if key != "step"}
    table["episode"] = np.array(["x", "c", "a"])[table["episode"]]
    found = load(write(tmp_path / "log.csv", table))
    # Episodes stand in the order in which they first appear, text ids or not.
    assert found.fingerprint == small.fingerprint


def test_lists_in_parquet(small: Dataset, tmp_path: Path) -> None:
    table = {
        "obs": pa.array(list(small.observation)),
        "action": pa.FixedSizeListArray.from_arrays(pa.array(small.action.reshape(-1)), 3),
        "next_obs": pa.array(list(small.next_observation)),
        "reward": small.reward,
        "terminated": small.terminal,
        "truncated": small.timeout,
    }
    assert load(write(tmp_path / "log.parquet", table)).fingerprint == small.fingerprint


def test_compressed_csv(small: Dataset, tmp_path: Path) -> None:
    import gzip

    path = write(tmp_path / "log.csv", columns_of(small))
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert load(tmp_path / "log.csv.gz").fingerprint == small.fingerprint


def test_without_successors(small: Dataset, tmp_path: Path) -> None:
    found = load(write(tmp_path / "log.csv", columns_of(small, successors=False)), last_step="drop")
    # The time-out on row 4 has no successor; row 3 becomes the time-out.
    assert found.reward.tolist() == [1, 2, 3, 4, 6]
    assert found.timeout.tolist() == [False, False, False, True, False]
    np.testing.assert_array_equal(found.next_observation[[0, 1, 3]], small.observation[[1, 2, 4]])


def test_numbered_columns_sort_by_number(tmp_path: Path) -> None:
    table: dict[str, Any] = {f"obs_{i}": [float(i)] for i in reversed(range(12))}
    found = load(write(tmp_path / "log.csv", {**table, "action_1": [0.5], "reward": [1], "done": [1]}))
    assert found.observation[0].tolist() == list(range(12))


def test_done_at_a_timeout_is_no_terminal(small: Dataset, tmp_path: Path) -> None:
    table = columns_of(small)
    table["done"] = table.pop("terminal") | table["timeout"]
    assert load(write(tmp_path / "log.csv", table)).fingerprint == small.fingerprint


def test_episodes_alone_end_in_timeouts(small: Dataset, tmp_path: Path) -> None:
    table = columns_of(small)
    del table["terminal"], table["timeout"]
    found = load(write(tmp_path / "log.csv", table))
    assert found.timeout.tolist() == [False, False, True, False, True, True]
    assert "no column says that an episode ended" in " ".join(Ledger.of(found).lines())


def test_action_bounds_are_inferred_and_stated(tmp_path: Path) -> None:
    table = {
        "obs_0": [0.0, 1.0],
        "action_0": [0.0, 100.0],
        "action_1": [0.2, -0.3],
        "action_2": [7.0, 7.0],
        "reward": [0, 0],
        "terminal": [0, 1],
    }
    path = write(tmp_path / "log.csv", table)
    found = load(path)
    assert found.action_low.tolist() == [0, -1, 6]
    assert found.action_high.tolist() == [100, 1, 8]
    said = "taken from the data (dimension 0, 2: 0 to 100, 6 to 8)"
    assert said in " ".join(Ledger.of(found).lines())
    assert "taken from the data" not in " ".join(Ledger.of(load(path, action_low=-200, action_high=200)).lines())


GOOD = "episode,step,obs_0,obs_1,action_0,reward,terminal\n0,0,1,2,0.5,1,0\n0,1,3,4,0.5,1,1\n"
BAD: dict[str, tuple[str, list[str]]] = {
    "text in a column": (GOOD.replace("3,4", "3,high"), ["'obs_1'", "'high'", "row 1", "not a number"]),
    "gap in a column": (GOOD.replace("3,4", "3,"), ["'obs_1'", "empty", "row 1"]),
    "nan in a column": (GOOD.replace("3,4", "3,nan"), ["'obs_1'", "NaN", "row 1"]),
    "no reward": (GOOD.replace("reward", "gain"), ["no reward columns", "gain"]),
    "no actions": (GOOD.replace("action_0", "u"), ["no action columns", "columns are", "u"]),
    "skipped number": (GOOD.replace("obs_1", "obs_2"), ["obs_", "skip number 1"]),
    "only a header": (GOOD.splitlines()[0] + "\n", ["0 rows"]),
    "nothing": ("", ["empty"]),
    "blank lines": ("\n\n", ["csv"]),
    "uneven rows": (GOOD + "0,1\n", ["csv", "Expected 7 columns, got 2"]),
    "column twice": (GOOD.replace("obs_1", "obs_0"), ["'obs_0'", "more than once"]),
    "time twice": (GOOD.replace("0,1,3", "0,0,3"), ["episode 0", "step 0", "row 1"]),
    "text as time": (GOOD.replace("0,1,3", "0,late,3"), ["'step'", "'late'", "row 1"]),
    "nothing tells of episodes": (
        GOOD.replace("episode", "a").replace("terminal", "b"),
        ["no terminal, timeout or episode column"],
    ),
    "goes on after its end": (GOOD + "0,2,5,6,0.5,1,0\n", ["episode 0", "terminal", "row 1"]),
    "flag of seven": (GOOD.replace("1,1\n", "1,7\n"), ["terminal", "7", "row 1"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_csv(tmp_path: Path, case: str) -> None:
    text, words = BAD[case]
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(SappError) as caught:
        load(path)
    message = str(caught.value)
    assert "\n" not in message
    for word in ["bad.csv", *words]:
        assert word in message


def test_the_good_csv_is_good(tmp_path: Path) -> None:
    (tmp_path / "good.csv").write_text(GOOD)
    data = load(tmp_path / "good.csv")
    assert data.observation.tolist() == [[1, 2], [3, 4]]
    assert data.next_observation.tolist() == [[3, 4], [3, 4]]
    assert data.terminal.tolist() == [False, True]


def test_bad_parquet(small: Dataset, tmp_path: Path) -> None:
    path = write(tmp_path / "log.parquet", columns_of(small))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(SappError, match=r"log\.parquet: cannot be read as parquet"):
        load(path)
    rows = {"action": [[0.0], [0.0]], "reward": [0.0, 1.0], "terminal": [False, True]}
    uneven = {"obs": [[1.0, 2.0], [1.0]], **rows}
    with pytest.raises(SappError, match="'obs' is 1 wide at row 1 but 2 at row 0"):
        load(write(path, uneven))
    with pytest.raises(SappError, match="'obs' is empty or NaN at row 1"):
        load(write(path, {"obs": [[1.0, 2.0], [1.0, None]], **rows}))
    with pytest.raises(SappError, match="'obs' is empty or NaN at row 1"):
        load(write(path, {"obs": [[1.0], [float("nan")]], **rows}))
    with pytest.raises(SappError, match="'reward' is inf at row 0"):
        load(write(path, {"obs": [[1.0], [2.0]], **rows, "reward": [float("inf"), 1.0]}))
    with pytest.raises(SappError, match="'obs' holds lists of string"):
        load(write(path, {"obs": [["a"], ["b"]], **rows}))


def test_missing_episode_id(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(GOOD.replace("0,1,3", ",1,3"))
    with pytest.raises(SappError, match="'episode' is empty or NaN at row 1"):
        load(tmp_path / "log.csv")


def test_rows_in_errors_after_sorting_say_so(tmp_path: Path) -> None:
    text = "episode,step,obs_0,action_0,reward,terminal\n0,1,1,0.5,1,7\n0,0,1,0.5,1,0\n"
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(SappError, match=r"log\.csv \(rows counted after sorting by episode\): terminal is 7 at row 1"):
        load(tmp_path / "log.csv")
