"""Results as text, killed at every place while they are written: they are as before or as after."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
from forked import Fault, Forked
from kit import MAKE_ROWS, piece
from test_faults import contents, leftovers

from sapp.experiments import text_store
from sapp.experiments.store import Results, Store

MORE = ("runs", "evaluations", "metrics")


@pytest.fixture(scope="module")
def half(forked: Forked, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs in its store, and one of them as text."""
    folder = tmp_path_factory.mktemp("half")
    store = piece(forked, folder, "results.sqlite")
    assert forked.run(folder, MAKE_ROWS.replace('"rows"', '"both"')).code == 0
    both = text_store.read(folder / "both")
    one = {name: [row for row in rows if name not in MORE or row[0] == "run0"] for name, rows in both.rows.items()}
    one["cells"] = [row for row in one["cells"] if row[-1] == "run0"]
    store.rename(folder / "all.sqlite")
    with Store(store, create=True) as part:
        part.add(Results(one))
    assert forked.run(folder, MAKE_ROWS).code == 0
    shutil.rmtree(folder / "both")
    (folder / "all.sqlite").replace(store)
    return folder


def runs(rows: Path) -> dict[str, int]:
    """How many evaluations each run has that the text holds."""
    found = text_store.read(rows).rows
    counts = Counter(row[0] for row in found["evaluations"])
    assert {row[-1] for row in found["cells"]} == {row[0] for row in found["runs"]}
    return {row[0]: counts[row[0]] for row in found["runs"]}


@pytest.mark.parametrize("kind", ["open", "write", "sync", "rename", "remove"])
def test_killed_anywhere_the_text_is_as_before_or_as_after(
    forked: Forked, half: Path, tmp_path: Path, kind: str
) -> None:
    before = runs(half / "rows")
    after = Path(shutil.copytree(half, tmp_path / "after"))
    count = forked.run(after, MAKE_ROWS).counts[kind]
    assert count >= (1 if kind == "remove" else 7)
    assert (before, runs(after / "rows")) == ({"run0": 4}, {"run0": 4, "run1": 4})
    seen = set()
    for number in range(1, count + 1, 1 if count < 12 else count // 8):
        folder = Path(shutil.copytree(half, tmp_path / f"{number}"))
        assert forked.run(folder, MAKE_ROWS, fault=Fault(kind, number, half=number % 2 == 1)).code == -9
        found = runs(folder / "rows")  # by somebody who has nothing but the text
        assert found in (before, runs(after / "rows")), number
        seen.add(len(found))
        assert forked.run(folder, MAKE_ROWS).code == 0
        assert contents(folder / "rows") == contents(after / "rows"), number
        assert leftovers(folder / "rows") == []
    assert kind == "remove" or seen == {1, 2}


def test_a_strangers_unfinished_text_writes_nothing_else(forked: Forked, half: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(half, tmp_path / "half"))
    (folder / "rows" / "writing.json").write_text('{"../../evil.csv": "x"}')
    done = forked.run(folder, MAKE_ROWS)
    assert done.code == 2
    assert "writing.json: damaged" in done.err[0]
    assert not list(tmp_path.rglob("evil*"))


def test_a_linked_lock_is_not_written_through(forked: Forked, half: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(half, tmp_path / "half"))
    outside = tmp_path / "secret.txt"
    outside.write_text("mine")
    (folder / "rows" / ".lock").unlink()
    (folder / "rows" / ".lock").symlink_to(outside)
    (folder / "rows" / "runs.csv").unlink()
    (folder / "rows" / "runs.csv").symlink_to(outside)
    assert forked.run(folder, MAKE_ROWS).code == 2
    assert outside.read_text() == "mine"
