from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import compiling
import numpy as np
import pytest

from sapp.core import program_cache
from sapp.core.program_cache import SETTING, keep_compiled_programs, machine, packing, tidy, user_cache, whole

BEGIN = "from sapp.core.program_cache import keep_compiled_programs as keep\nkeep()\n"
ADD = BEGIN + "import jax\nprint(jax.jit(lambda x: (x @ x).sum())(jax.numpy.ones((8, 8))))"


def pack(folder: Path, name: str, age: float, size: int = 100) -> Path:
    """An entry as JAX makes one, so many seconds old and of about this size."""
    module = pytest.importorskip(packing())
    content = np.random.default_rng(0).bytes(size)
    path = folder / f"{name}-cache"
    packer = module.ZstdCompressor() if packing() == "zstandard" else module
    path.write_bytes(packer.compress(content))
    os.utime(path, (1e9 - age, 1e9 - age))
    return path


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in (SETTING, "XDG_CACHE_HOME")}
    return kept | {
        "HOME": str(home), "XLA_FLAGS": compiling.FLAGS, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1", **more,
    }  # fmt: skip


def python(text: str, home: Path, **more: str) -> str:
    done = subprocess.run([sys.executable, "-c", text], env=environment(home, **more), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def entries(home: Path) -> dict[str, int]:
    """The programs that are kept, and when each was written."""
    return {path.name: path.stat().st_mtime_ns for path in home.rglob(program_cache.ENTRIES)}


def test_what_is_cut_off_goes_and_the_rest_stays(tmp_path: Path) -> None:
    good, cut = pack(tmp_path, "good", age=9), pack(tmp_path, "cut", age=8)
    cut.write_bytes(cut.read_bytes()[:-5])
    empty = tmp_path / "empty-cache"
    empty.touch()
    tidy(tmp_path)
    assert good.exists()
    assert not cut.exists()
    assert not empty.exists()


def test_an_entry_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(program_cache, "whole", lambda path: read.append(path.name) is None)
    pack(tmp_path, "old", age=9)
    tidy(tmp_path)
    pack(tmp_path, "new", age=5)
    tidy(tmp_path)
    tidy(tmp_path)
    assert read == ["old-cache", "new-cache"]


def test_the_oldest_go_where_all_are_too_large(tmp_path: Path) -> None:
    paths = [pack(tmp_path, name, age=age, size=10_000) for name, age in (("c", 1), ("a", 3), ("b", 2))]
    tidy(tmp_path, largest=25_000)
    assert [path.exists() for path in paths] == [True, False, True]


def test_whole_entries_are_known(tmp_path: Path) -> None:
    path = pack(tmp_path, "one", age=0)
    assert whole(path)
    path.write_bytes(b"\x00" + path.read_bytes())
    assert not whole(path)


def test_the_kind_of_machine_is_in_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = machine()
    assert here == machine()
    assert re.fullmatch("[0-9a-f]{16}", here)
    monkeypatch.setattr("platform.machine", lambda: "another")
    assert machine() != here


def test_the_users_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert user_cache() == tmp_path / ".cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert user_cache() == tmp_path / "other"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert user_cache() == tmp_path / "local"


def test_what_the_user_set_stays_and_jax_that_runs_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "/somewhere")
    keep_compiled_programs()
    assert os.environ[SETTING] == "/somewhere"
    monkeypatch.delenv(SETTING)
    monkeypatch.setitem(sys.modules, "jax", sys)
    keep_compiled_programs()
    assert SETTING not in os.environ


def test_the_second_process_compiles_nothing_and_damage_heals(tmp_path: Path) -> None:
    first = python(ADD, tmp_path)
    made = entries(tmp_path)
    assert made
    assert python(ADD, tmp_path) == first
    assert entries(tmp_path) == made
    damaged = next(tmp_path.rglob("jit__lambda*-cache"))
    damaged.write_bytes(damaged.read_bytes()[:-9])
    # the damage is newer than the last look
    assert python(ADD, tmp_path) == first  # and no warning of JAX's
    assert set(entries(tmp_path)) == set(made)
    assert whole(damaged)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_where_others_may_write_nothing_is_kept(tmp_path: Path) -> None:
    python(BEGIN, tmp_path)
    (folder,) = (tmp_path / ".cache" / "sapp" / "programs").iterdir()
    folder.chmod(0o777)
    assert python(BEGIN + f"import os\nprint(os.environ.get({SETTING!r}))", tmp_path).strip() == "None"


def test_without_a_place_every_start_compiles(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    more = {"XDG_CACHE_HOME": str(tmp_path / "file")}
    assert python(BEGIN + f"import os\nprint(os.environ.get({SETTING!r}))", tmp_path, **more).strip() == "None"


def test_the_command_keeps_its_programs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ends = np.arange(1, 81) % 20 == 0
    np.savez(
        tmp_path / "log.npz", observation=rng.normal(size=(80, 3)), action=rng.uniform(-1, 1, (80, 1)),
        reward=rng.normal(size=80), terminal=ends,
    )  # fmt: skip
    train = "train cql log.npz --steps 2 --hidden 8 --batch-size 8 --eval-every 0 --quiet --out"
    saved, made = [], []
    for name in ("one", "two"):
        command = [sys.executable, "-m", "sapp", *train.split(), name]
        done = subprocess.run(command, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        saved.append((tmp_path / name / "checkpoints" / "0000000002.safetensors").read_bytes())
        made.append(entries(tmp_path))
    assert any(name.startswith("jit_steps") for name in made[0])
    assert made[0] == made[1]
    assert saved[0] == saved[1]
