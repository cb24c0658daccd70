"""Bad input through the real command: one clear line on stderr, exit code 2, nothing half-written."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pytest

from sapp.cli.main import main

LAST = "checkpoints/0000000020.safetensors"
"""Of the finished run."""


@dataclass(frozen=True)
class Place:
    """What a case may use: a folder of its own (also the working directory), good data, a finished run to copy."""

    folder: Path
    point: Path
    trained: Path

    def arrays(self) -> dict[str, np.ndarray]:
        """Two episodes in D4RL's layout."""
        rng = np.random.default_rng(0)
        last = np.arange(10) % 5 == 4
        return {
            "observations": rng.normal(size=(10, 3)),
            "actions": rng.uniform(-0.9, 0.9, (10, 2)),
            "rewards": rng.normal(size=10),
            "next_observations": rng.normal(size=(10, 3)),
            "terminals": np.zeros(10, bool),
            "timeouts": last,
        }

    def hdf5(self, **changes: np.ndarray | None) -> str:
        path = self.folder / "bad.hdf5"
        with h5py.File(path, "w") as file:
            for key, value in {**self.arrays(), **changes}.items():
                if value is not None:
                    file[key] = value
        return str(path)

    def csv(self, header: str, *rows: str) -> str:
        path = self.folder / "log.csv"
        path.write_text("\n".join([header, *rows]) + "\n")
        return str(path)

    def run(self) -> Path:
        """A finished run of its own."""
        shutil.copytree(self.trained, self.folder / "run")
        return self.folder / "run"

    def newest(self) -> Path:
        """The newest checkpoint of a run of its own."""
        return max((self.run() / "checkpoints").iterdir())

    def train(self, *options: str, data: str | None = None, algorithm: str = "cql") -> list[str]:
        return ["train", algorithm, data or str(self.point), "--out", str(self.folder / "out"), *options]


@pytest.fixture
def place(tmp_path: Path, point_file: Path, trained: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    folder = tmp_path / "place"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "d4rl").mkdir()
    monkeypatch.setenv("D4RL_DATASET_DIR", str(folder / "d4rl"))
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(folder / "minari"))
    # Whatever a test machine's network is: nothing answers here.
    for scheme in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(scheme, "http://127.0.0.1:9")
    for scheme in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(scheme, raising=False)
    return Place(folder, point_file, trained)


Prepare = Callable[[Place], list[str]]
CASES: dict[str, tuple[Prepare, tuple[str, ...]]] = {}


def case(name: str, *says: str) -> Callable[[Prepare], Prepare]:
    """Register a case: what the line must say, and how to prepare it; returns the command's arguments."""

    def register(prepare: Prepare) -> Prepare:
        CASES[name] = prepare, says
        return prepare

    return register


def simple(name: str, *argv: str, says: tuple[str, ...]) -> None:
    """Register a case whose arguments are all there is."""
    CASES[name] = lambda place: list(argv), says


# Data files


@case("missing key", "bad.hdf5", "no reward columns")
def _(place: Place) -> list[str]:
    return place.train(data=place.hdf5(rewards=None))


@case("wrong length", "bad.hdf5", "reward", "9", "10")
def _(place: Place) -> list[str]:
    return place.train(data=place.hdf5(rewards=np.zeros(9)))


@case("NaN row", "bad.hdf5", "observation", "row 7")
def _(place: Place) -> list[str]:
    bad = place.arrays()["observations"]
    bad[7, 1] = np.nan
    return place.train(data=place.hdf5(observations=bad))


@case("action out of range", "bad.hdf5", "action", "row 3")
def _(place: Place) -> list[str]:
    bad = place.arrays()["actions"]
    bad[3, 0] = 1.5
    return place.train(data=place.hdf5(actions=bad))


@case("flag that is neither 0 nor 1", "bad.hdf5", "terminal")
def _(place: Place) -> list[str]:
    return place.train(data=place.hdf5(terminals=np.full(10, 0.5)))


