"""Files and folders that a stranger might send: nothing in them is run, nothing outside is read or written."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from forked import Forked
from kit import piece
from test_faults import contents
from test_limits import bomb_csv, bomb_hdf5, bomb_npz, bomb_parquet, link, log, storage, virtual

SECRET = "the-users-own-secret"
LEAST = 1 << 28
"""What any command may need, whatever it reads."""
EVIL = "from pathlib import Path\nPath('ran').touch()\n"


def _run(place: Path) -> Path:
    return place / "run"


def _links(name: str, target: str) -> Callable[[Path], list[str]]:
    def make(place: Path) -> list[str]:
        own = place / "run" / name
        shutil.rmtree(own) if own.is_dir() else own.unlink(missing_ok=True)
        own.symlink_to(place.parent / "outside" / target)
        max((place / "run" / "checkpoints").iterdir()).unlink()
        return ["resume", "run", "--quiet"]

    return make


def _nested(name: str, target: str) -> Callable[[Path], list[str]]:
    """A link in a folder within the run, where a hook or a video would be written."""

    def make(place: Path) -> list[str]:
        own = place / "run" / name
        own.parent.mkdir(exist_ok=True)
        own.symlink_to(place.parent / "outside" / target)
        return ["evaluate", "run", "--episodes", "1", "--video"]

    return make


def _text_rows(place: Path) -> list[str]:
    (place / "rows").mkdir()
    (place / "rows" / "writing.json").write_text(json.dumps({"../outside/secret.txt": "x"}))
    return ["report", "rows"]


def _scores(place: Path) -> list[str]:
    (place / "s.csv").write_text("method,dataset,seed,step,returns\nours\x1b]0;gone\x07,d,0,1,2\n")
    return ["report", "s.csv"]


def _config(old: str, new: str) -> Callable[[Path], list[str]]:
    def make(place: Path) -> list[str]:
        file = place / "run" / "config.json"
        text = json.dumps(json.loads(file.read_text()))
        assert old in text
        file.write_text(text.replace(old, new))
        return ["evaluate", "run", "--episodes", "1"]

    return make


def _hdf5(change: Callable[[h5py.File], None]) -> Callable[[Path], list[str]]:
    def make(place: Path) -> list[str]:
        for name in ("secret.txt", "secret.hdf5"):
            shutil.copy(place.parent / "outside" / name, place / name)
        log(place / "log.hdf5", change)
        return ["data", "convert", "log.hdf5", "out.npz"]

    return make


def _bomb(name: str, fill: Callable[[Path], None]) -> Callable[[Path], list[str]]:
    def make(place: Path) -> list[str]:
        fill(place / name)
        return ["data", "convert", name, "out.npz"]

    return make


def _pickle(place: Path) -> list[str]:
    class Run:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (exec, (EVIL,))

    np.savez(place / "log.npz", observations=np.array([Run()], dtype=object))
    return ["data", "show", "log.npz"]


def _policy(place: Path) -> list[str]:
    _pickle(place)
    return ["collect", "point", "--policy", "log.npz", "--steps", "10", "--out", "given"]


def _long_header(place: Path) -> list[str]:
    file = max((place / "run" / "checkpoints").iterdir())
    file.write_bytes(struct.pack("<Q", 1 << 62) + b"{" * 100)
    return ["evaluate", "run"]


def _huge_array(place: Path) -> list[str]:
    (file,) = [max((place / "run" / "checkpoints").iterdir())]
    head = json.dumps({"x": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}}).encode()
    file.write_bytes(struct.pack("<Q", len(head)) + head)
    return ["evaluate", "run"]


def _deep_json(place: Path) -> list[str]:
    (place / "run" / "config.json").write_text("[" * 200_000)
    return ["report", "run"]


def _view(place: Path) -> list[str]:
    with sqlite3.connect(place / "results.sqlite") as db:
        db.execute("DROP TABLE events")
        db.execute("CREATE VIEW events AS WITH RECURSIVE n(run, number, step, kind) AS (SELECT 1,1,1,1 UNION ALL "
                   "SELECT run + 1, 1, 1, 1 FROM n) SELECT * FROM n")  # fmt: skip
    return ["report", "results.sqlite"]


def _frames(place: Path) -> list[str]:
    (place / "log").mkdir()
    meta = {"format": "sapp frames", "version": 1, "name": "log", "environment": None, "num_actions": 3, "stack": 4,
            "action_labels": None, "provenance": {}, "rows": 1 << 40, "fingerprint": "x"}  # fmt: skip
    (place / "log" / "frames.json").write_text(json.dumps(meta))
    with (place / "log" / "frames.npy").open("wb") as file:
        described = {"descr": "|u1", "fortran_order": False, "shape": (1 << 40, 84, 84)}
        np.lib.format.write_array_header_1_0(file, described)
    with zipfile.ZipFile(place / "log" / "rows.npz", "w") as archive:
        archive.writestr("action.npy", b"\x93NUMPY")
    return ["data", "show", "log"]


def _shards(place: Path) -> list[str]:
    with gzip.open(place / "$store$_observation_ckpt.0.gz", "wb", 9) as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "|u1", "fortran_order": False, "shape": (1 << 33, 84, 84)}
        )
        for _ in range(300):
            file.write(bytes(1 << 20))
    return ["data", "show", "."]


def _escapes(place: Path) -> list[str]:
    shutil.copy(place / "point.npz", place / "a\x1b]0;gone\x07.npz")
    return ["data", "show", "a\x1b]0;gone\x07.npz"]


def _deep_toml(place: Path) -> list[str]:
    (place / "map.toml").write_text("observation = " + "[" * 100_000)
    return ["data", "show", "log.csv", "--columns", "map.toml"]


HOSTILE: dict[str, Callable[[Path], list[str]]] = {
    "HDF5 with an external link": _hdf5(link),
    "HDF5 stored elsewhere": _hdf5(storage),
    "HDF5 put together from elsewhere": _hdf5(virtual),
    "HDF5 that unfolds": _bomb("b.hdf5", bomb_hdf5),
    "NPZ that unfolds": _bomb("b.npz", bomb_npz),
    "CSV that unfolds": _bomb("b.csv.gz", bomb_csv),
    "Parquet that unfolds": _bomb("b.parquet", bomb_parquet),
    "NPZ with a pickle": _pickle,
    "policy with a pickle": _policy,
    "run with a linked lock": _links(".lock", "secret.txt"),
    "run with a linked folder": _links("data", "folder"),
    "run with a linked table": _links("metrics.csv", "secret.txt"),
    "run with a linked folder of videos": _nested("videos", "folder"),
    "results as text that name other files": _text_rows,
    "scores that steer the terminal": _scores,
    "run that names a module": _config('"environment": "point"', '"environment": "evil:Env-v0"'),
    "run that names a class": _config('"class": "BC"', '"class": "evil.BC"'),
    "run of huge layers": _config('"hidden": [8]', '"hidden": [4000000000, 4000000000]'),
    "checkpoint with a long header": _long_header,
    "checkpoint with a huge array": _huge_array,
    "configuration without end": _deep_json,
    "store with a view without end": _view,
    "frames that announce too much": _frames,
    "shards that unfold": _shards,
    "name that steers the terminal": _escapes,
    "mapping without end": _deep_toml,
}


@pytest.fixture(scope="module")
def kit(forked: Forked, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kit")
    for name in ("run", "log.csv", "results.sqlite"):
        piece(forked, folder, name)
    return folder


MEASURED = """
import sys
sys.path.insert(0, "")


