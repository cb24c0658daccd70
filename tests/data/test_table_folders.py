"""A folder of Parquet files is one log."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from sapp.cli import main
from sapp.data import load
from sapp.errors import SappError

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
    assert data.provenance.get("repairs", []) == ([said] if len(names) > 1 else [])


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


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.csv").write_text("x\n1\n")
    with pytest.raises(SappError, match=r"directory without Parquet files or image logs .*all parts joined"):
        load(tmp_path / "logs")
    with pytest.raises(SappError, match="columns map Parquet and CSV files only"):
        load(tmp_path / "logs", columns={"observation": ["x"], "action": ["x"]})