@case("no rows", "bad.hdf5")
def _(place: Place) -> list[str]:
    return place.train(data=place.hdf5(**{key: value[:0] for key, value in place.arrays().items()}))


@case("empty file", "void.hdf5", "empty")
def _(place: Place) -> list[str]:
    (place.folder / "void.hdf5").touch()
    return place.train(data="void.hdf5")


@case("truncated HDF5", "bad.hdf5", "HDF5")
def _(place: Place) -> list[str]:
    path = Path(place.hdf5())
    path.write_bytes(path.read_bytes()[:1500])
    return place.train(data=str(path))


@case("text file named HDF5", "bad.hdf5")
def _(place: Place) -> list[str]:
    (place.folder / "bad.hdf5").write_text("observations,actions\n")
    return place.train(data="bad.hdf5")


@case("truncated npz", "cut.npz")
def _(place: Place) -> list[str]:
    (place.folder / "cut.npz").write_bytes(place.point.read_bytes()[:400])
    return place.train(data="cut.npz")


@case("pickle in npz", "evil.npz", "never loaded")
def _(place: Place) -> list[str]:
    np.savez(place.folder / "evil.npz", observations=np.array([{"a": 1}], dtype=object))
    return place.train(data="evil.npz")


@case("text in a numeric column", "log.csv", "'high'", "row 1")
def _(place: Place) -> list[str]:
    return place.train(data=place.csv("obs_0,action_0,reward,episode", "1,0,1,a", "high,0,1,a"))


@case("table without needed columns", "log.csv", "action")
def _(place: Place) -> list[str]:
    return place.train(data=place.csv("obs_0,reward,episode", "1,1,a"))


@case("table without episodes", "log.csv", "episode")
def _(place: Place) -> list[str]:
    return place.train(data=place.csv("obs_0,action_0,reward", "1,0,1", "2,0,1"))


@case("mapping that is not TOML", "map.toml", "TOML")
def _(place: Place) -> list[str]:
    (place.folder / "map.toml").write_text("observation = [")
    return place.train("--columns", "map.toml", data=place.csv("x,y", "1,2"))


@case("mapping with an unknown key", "map.toml", "'observations'", "did you mean 'observation'")
def _(place: Place) -> list[str]:
    (place.folder / "map.toml").write_text('observations = ["x"]\n')
    return place.train("--columns", "map.toml", data=place.csv("x,y", "1,2"))


@case("mapping of a column that is not there", "log.csv", "'valve'")
def _(place: Place) -> list[str]:
    (place.folder / "map.toml").write_text('observation = ["x"]\naction = ["valve"]\nreward = "y"\nepisode = "e"\n')
    return place.train("--columns", "map.toml", data=place.csv("x,y,e", "1,2,3"))


@case("mapping for data that is no table", "columns")
def _(place: Place) -> list[str]:
    (place.folder / "map.toml").write_text('observation = ["x"]\naction = ["y"]\n')
    return place.train("--columns", "map.toml")


@case("folder as data", "is a directory")
def _(place: Place) -> list[str]:
    return place.train(data=str(place.folder))


@case("two datasets of one name", "same name")
def _(place: Place) -> list[str]:
    return [*place.train(), str(place.point)]


simple("no such file", "data", "show", "nowhere.npz", says=("nowhere.npz", "no such file"))
simple("no such dataset", "data", "show", "nowhere", says=("nowhere", "no such file or dataset"))
simple("unknown D4RL name", "data", "show", "hopper-mediun-v2", says=("hopper-mediun-v2", "did you mean"))
simple("D4RL name without network", "data", "show", "hopper-medium-v2", says=("hopper_medium-v2.hdf5", "download"))
simple(
    "unknown Minari id", "data", "show", "minari:mujoco/hopper/medium-v0", says=("mujoco/hopper/medium-v0", "Minari")
)
simple("replay of nothing", "data", "replay", "hopper.hdf5", says=("hopper.hdf5", "no such file"))


