"""The results store: one process adds to it, rows that are there stay, and what is no store is refused."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from sapp.core.errors import SappError
from sapp.experiments.store import Results, Store, locked


def test_rows_come_back_in_the_order_of_their_keys_and_are_added_once(tmp_path: Path) -> None:
    first = Results({"evaluations": [("b", 1, 0, 1, 2.0, None), ("a", 1, 0, 1, 3.0, None)]})
    with Store(tmp_path / "r.sqlite", create=True) as store:
        store.add(first)
        store.add(Results({"evaluations": [("a", 1, 0, 1, 9.0, None)]}))
        assert [(row["run"], row["return"]) for row in store.rows("evaluations")] == [("a", 3.0), ("b", 2.0)]
        assert store.known() == set()
        with pytest.raises(SappError, match="no table 'nothing'"):
            store.rows("nothing")
    assert store.timings_path == tmp_path / "r-timings.csv"


def test_a_store_of_another_format_is_refused(tmp_path: Path) -> None:
    import sqlite3

    with Store(tmp_path / "r.sqlite", create=True):
        pass
    with sqlite3.connect(tmp_path / "r.sqlite") as db:
        db.execute("PRAGMA user_version = 1")
    with pytest.raises(SappError, match="store format 1, this version reads"):
        Store(tmp_path / "r.sqlite")


def test_a_store_is_added_to_by_one_process_at_a_time(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "r.sqlite"),
        pytest.raises(SappError, match="another process"),
        locked(tmp_path / "r.sqlite"),
    ):
        pass


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "no results store"), (b"not a database at all" * 50, "cannot open"), (b"", "is empty")],
)
def test_what_is_no_store_is_refused(tmp_path: Path, content: bytes | None, words: str) -> None:
    file = tmp_path / "r.sqlite"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SappError, match=words):
        Store(file)


KILLED = """
import os, signal, sys
from sapp.experiments import store
from sapp.core import files
def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)
setattr({"sync": files, "_make": store}[sys.argv[2]], sys.argv[2], kill)
store.Store(sys.argv[1], create=True)
"""


@pytest.mark.parametrize("where", ["_make", "sync"])
def test_a_process_killed_while_it_makes_a_store_leaves_none(tmp_path: Path, where: str) -> None:
    file = tmp_path / "r.sqlite"
    done = subprocess.run([sys.executable, "-c", KILLED, str(file), where], capture_output=True)
    assert done.returncode == -signal.SIGKILL
    assert not file.exists()
    with Store(file, create=True) as store:
        assert store.known() == set()
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("DROP TABLE runs", "has no table 'runs', its making was cut off; delete it and run the experiment again"),
        ("ALTER TABLE runs RENAME COLUMN seed TO luck", "its table 'runs' has other columns"),
        ("CREATE VIEW more AS SELECT 1", "holds a view 'more' that no store has"),
        ("ALTER TABLE events RENAME TO \"e\x1b[31m\"", "has no table 'events'"),
    ],
)
def test_a_store_that_was_cut_off_or_altered_is_refused(tmp_path: Path, change: str, words: str) -> None:
    with Store(tmp_path / "r.sqlite", create=True):
        pass
    with sqlite3.connect(tmp_path / "r.sqlite") as db:
        db.execute(change)
    for create in (False, True):
        with pytest.raises(SappError, match=words):
            Store(tmp_path / "r.sqlite", create=create)


def test_an_empty_file_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "r.sqlite").touch()
    for create in (False, True):
        with pytest.raises(SappError, match="is empty, its making was cut off: delete it"):
            Store(tmp_path / "r.sqlite", create=create)
