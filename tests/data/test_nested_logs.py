"""Columns of several values, of lists as text, of many texts, used twice: read right, or refused with a cure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from sapp.core.errors import SappError
from sapp.data import Ledger, load_vectors

ROWS = 60
X = np.linspace(-1, 1, ROWS)
BASE: dict[str, Any] = {"reward": X + 2, "terminal": np.arange(ROWS) % 6 == 5}


def struct(**fields: Any) -> pa.StructArray:
    return pa.StructArray.from_arrays([pa.array(value) for value in fields.values()], list(fields))


def parquet(folder: Path, table: dict[str, Any]) -> Path:
    pa.parquet.write_table(pa.table({**BASE, **table}), folder / "log.parquet")
    return folder / "log.parquet"


def test_structures_of_numbers_are_vectors(tmp_path: Path) -> None:
    pose = struct(x=X, y=-X)
    path = parquet(
        tmp_path, {"obs": struct(pose=pose, heat=np.arange(ROWS)), "action": struct(left=X / 2, right=X / 4)}
    )
    data = load_vectors(path)
    np.testing.assert_allclose(data.observation, np.column_stack([X, -X, np.arange(ROWS)]), rtol=1e-6)
    np.testing.assert_allclose(data.action, np.column_stack([X / 2, X / 4]), rtol=1e-6)
    assert not data.discrete
    with pytest.raises(
        SappError, match="'obs' is a structure whose field 'word' holds no numbers; give one column per"
    ):
        load_vectors(parquet(tmp_path, {"obs": struct(x=X, word=["a"] * ROWS), "action": X}))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (
            {"obs": ["[0.5, 1.0]"] * ROWS, "action": X},
            "column 'obs' holds lists written as text .*give one column per number",
        ),
        (
            {"obs": X, "action": [f"[{x:.3f}]" for x in X]},
            "column 'action' holds lists written as text; give one column",
        ),
        ({"obs": X, "action": ['{"dose": 1}'] * ROWS}, "column 'action' holds structures written as text"),
        (
            {"obs": X, "action": [f"note {i}" for i in range(ROWS)]},
            "holds 60 different texts in 60 rows, such as 'note 0'",
        ),
        ({"obs": [[[1.0], [2.0]]] * ROWS, "action": X}, "not of numbers; make each row one list of numbers"),
        ({"obs": ["BCJNGGRApLkAAA"] * ROWS, "action": X}, "'obs' is packed, as RLlib does, .*output_compress_columns"),
        ({"obs": X, "obs2": X, "action": X}, "both 'obs' and 'obs2' are given for observation; keep one, or say which"),
        ({"obs": X, "action": ["0.5", "2", "stop"] * 20}, "'action' holds 'stop' among numbers such as 0.5"),
        (
            {"obs": X, "action": X, "terminal": pa.array([None, None, 1] * 20)},
            "as in most rows; write 0 where empty means",
        ),
    ],
)
def test_what_is_no_vector_and_no_name_is_refused(tmp_path: Path, table: dict[str, Any], words: str) -> None:
    with pytest.raises(SappError, match=words) as caught:
        load_vectors(parquet(tmp_path, table))
    assert "\n" not in str(caught.value)


def test_unused_columns_of_any_kind_do_no_harm(tmp_path: Path) -> None:
    ragged = [[1.0] * (1 + i % 3) for i in range(ROWS)]
    odd = {"agent_id": ragged, "t": ragged, "is_first": ragged, "notes": ragged, "photo": [b"\x00"] * ROWS}
    plain = load_vectors(parquet(tmp_path, {"obs": X, "action": X}))
    data = load_vectors(parquet(tmp_path, {"obs": X, "action": X, **odd}))
    assert data.fingerprint == plain.fingerprint
    assert {each.name for each in Ledger.of(data).unused} == set(odd)


def test_rllib_s_packed_episodes_and_a_missing_header(tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"item": [b"\x80\x01"] * 3}), tmp_path / "log.parquet")
    with pytest.raises(SappError, match=r"RLlib's packed episodes. write them with output_write_episodes=False"):
        load_vectors(tmp_path / "log.parquet")
    (tmp_path / "log.csv").write_text("0.1,0.2,1,0\n0.3,0.1,1,1\n")
    with pytest.raises(SappError, match="the first line holds numbers: are the names of the columns missing"):
        load_vectors(tmp_path / "log.csv")


def test_dictionaries_within_dictionaries() -> None:
    with pytest.raises(SappError, match="obs is a dictionary; give its parts side by side"):
        load_vectors({**BASE, "obs": {"x": X}, "action": X})
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({**BASE, "obs": X, "action": [{"dose": 1.0}] * ROWS})
    with pytest.raises(SappError, match="column 'action' holds structures; give one column per number"):
        load_vectors(frame)


@pytest.mark.parametrize("as_file", [True, False])
def test_discrete_actions_in_vectors(tmp_path: Path, as_file: bool) -> None:
    chosen = np.arange(ROWS) % 3
    for vectors, count, truth in (
        (np.eye(3, dtype=int)[chosen], 3, chosen),
        (np.column_stack([chosen, chosen % 2]), 6, 2 * chosen + chosen % 2),
    ):
        table: dict[str, Any] = {"obs": X, "action": list(vectors) if as_file else vectors}
        source = parquet(tmp_path, table) if as_file else {**BASE, **table}
        data = load_vectors(source, columns={"action_kind": "discrete"})
        assert data.num_actions == count
        assert data.action.tolist() == truth.tolist()
        assert any(
            "its place is the discrete action" in line or "6 combinations" in line for line in Ledger.of(data).lines()
        )
    with pytest.raises(SappError, match=r"outside \[-1, 1\]; .*or action_kind = 'discrete' if these number actions"):
        load_vectors({**BASE, "obs": X, "action": np.column_stack([chosen, chosen])})


def test_a_column_has_one_use(tmp_path: Path) -> None:
    table = {"obs": X, "heat": X, "act": X, "gain": X, "end": BASE["terminal"], "run": np.arange(ROWS) // 6,
             "minute": np.arange(ROWS) % 6, "age": np.arange(ROWS) // 6}  # fmt: skip
    columns: dict[str, Any] = {"observation": ["obs", "heat"], "action": "act", "reward": "gain", "terminal": "end"}
    for change, words in (
        ({"action": "heat"}, "column 'heat' is given for observation and for action; each column has one use"),
        ({"observation": ["obs", "obs"]}, "column 'obs' is given twice for observation"),
        ({"terminal": "gain"}, "column 'gain' is given for reward and for terminal"),
    ):
        with pytest.raises(SappError, match=words):
            load_vectors(table, columns={**columns, **change})
    more = {"observation": ["obs", "minute"], "episode": "run", "time": "minute", "scale": "none"}
    uses = {each.name: each.use for each in Ledger.of(load_vectors(table, columns={**columns, **more})).used}
    assert uses["minute"] == "observation 1 and the order of rows"


def test_named_indices_of_frames_are_columns() -> None:
    pandas = pytest.importorskip("pandas")
    ids, at = np.arange(ROWS) // 10, np.arange(ROWS) % 10
    frame = pandas.DataFrame({**BASE, "terminal": at == 9, "obs": X, "action": X, "episode": ids, "step": at})
    expected = load_vectors(frame)
    mixed = frame.sample(frac=1, random_state=0)
    assert load_vectors(mixed.set_index(["episode", "step"])).fingerprint == expected.fingerprint
    assert load_vectors(mixed.set_index("step")).fingerprint == expected.fingerprint
    frame.index = pandas.date_range("2024", periods=ROWS)
    data = load_vectors(frame)
    assert data.fingerprint == expected.fingerprint
    assert {each.name: each.note for each in Ledger.of(data).unused}["(index)"].startswith("it has no name")