@case("replay of an unknown task", "cannot tell the environment")
def _(place: Place) -> list[str]:
    return ["data", "replay", place.hdf5()]


@case("replay with unknown physics", "mujoco9")
def _(place: Place) -> list[str]:
    return ["data", "replay", place.hdf5(), "--environment", "hopper", "--physics", "mujoco9"]


@case("conversion to another ending", "out.parquet", ".npz")
def _(place: Place) -> list[str]:
    return ["data", "convert", str(place.point), "out.parquet"]


@case("figure of an unknown kind", "figure.docx", ".png")
def _(place: Place) -> list[str]:
    return ["data", "show", str(place.point), "--plot", "figure.docx"]


# Commands, options, values

simple("unknown command", "trian", says=("'trian'", "sapp --help"))
simple("no data", "train", "cql", says=("needs an algorithm and data",))
simple("no arguments", "train", says=("train needs an algorithm and data", "sapp train sa-cql hopper-medium"))
simple("unknown option of another command", "evaluate", "run", "--episode", "3", says=("--episode",))
simple("unknown algorithm to list", "algorithms", "sacql", says=("'sacql'", "did you mean 'sa-cql'"))


@case("unknown algorithm", "'sacql'", "did you mean 'sa-cql'")
def _(place: Place) -> list[str]:
    return place.train(algorithm="sacql")


OPTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "unknown option": (("--alhpa", "3"), ("'alhpa'", "did you mean 'alpha'")),
    "misspelt option of the command": (("--sead", "3"), ("--sead", "did you mean --seeds")),
    "unknown short option": (("-x", "3"), ("-x", "unknown")),
    "option without a value": (("--alpha",), ("--alpha", "value")),
    "option twice": (("--alpha", "1", "--alpha", "2"), ("--alpha", "twice")),
    "text for a number": (("--alpha", "big"), ("'alpha'", "'big'", "number")),
    "NaN hyper-parameter": (("--alpha", "nan"), ("'alpha'", "'nan'", "finite")),
    "infinite hyper-parameter in a sweep": (("--alpha", "1,inf"), ("'alpha'", "'inf'", "finite")),
    "hole in a sweep": (("--alpha", "1,,2"), ("'alpha'", "''")),
    "layer of no units": (("--hidden", "64,0"), ("'hidden'", "64,0")),
    "no batch": (("--batch-size", "0"), ("batch_size",)),
    "unknown backup": (("--backup", "soft-max"), ("'soft-max'", "mode, sample or soft")),
    "unknown precision": (("--precision", "fp8"), ("'fp8'", "float32")),
    "text for a whole number": (("--steps", "many"), ("--steps",)),
    "no steps": (("--steps", "0"), ("--steps '0'",)),
    "negative steps": (("--steps", "-5"), ("--steps '-5'",)),
    "no seeds": (("--seeds", "0"), ("--seeds '0'", "count")),
    "seed twice": (("--seeds", "1,1"), ("--seeds '1,1'", "count")),
    "seeds in words": (("--seeds", "three"), ("'three'", "count")),
    "negative evaluation interval": (("--eval-every", "-1"), ("eval_every is -1",)),
    "no evaluation episodes": (("--eval-episodes", "0"), ("eval_episodes is 0",)),
    "no log interval": (("--log-every", "0"), ("log_every is 0",)),
    "nothing to keep": (("--keep", "0"), ("keep is 0",)),
    "ratio steps without a ratio": (("--ratio-steps", "10"), ("--ratio-steps", "leave them out")),
    "unknown environment": (("--environment", "hoper"), ("'hoper'", "did you mean 'hopper'")),
    "environment of other sizes": (("--environment", "hopper"), ("point-behaviour", "hopper", "11")),
    "out is a file": (("--out", "taken"), ("taken",)),
    "out below a file": (("--out", "taken/run"), ("taken/run",)),
}


def _with_options(options: tuple[str, ...]) -> Prepare:
    def prepare(place: Place) -> list[str]:
        (place.folder / "taken").write_text("mine\n")
        return place.train(*options)

    return prepare