def memory(what):
    for line in open("/proc/self/status"):
        if line.startswith(what):
            return int(line.split()[1]) * 1024


open("/proc/self/clear_refs", "w").write("5")
before = memory("VmRSS")
from sapp.cli.main import main
code = main({words!r})
print("peak", memory("VmHWM") - before, file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_runs_and_nothing_outside_is_touched(forked: Forked, kit: Path, tmp_path: Path, name: str) -> None:
    place, outside = tmp_path / "place", tmp_path / "outside"
    shutil.copytree(kit, place)
    (outside / "folder").mkdir(parents=True)
    (outside / "secret.txt").write_text(SECRET * 10)
    (outside / "folder" / ".mine.tmp").write_text(SECRET)
    with h5py.File(outside / "secret.hdf5", "w") as file:
        file["rewards"] = np.full(20, 0.123456789, "f4")
    (place / "evil.py").write_text(EVIL)
    words = HOSTILE[name](place)
    was = contents(outside)
    size = sum(path.lstat().st_size for path in place.rglob("*") if path.is_file() and not path.is_symlink())
    done = forked.run(place, MEASURED.format(words=words), seconds=60)
    told = done.out[0] + done.err[0]
    *lines, last = done.err[0].splitlines()
    assert done.code == (0 if name == "name that steers the terminal" else 2), told
    assert len(lines) == (0 if done.code == 0 else 1), told
    assert int(last.removeprefix("peak ")) <= max(LEAST, 4 * size)
    assert not (place / "ran").exists()
    assert not (place / "out.npz").exists()
    assert contents(outside) == was
    assert SECRET not in told
    assert "\x1b]" not in told
