from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sapp.core.errors import SappError
from sapp.data import Dataset, load, save_npz


def test_a_dataset_passes_through(small: Dataset) -> None:
    assert load(small) is small
    assert load(small, name="other").name == "other"
    with pytest.raises(SappError, match="small: max_episode_steps"):
        load(small, max_episode_steps=3)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("nowhere/log.hdf5", ["nowhere/log.hdf5", "no such file"]),
        ("log.pkl", ["log.pkl", "'.pkl'", ".parquet"]),
        ("folder", ["folder", "directory"]),
        ("folder.npz", ["folder.npz", "directory"]),
        ("hoper", ["hoper", "no such file or dataset", "D4RL", "Minari"]),
        ("hopper-medum-v2", ["did you mean 'hopper-medium-v2'?"]),
        ("lag.csv", ["lag.csv", "did you mean 'log.csv'?"]),
        ("tables", ["tables", "is a folder of CSV files", "write them as one file with a column for the episode"]),
        (3, ["int", ".hdf5"]),
        (None, ["NoneType"]),
        ({"observations": [[0.0]]}, ["no action", "observations"]),
    ],
)
def test_what_cannot_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: Any, words: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "log.pkl").write_bytes(b"x")
    (tmp_path / "log.csv").write_text("a\n1\n")
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "run-1.csv").write_text("a\n1\n")
    with pytest.raises(SappError) as caught:
        load(source)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_columns_are_not_for_our_own_files(small: Dataset, tmp_path: Path) -> None:
    with pytest.raises(SappError, match=r"x\.npz: was written by save_npz.*leave columns out"):
        load(save_npz(small, tmp_path / "x.npz"), columns={"reward": "r"})
    with pytest.raises(SappError, match="small: columns is for files"):
        load(small, columns={"reward": "r"})


def test_import_is_cheap() -> None:
    heavy = "jax pyarrow h5py minari gymnasium matplotlib rich"
    code = f"import sys, sapp.data; print([m for m in {heavy!r}.split() if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


number = st.floats(-1, 1, width=32)


@st.composite
def episodes(draw: st.DrawFn) -> Dataset:
    """Some episodes of any length, end and value; the first dimension never repeats, so that jumps can be told."""
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    ends = draw(st.lists(st.booleans(), min_size=len(lengths), max_size=len(lengths)))
    width, actions = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    rows = sum(lengths)
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    paths = [
        rng.normal(size=(n + 1, width)).astype(np.float32) * draw(st.sampled_from([1e-3, 1, 1e3])) for n in lengths
    ]
    for start, path in zip(np.cumsum([0, *lengths]), paths, strict=False):
        path[:, 0] = 2 * start + np.arange(len(path))
    last = np.concatenate([np.arange(n) == n - 1 for n in lengths])
    terminal = np.repeat(ends, lengths) & last
    return Dataset(
        np.concatenate([path[:-1] for path in paths]),
        draw(st.lists(st.lists(number, min_size=actions, max_size=actions), min_size=rows, max_size=rows)),
        draw(st.lists(st.floats(-1e6, 1e6, width=32), min_size=rows, max_size=rows)),
        np.concatenate([path[1:] for path in paths]),
        terminal,
        last & ~terminal,
    )


def without_successors(data: Dataset) -> Dataset | None:
    """The same by plain loops: what is left when next_observation is not recorded."""
    kept: list[dict[str, Any]] = []
    for start, end in zip(data.episode_starts, data.episode_ends, strict=True):
        final = int(end) if data.terminal[end] else int(end) - 1
        for row in range(int(start), final + 1):
            own = row == end
            kept.append(
                {
                    "observation": data.observation[row],
                    "action": data.action[row],
                    "reward": data.reward[row],
                    "next_observation": data.observation[row] if own else data.observation[row + 1],
                    "terminal": own,
                    "timeout": row == final and not own,
                }
            )
    return Dataset(**{key: np.array([row[key] for row in kept]) for key in kept[0]}) if kept else None


def table_of(data: Dataset, rng: np.random.Generator, successors: bool) -> dict[str, Any]:
    order = rng.permutation(data.size)
    table: dict[str, Any] = {
        "episode": np.repeat(np.arange(data.num_episodes), data.episode_lengths),
        "step": data.step,
        "reward": data.reward.astype(np.float64),
        "terminal": data.terminal,
        "timeout": data.timeout,
    }
    for key in ("observation", "action", *(["next_observation"] if successors else [])):
        table |= {f"{key}_{i}": column.astype(np.float64) for i, column in enumerate(getattr(data, key).T)}
    return {key: value[order] for key, value in table.items()}


def write(data: Dataset, kind: str, folder: Path, traps: dict[str, bool], rng: np.random.Generator) -> Path:
    """Write a dataset in a format, with the traps asked for."""
    path = folder / f"log.{kind}"
    wide = np.float64 if traps["wide"] else np.float32
    arrays = {
        "observations": data.observation.astype(wide),
        "actions": data.action.astype(wide),
        "rewards": data.reward.astype(wide).reshape((-1, 1) if traps["column"] else (-1,)),
        "terminals": data.terminal.astype(wide if traps["float flags"] else bool),
    }
    if traps["timeouts"]:
        arrays["timeouts"] = data.timeout.astype(np.int32 if traps["float flags"] else bool)
    if traps["successors"]:
        arrays["next_observations"] = data.next_observation.astype(wide)
    if kind == "hdf5":
        with h5py.File(path, "w") as file:
            for key, value in arrays.items():
                file[key] = value
    elif kind == "npz":
        np.savez(path, **arrays)
    else:
        table = table_of(data, rng, traps["successors"])
        if kind == "parquet":
            pa.parquet.write_table(pa.table(table), path)
        else:
            rows = zip(*(value.tolist() for value in table.values()), strict=True)
            path.write_text("\n".join([",".join(table), *(",".join(map(str, row)) for row in rows)]))
    return path


@pytest.mark.parametrize("kind", ["hdf5", "npz", "parquet", "csv"])
@settings(max_examples=60, deadline=None)
@given(
    data=episodes(),
    traps=st.fixed_dictionaries(
        {key: st.booleans() for key in ("wide", "column", "float flags", "timeouts", "successors")}
    ),
    seed=st.integers(0, 1000),
)
def test_any_episodes_in_any_format_with_any_traps(kind: str, data: Dataset, traps: dict[str, bool], seed: int) -> None:
    if not traps["timeouts"] and not traps["successors"]:
        # Nothing would tell of the boundaries: that case has its own tests.
        traps = {**traps, "timeouts": True}
    expected = data if traps["successors"] else without_successors(data)
    with tempfile.TemporaryDirectory() as folder:
        path = write(data, kind, Path(folder), traps, np.random.default_rng(seed))
        if expected is None:
            with pytest.raises(SappError, match="no transitions left"):
                load(path, last_step="drop")
            return
        found = load(path, last_step="drop")
        assert found.fingerprint == expected.fingerprint
        assert load(save_npz(found, Path(folder) / "again.npz")).fingerprint == expected.fingerprint