for _name, (_options, _says) in OPTIONS.items():
    CASES[_name] = _with_options(_options), _says


@case("negative pretraining", "pretrain", "-1")
def _(place: Place) -> list[str]:
    return place.train("--pretrain", "-1", algorithm="sa-cql")


# Runs

simple("no such run", "resume", "nowhere", says=("nowhere", "no such run folder"))
simple("evaluation of no run", "evaluate", "nowhere", says=("nowhere", "no such run folder"))


@case("out already holds a run", "already holds a run", "sapp resume")
def _(place: Place) -> list[str]:
    return ["train", "cql", str(place.point), "--out", str(place.run())]


@case("config.json cut off", "config.json", "damaged")
def _(place: Place) -> list[str]:
    file = place.run() / "config.json"
    file.write_text(file.read_text()[:200])
    return ["resume", "run"]


@case("config.json without a key", "config.json", "'phases'")
def _(place: Place) -> list[str]:
    return _edit(place, lambda content: content.pop("phases"))


@case("config.json that is a list", "config.json", "must be an object")
def _(place: Place) -> list[str]:
    (place.run() / "config.json").write_text("[1, 2]\n")
    return ["evaluate", "run"]


@case("config.json of bytes", "config.json")
def _(place: Place) -> list[str]:
    (place.run() / "config.json").write_bytes(b"\xff\xfe\x00\x01")
    return ["resume", "run"]


@case("run of another version", "config.json", "format 99")
def _(place: Place) -> list[str]:
    return _edit(place, lambda content: content.update(format=99))


@case("unknown algorithm in config.json", "config.json", "'Oracle'")
def _(place: Place) -> list[str]:
    return _edit(place, lambda content: content["members"][0]["algorithm"].update({"class": "Oracle"}))


@case("unknown hyper-parameter in config.json", "config.json", "'luck'")
def _(place: Place) -> list[str]:
    return _edit(place, lambda content: content["members"][0]["algorithm"].update(luck=1))


def _edit(place: Place, change: Callable[[dict], object]) -> list[str]:
    file = place.run() / "config.json"
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))
    return ["resume", "run"]


@case("checkpoint of another version", ".safetensors", "format 99")
def _(place: Place) -> list[str]:
    from safetensors.numpy import load_file, save_file

    file = place.newest()
    save_file(load_file(file), file, metadata={"sapp": json.dumps({"format": 99, "crc32": {}, "step": 20})})
    return ["resume", "run"]


@case("checkpoint of another program", ".safetensors", "not one of sapp's")
def _(place: Place) -> list[str]:
    from safetensors.numpy import save_file

    save_file({"weight": np.zeros(3)}, place.newest())
    return ["evaluate", "run"]


@case("checkpoint of other layers", ".safetensors", "configuration")
def _(place: Place) -> list[str]:
    return _edit(place, lambda content: content["members"][0]["algorithm"].update(hidden=[8, 8]))


@case("flipped byte in a checkpoint", ".safetensors", "damaged")
def _(place: Place) -> list[str]:
    file = place.newest()
    content = bytearray(file.read_bytes())
    content[-5] ^= 0x40
    file.write_bytes(content)
    return ["resume", "run"]


@case("flipped byte in a checkpoint's header", ".safetensors", "damaged")
def _(place: Place) -> list[str]:
    file = place.newest()
    content = bytearray(file.read_bytes())
    content[9] ^= 0x40
    file.write_bytes(content)
    return ["evaluate", "run"]


@case("truncated checkpoint", ".safetensors", "damaged")
def _(place: Place) -> list[str]:
    file = place.newest()
    file.write_bytes(file.read_bytes()[:-100])
    return ["resume", "run"]


@case("empty checkpoint", ".safetensors", "damaged")
def _(place: Place) -> list[str]:
    place.newest().write_bytes(b"")
    return ["evaluate", "run"]


