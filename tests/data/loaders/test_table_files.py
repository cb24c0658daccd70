"""A folder of Parquet files is one log."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from sapp.cli.main import main
from sapp.core.errors import SappError
from sapp.data import Dataset, Ledger, load
from sapp.data.ledger import Kind

ROWS = {
    "obs_0": [float(i) for i in range(12)],
    "action_0": [0.1 * i - 0.5 for i in range(12)],
    "reward": [float(i) for i in range(12)],
    "terminal": [0] * 11 + [1],
}


def parts(folder: Path, names: list[str]) -> Path:
    """The rows above, in equal parts: no column says in which order they come."""
    folder.mkdir()
    size = 12 // len(names)
    for i, name in enumerate(names):
        table = pa.table({key: value[i * size : (i + 1) * size] for key, value in ROWS.items()})
        pa.parquet.write_table(table, folder / name)
    return folder


@pytest.mark.parametrize("folder", ["logs", "log.parquet"])
@pytest.mark.parametrize(
    "names",
    [
        ["part-00000-c.parquet", "part-00001-b.parquet", "part-00002-a.parquet"],
        ["part-1.parquet", "part-2.parquet", "part-10.parquet"],
        ["whole.parquet"],
    ],
)
def test_parts_make_one_table_by_name(tmp_path: Path, folder: str, names: list[str]) -> None:
    pa.parquet.write_table(pa.table(ROWS), tmp_path / "one.parquet")
    path = parts(tmp_path / folder, names)
    (path / "_SUCCESS").write_bytes(b"")
    (path / ".part-00000-c.parquet.crc").write_bytes(b"x")
    (path / "_metadata.parquet").write_bytes(b"x")
    data = load(path)
    assert data.fingerprint == load(tmp_path / "one.parquet").fingerprint
    assert data.name == folder.split(".")[0]
    assert [part["name"] for part in data.provenance["parts"]] == names
    first = (path / names[0]).read_bytes()
    assert data.provenance["parts"][0]["sha256"] == hashlib.sha256(first).hexdigest()
    said = f"{len(names)} files were read as one table, {names[0]} first and {names[-1]} last"
    assert (said in Ledger.of(data).lines()) == (len(names) > 1)


def test_parts_take_a_mapping_and_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = parts(tmp_path / "logs", ["a.parquet", "b.parquet"])
    columns: dict[str, Any] = {"observation": ["obs_0"], "action": ["action_0"], "terminal": "terminal"}
    data = load(path, columns={**columns, "scale": "none"}, action_low=-2, action_high=2, name="mine")
    assert data.reward.tolist() == ROWS["reward"]
    assert data.action_high.tolist() == [2]
    assert data.name == "mine"
    assert main(["data", "check", str(path)]) == 0
    assert "2 files were read as one table" in capsys.readouterr().out


def test_parts_may_differ_in_types_and_order_of_columns(tmp_path: Path) -> None:
    path = parts(tmp_path / "logs", ["a.parquet", "b.parquet"])
    second = {key: ROWS[key][6:] for key in reversed(ROWS)} | {"reward": list(range(6, 12))}
    pa.parquet.write_table(pa.table(second), path / "b.parquet")
    assert load(path).reward.tolist() == ROWS["reward"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"reward": None, "gain": [0.0] * 6}, ["a.parquet and b.parquet differ in column 'gain'"]),
        ({"reward": ["high"] * 6}, ["do not make one table", "reward", "same column types"]),
        (b"PAR1 and then nothing", ["b.parquet: cannot be read as parquet"]),
        (b"", ["b.parquet: the file is empty"]),
    ],
)
def test_parts_that_do_not_fit(tmp_path: Path, change: dict[str, Any] | bytes, words: list[str]) -> None:
    path = parts(tmp_path / "logs", ["a.parquet", "b.parquet"])
    if isinstance(change, bytes):
        (path / "b.parquet").write_bytes(change)
    else:
        table = {key: value[6:] for key, value in ROWS.items()} | change
        pa.parquet.write_table(pa.table({k: v for k, v in table.items() if v is not None}), path / "b.parquet")
    with pytest.raises(SappError) as caught:
        load(path)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def days(folder: Path, names: list[str], rows: dict[str, Any] | None = None) -> Path:
    """The rows above (or others) in parts, each in a folder of its own."""
    table = pa.table(ROWS if rows is None else rows)
    size = table.num_rows // len(names)
    for i, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pa.parquet.write_table(table.slice(i * size, size), folder / name)
    return folder


NESTED = ["day=2024-01-02/part-2.parquet", "day=2024-01-02/part-10.parquet", "day=2024-01-10/part-0.parquet"]


@pytest.mark.parametrize("names", [NESTED, ["2/a.parquet", "10/x/b.parquet", "10/y/a.parquet"]])
@pytest.mark.parametrize("folder", ["logs", "log.parquet"])
def test_parts_in_subfolders_are_read_in_order(tmp_path: Path, folder: str, names: list[str]) -> None:
    pa.parquet.write_table(pa.table(ROWS), tmp_path / "one.parquet")
    path = days(tmp_path / folder, names)
    (path / "_delta_log").mkdir()
    (path / "_delta_log" / "0.parquet").write_bytes(b"x")
    (path / "around").symlink_to(path)
    data = load(path)
    assert data.fingerprint == load(tmp_path / "one.parquet").fingerprint
    assert [part["name"] for part in data.provenance["parts"]] == names
    assert f"3 files were read as one table, {names[0]} first and {names[-1]} last" in Ledger.of(data).lines()
    assert ("day" in [each.name for each in Ledger.of(data).unused]) == (names is NESTED)


MAPPING: dict[str, Any] = {"observation": ["obs_0"], "action": ["action_0"], "episode": "batch", "scale": "none"}


@pytest.mark.parametrize(
    "values", [["2", "10"], ["02", "10"], ["7", "07"], ["-1.5", "0"], ["2024-01-02", "2024-01-10"], ["a b", "b%2Fc"]]
)
def test_a_key_in_folder_names_is_a_column_if_it_is_named(tmp_path: Path, values: list[str]) -> None:
    names = [f"run=1/batch={value}/{part}.parquet" for value in values for part in "ab"]
    rows = {key: value for key, value in ROWS.items() if key != "terminal"}
    path = days(tmp_path / "logs", names, rows)
    data = load(path, columns=MAPPING, last_step="drop")
    # the last row of each batch has no successor
    assert data.episode_lengths.tolist() == [5, 5]
    assert sorted(data.reward.tolist()) == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]
    assert "run" in [each.name for each in Ledger.of(data).unused]


def test_keys_in_folder_names_order_rows_and_are_numbers(tmp_path: Path) -> None:
    rows = {"obs_0": [0.0] * 4, "action_0": [0.0] * 4, "reward": [0.0, 1.0, 2.0, 3.0], "batch": [1, 2, 1, 2]}
    path = days(tmp_path / "logs", ["minute=10/a.parquet", "minute=9/a.parquet"], rows)
    columns = {**MAPPING, "observation": ["obs_0", "minute"], "time": "minute", "next_observation": ["minute", "obs_0"]}
    data = load(path, columns=columns)
    assert data.reward.tolist() == [2, 0, 3, 1]
    assert data.observation.tolist() == [[0, 9], [0, 10]] * 2


def test_a_column_of_the_files_counts_more_than_folder_names(tmp_path: Path) -> None:
    rows = {**ROWS, "batch": [5] * 12}
    path = days(tmp_path / "logs", ["batch=1/a.parquet", "batch=2/a.parquet"], rows)
    assert load(path, columns={**MAPPING, "terminal": "terminal"}).num_episodes == 1


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["batch=1/a.parquet", "b.parquet"], ["b.parquet is not in a folder batch=…"]),
        (["batch=1/a.parquet", "batch=__HIVE_DEFAULT_PARTITION__/a.parquet"], ["'batch' is empty or NaN at row 6"]),
        (["bach=1/a.parquet", "bach=2/a.parquet"], ["no column 'batch' for episode"]),
    ],
)
def test_keys_that_some_parts_lack(tmp_path: Path, names: list[str], words: list[str]) -> None:
    path = days(tmp_path / "logs", names)
    with pytest.raises(SappError) as caught:
        load(path, columns=MAPPING)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("folder", ["logs", "log.parquet"])
@pytest.mark.parametrize("columns", [None, {"observation": ["x"], "action": ["x"]}])
def test_a_folder_of_something_else(tmp_path: Path, folder: str, columns: dict[str, Any] | None) -> None:
    path = tmp_path / folder
    (path / "deep").mkdir(parents=True)
    (path / "deep" / "a.csv").write_text("x\n1\n")
    with pytest.raises(SappError, match=r"directory without (anything that can be loaded|Parquet files)"):
        load(path, columns=columns)


def test_files_that_stop_within_an_episode_are_said_and_can_be_episodes(tmp_path: Path) -> None:
    path = parts(tmp_path / "logs", ["run-1.parquet", "run-2.parquet", "run-3.parquet"])
    data = load(path)
    assert isinstance(data, Dataset)
    assert data.num_episodes == 1
    (said,) = Ledger.of(data).lines(Kind.WARNING)
    assert said.startswith("2 of 3 files stop within an episode, which goes on in the next file")
    assert "(--map episode=file)" in said
    data = load(path, columns=["episode=file"], last_step="drop")
    assert isinstance(data, Dataset)
    assert data.episode_lengths.tolist() == [3, 3, 4]
    assert data.terminal.sum() == 1
    assert not Ledger.of(data).lines(Kind.WARNING)


def test_a_file_may_hold_several_episodes(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for i, ends in enumerate(([2, 5], [5], [1])):
        flags = [int(row in ends) for row in range(6)]
        table = {key: value[:6] for key, value in ROWS.items()} | {"terminal": flags}
        pa.parquet.write_table(pa.table(table), folder / f"{i}.parquet")
    data = load(folder, columns=["episode=file"], last_step="drop")
    assert isinstance(data, Dataset)
    assert data.episode_lengths.tolist() == [3, 3, 6, 2, 3]
    assert data.terminal[data.episode_ends].tolist() == [True, True, True, True, False]


def test_parquet_is_read_by_arrows_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through a file of Python's, Arrow's threads may abort or hang the process when it ends."""
    given: list[Any] = []
    real = pa.parquet.ParquetFile
    monkeypatch.setattr(pa.parquet, "ParquetFile", lambda source: given.append(source) or real(source))
    pa.parquet.write_table(pa.table(ROWS), tmp_path / "one.parquet")
    assert load(tmp_path / "one.parquet").size == 12
    assert [type(source) for source in given] == [pa.OSFile]
