"""A run folder has one owner at a time, who deletes only what is its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import sapp
from sapp import SappError
from sapp.runs import folders

RACE = """
import sys, time
import sapp
from sapp.envs.point import behaviour_dataset
data = behaviour_dataset(6)
print("ready", flush=True)
sys.stdin.readline()
try:
    sapp.train(sapp.BC(hidden=(8,), batch_size=8), data, steps=20, eval_every=0, out=sys.argv[1], progress=False)
except sapp.SappError as error:
    print(error, flush=True)
    sys.exit(2)
"""


@pytest.mark.parametrize("number", [1, 2])
def test_of_processes_that_race_for_a_folder_one_wins_whole(tmp_path: Path, number: int) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-c", RACE, str(out)]
    racers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    said = [racer.communicate(timeout=200)[0] for racer in racers]
    codes = [racer.returncode for racer in racers]
    assert sorted(codes) == [0, 2, 2], said
    for code, text in zip(codes, said, strict=True):
        assert code == 0 or "another process is training this run" in text or "already holds a run" in text
    run = sapp.Run(out)
    assert run.step == 20
    assert sapp.resume(out, progress=False).step == 20
    run.restore()


def test_a_failed_start_removes_its_own_files_and_no_others(tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / "note.txt").write_text("mine")
    with pytest.raises(MemoryError), folders.claimed(out, "x"):  # noqa: PT012
        (out / "metrics.csv").write_text("begun")
        (out / "data").mkdir()
        (out / "somebody.txt").write_text("another's, written meanwhile")
        raise MemoryError
    assert sorted(file.name for file in out.iterdir()) == ["note.txt", "somebody.txt"]
    with pytest.raises(MemoryError), folders.claimed(tmp_path / "new", "x") as folder:  # noqa: PT012
        (folder / "config.json").write_text("{}")
        (folder / "checkpoints").mkdir()
        raise MemoryError
    assert not (tmp_path / "new").exists()


def test_who_does_not_hold_the_lock_writes_and_deletes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with folders.claimed(out, "x") as folder:
        (folder / "config.json").write_text("{}")
        with pytest.raises(SappError, match="another process is training this run"), folders.claimed(out, "x"):
            raise AssertionError("two owners")
        assert (out / "config.json").read_text() == "{}"
    assert (out / "config.json").exists()


def test_checkpoints_that_cannot_be_listed_are_not_taken_for_none(tmp_path: Path) -> None:
    with pytest.raises(SappError, match="cannot list the checkpoints"):
        folders.checkpoint_files(tmp_path)


def test_default_folders_of_one_second_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(time, "strftime", lambda _: "20260101-120000")
    names = [str(folders.new_folder("cql-point")) for _ in range(3)]
    assert names == [f"runs/cql-point-20260101-120000{end}" for end in ("", "-2", "-3")]


@pytest.mark.parametrize("name", ["²0.safetensors", "٣.safetensors", "7", "7.safetensors.bak", "x7.safetensors"])
def test_what_is_not_named_as_a_checkpoint_is_none(tmp_path: Path, name: str) -> None:
    (tmp_path / "checkpoints").mkdir()
    for each in (name, "0000000010.safetensors"):
        (tmp_path / "checkpoints" / each).touch()
    assert list(folders.checkpoint_files(tmp_path)) == [10]


@pytest.mark.parametrize(("flags", "words"), [(os.ST_RDONLY, "Read-only file system"), (0, "Permission denied")])
def test_why_a_place_takes_no_folder_is_said_in_the_systems_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: int, words: str
) -> None:
    place = tmp_path / "runs" / "new"
    folders.check_place(place)
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=flags | os.ST_NOSUID))
    with pytest.raises(SappError, match=rf"new: cannot make the run folder \({tmp_path} cannot be .*: {words}\)"):
        folders.check_place(place)
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(SappError, match=r"runs is not a folder\)"):
        folders.check_place(place)
    assert [each.name for each in tmp_path.iterdir()] == ["runs"]