@case("evaluation before any checkpoint", "run", "no checkpoint yet")
def _(place: Place) -> list[str]:
    for file in (place.run() / "checkpoints").iterdir():
        file.unlink()
    return ["evaluate", "run"]


@case("evaluation where checkpoints cannot be found", "cannot list the checkpoints")
def _(place: Place) -> list[str]:
    shutil.rmtree(place.run() / "checkpoints")
    return ["evaluate", "run"]


@case("evaluation without an environment", "no environment", "--environment")
def _(place: Place) -> list[str]:
    _edit(place, lambda content: content["problems"][0].update(environment=None))
    return ["evaluate", "run"]


@case("evaluation in another environment", "halfcheetah", "17")
def _(place: Place) -> list[str]:
    return ["evaluate", str(place.run()), "--environment", "halfcheetah"]


@case("evaluation with physics that is not", "physics")
def _(place: Place) -> list[str]:
    return ["evaluate", str(place.run()), "--physics", "d4rl"]


@case("evaluation of no episodes", "episodes")
def _(place: Place) -> list[str]:
    return ["evaluate", str(place.run()), "--episodes", "0"]


@case("evaluation with a negative seed", "seed -1")
def _(place: Place) -> list[str]:
    return ["evaluate", str(place.run()), "--seed", "-1"]


@case("unknown member", "'cql/hopper/0'", "cql/point-behaviour/0")
def _(place: Place) -> list[str]:
    return ["evaluate", str(place.run()), "--member", "cql/hopper/0"]


def _own_data(place: Place) -> Path:
    """A run whose data lie beside it."""
    data = place.folder / "data.npz"
    shutil.copy(place.point, data)
    _edit(place, lambda content: content["problems"][0].update(source=str(data)))
    return data


@case("dataset changed since the run began", "point-behaviour", "changed")
def _(place: Place) -> list[str]:
    from sapp.data import save_npz
    from sapp.envs.point import behaviour_dataset

    save_npz(behaviour_dataset(5), _own_data(place))
    return ["resume", "run"]


@case("dataset gone since the run began", "data.npz", "no such file")
def _(place: Place) -> list[str]:
    _own_data(place).unlink()
    return ["resume", "run"]


@case("more data than the run has", "1 datasets, 2")
def _(place: Place) -> list[str]:
    return ["resume", str(place.run()), "--data", str(place.point), "--data", str(place.point)]


