"""Files appear whole or not at all, under names nobody can foresee, and never over somebody else's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sapp.core import files
from sapp.core.errors import SappError, printable
from sapp.core.files import check_replaceable, distinct, remove_leftovers, write_aside, write_text


def test_a_failing_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    write_text(target, "old")

    def write(aside: Path) -> None:
        aside.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(SappError, match="No space left on device"):
        write_aside(target, write)
    assert target.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]


def test_temporary_names_differ_and_are_new_files(tmp_path: Path) -> None:
    seen: list[str] = []

    def write(aside: Path) -> None:
        assert aside.stat().st_size == 0
        seen.append(aside.name)

    for _ in range(2):
        write_aside(tmp_path / "a", write)
    assert len(set(seen)) == 2
    assert all(str(os.getpid()) not in name.split(".")[2:3] for name in seen)


def test_a_name_as_long_as_names_can_be_is_written_and_its_leftovers_go(tmp_path: Path) -> None:
    target = tmp_path / f"{'é' * 125}.html"
    left = tmp_path / f".{'é' * 100}.{'0' * 16}.tmp"
    left.write_text("half")
    write_text(target, "whole")
    assert [each.name for each in tmp_path.iterdir()] == [target.name]
    with pytest.raises(SappError, match=r"cannot write \(File name too long\); choose a shorter name"):
        write_text(tmp_path / ("x" * 300), "text")


def test_a_name_that_is_no_text_is_refused_where_text_is_written(tmp_path: Path) -> None:
    with pytest.raises(SappError, match=r"cannot hold .*n\\udcffx.*, a name that is no text of UTF-8; rename it"):
        write_text(tmp_path / "config.json", '{"source": "n\udcffx"}')
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("number", "cure"), [(24, "ulimit -n"), (27, "ulimit -f"), (28, "free some space")])
def test_limits_are_not_called_a_lack_of_space(tmp_path: Path, number: int, cure: str) -> None:
    def write(aside: Path) -> None:
        raise OSError(number, os.strerror(number))

    with pytest.raises(SappError, match=cure):
        write_aside(tmp_path / "a", write)


def test_names_in_one_folder_differ_also_where_capitals_do_not_count() -> None:
    assert distinct(["a", "B", "A", "c"]) == ["a-0", "B", "A-2", "c"]
    assert distinct(["a", "A", "a-0"]) == ["a-0-0", "A-1", "a-0-2"]


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_a_link_under_a_temporary_name_is_not_followed(
    link: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    monkeypatch.setattr(files.secrets, "token_hex", lambda _: "0" * 16)
    monkeypatch.setattr(files, "_remove_own_leftovers", lambda _: None)  # it came after they were looked for
    link(tmp_path / f".a.{'0' * 16}.tmp", victim)
    with pytest.raises(SappError, match="cannot write"):
        write_text(tmp_path / "a", "text")
    assert victim.read_text() == "mine"


def test_the_contents_are_on_disk_before_the_name_is_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the calls that the kernel gets: fsync of the written file, the renaming, fsync of the folder."""
    calls: list[tuple[str, int]] = []
    fsync, replace = os.fsync, os.replace

    def flushed(descriptor: int) -> None:
        calls.append(("fsync", os.fstat(descriptor).st_ino))
        fsync(descriptor)

    def renamed(source: Path, target: Path) -> None:
        calls.append(("replace", source.stat().st_ino))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(os, "replace", renamed)
    target = tmp_path / "a"
    write_text(target, "text")
    file, folder = target.stat().st_ino, tmp_path.stat().st_ino
    assert calls == [("fsync", file), ("replace", file), ("fsync", folder)]


KILLED = """
import os, signal, sys
from pathlib import Path
from sapp.core.files import write_aside
def write(aside):
    aside.write_text("half")
    print(aside.name, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
write_aside(Path(sys.argv[1]), write)
"""


def test_what_a_killed_process_left_is_cleared_and_what_a_living_one_writes_is_not(tmp_path: Path) -> None:
    target = tmp_path / "a.npz"
    done = subprocess.run([sys.executable, "-c", KILLED, str(target)], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL
    left = tmp_path / done.stdout.strip()
    assert left.is_file()

    def write(aside: Path) -> None:
        assert not left.exists()
        write_text(target, "by another one meanwhile")
        assert aside.exists()
        aside.write_text("whole")

    write_aside(target, write)
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("a.npz", "whole")]


def test_leftovers_behind_a_link_are_somebody_elses(tmp_path: Path) -> None:
    own = tmp_path / "elsewhere"
    own.mkdir()
    (own / ".mine.tmp").write_text("mine")
    (tmp_path / "data").symlink_to(own)
    remove_leftovers(tmp_path / "data")
    assert (own / ".mine.tmp").exists()


def test_only_files_of_the_same_kind_are_replaced(tmp_path: Path) -> None:
    file = tmp_path / "a"

    def check(force: bool = False) -> None:
        check_replaceable(file, lambda content: content.startswith(b"ours"), "one of ours", force)

    check()
    file.write_bytes(b"ours" + bytes(10_000))
    check()
    file.write_bytes(b"theirs")
    with pytest.raises(SappError, match=r"is there already and is not one of ours; .* --force"):
        check()
    check(force=True)
    with pytest.raises(SappError, match="is a folder"):
        check_replaceable(tmp_path, lambda _: True, "ours", True)


def test_permission_is_not_called_a_lack_of_space(tmp_path: Path) -> None:
    def write(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    with pytest.raises(SappError, match="make the folder writable"):
        write_aside(tmp_path / "a", write)


def test_control_characters_are_shown_not_sent() -> None:
    assert printable("a\x1b]0;gone\x07é\u202e") == "a\\x1b]0;gone\\x07é\\u202e"


def test_where_there_are_no_locks_nothing_is_known_to_be_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows: what lies there may still be written by another process."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    left = tmp_path / f".a.{'0' * 16}.tmp"
    left.write_text("somebody's")
    write_text(tmp_path / "a", "whole")
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {left.name: "somebody's", "a": "whole"}


def test_a_file_is_flushed_without_being_opened_for_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a file that may only be read can be flushed, too."""
    opened: list[int] = []
    plain = os.open

    def noted(path: Path, flags: int) -> int:
        opened.append(flags)
        return plain(path, flags)

    (tmp_path / "a").write_text("text")
    monkeypatch.setattr(os, "open", noted)
    files.sync(tmp_path / "a")
    files.sync(tmp_path)
    assert opened == [os.O_RDONLY, os.O_RDONLY]