def listing(folder: Path) -> dict[str, str]:
    """Every file below a folder and the hash of its content; folders have none."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in sorted(folder.rglob("*"))
    }


def complaint(captured: str) -> str:
    """The one line on stderr."""
    lines = captured.splitlines()
    assert len(lines) == 1, captured
    assert lines[0].startswith("sapp: error: "), captured
    return lines[0]


@pytest.mark.parametrize("name", CASES)
def test_one_line_exit_code_2_and_nothing_left(name, place, capfd):
    prepare, says = CASES[name]
    argv = prepare(place)
    before = listing(place.folder)
    capfd.readouterr()
    assert main(argv) == 2
    line = complaint(capfd.readouterr().err)
    missing = [text for text in says if text not in line]
    assert not missing, line
    assert listing(place.folder) == before


def test_there_are_enough_kinds():
    assert len(CASES) >= 25


@pytest.mark.parametrize("name", ["NaN row", "unknown option", "text for a whole number"])
def test_the_installed_command_does_the_same(name, place):
    """As a process of its own: no warning, no traceback, the exit code of the process."""
    prepare, says = CASES[name]
    argv = prepare(place)
    before = listing(place.folder)
    root = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-m", "sapp", *argv], capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    line = complaint(done.stderr)
    assert all(text in line for text in says)
    assert listing(place.folder) == before


def test_second_process_on_the_same_run(place, capfd):
    run = place.run()
    (run / LAST).unlink()  # a finished run is nobody's to train
    before = listing(place.folder)
    with open(run / ".lock") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        assert main(["resume", str(run)]) == 2
    assert "another process" in complaint(capfd.readouterr().err)
    assert listing(place.folder) == before


def test_tensorboard_without_its_extra(place, capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    assert main(place.train("--log-to", "tensorboard")) == 2
    assert "sapp-rl[tensorboard]" in complaint(capfd.readouterr().err)
    assert listing(place.folder) == {"d4rl": ""}


def test_a_bug_keeps_its_traceback(monkeypatch):
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("sapp.runs.run.Run.__init__", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        main(["evaluate", "somewhere"])


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (MemoryError(), "out of memory"),
        (PermissionError(13, "Permission denied", "/some/file"), "/some/file: Permission denied"),
        (OSError(28, "No space left on device"), "No space left on device"),
    ],
)
def test_conditions_of_the_machine_are_one_line(error, says, monkeypatch, capfd):
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("sapp.runs.run.Run.__init__", broken)
    assert main(["evaluate", "somewhere"]) == 2
    assert says in complaint(capfd.readouterr().err)


@contextlib.contextmanager
def disk(folder: Path, options: str) -> Iterator[Path]:
    """A small disk of its own, real: where this process may mount one."""
    folder.mkdir()
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True).returncode:
        pytest.skip("mounting a small disk is not permitted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_disk_full_before_anything_is_written(place, tiny, short, capfd):
    with disk(place.folder / "full", "size=4k") as full:
        (full / "filler").write_bytes(bytes(4096))
        before = listing(full)
        assert main(["train", "cql", str(place.point), *tiny, *short, "--out", str(full / "run")]) == 2
        assert "No space left" in complaint(capfd.readouterr().err)
        assert main(["data", "convert", str(place.point), str(full / "copy.npz")]) == 2
        assert "No space left" in complaint(capfd.readouterr().err)
        assert main(["data", "show", str(place.point), "--plot", str(full / "figure.png")]) == 2
        assert "No space left" in complaint(capfd.readouterr().err)
        assert listing(full) == before


def test_disk_full_while_training(place, tiny, short, capfd):
    """Not all checkpoints fit: nothing is half-written, and with space the run goes on to the same bits."""
    with disk(place.folder / "small", "size=28k") as small:
        run = small / "run"
        assert main(["train", "cql", str(place.point), *tiny, *short, "--out", str(run)]) == 2
        line = complaint(capfd.readouterr().err)
        assert "No space left" in line
        assert not [path for path in run.rglob("*") if ".tmp" in path.name]
        for file in (run / "checkpoints").iterdir():  # what did fit is whole
            assert file.read_bytes() == (place.trained / "checkpoints" / file.name).read_bytes()
        json.loads((run / "config.json").read_text())
        subprocess.run(["mount", "-o", "remount,size=4m", str(small)], check=True)
        assert main(["resume", str(run), "--quiet"]) == 0
        assert (run / LAST).read_bytes() == (place.trained / LAST).read_bytes()


def test_read_only_folder(place, tiny, short, capfd):
    with disk(place.folder / "fixed", "size=4m") as fixed:
        shutil.copytree(place.trained, fixed / "finished")
        shutil.copytree(place.trained, fixed / "run")
        (fixed / "run" / LAST).unlink()
        subprocess.run(["mount", "-o", "remount,ro", str(fixed)], check=True)
        before = listing(fixed)
        for argv in (
            ["train", "cql", str(place.point), *tiny, *short, "--out", str(fixed / "new")],
            ["resume", str(fixed / "run")],
            ["data", "convert", str(place.point), str(fixed / "copy.npz")],
            ["data", "show", str(place.point), "--plot", str(fixed / "figure.png")],
        ):
            assert main(argv) == 2, argv
            assert "Read-only" in complaint(capfd.readouterr().err)
        assert main(["resume", str(fixed / "finished")]) == 0  # nothing to do
        assert main(["evaluate", str(fixed / "run"), "--episodes", "1"]) == 0  # reading needs no writing
        assert listing(fixed) == before
