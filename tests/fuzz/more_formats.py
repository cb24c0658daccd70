"""Formats that are folders or arrays of weights, and command lines: damaged, and judged by an independent reading."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mutators
import numpy as np
import readers
from frame_logs import make_log
from mutators import Rng

from sapp.cli.main import main
from sapp.collect.minari_export import save_minari
from sapp.core.errors import SappError
from sapp.data import load
from sapp.data.loaders.dqn_replay import load_dqn_replay
from sapp.data.loaders.frame_files import load_frames, save_frames
from sapp.envs.point import behaviour_dataset
from sapp.envs.policies import load_policy

Judged = tuple[Callable[[], Any], Callable[[Any], str]]


def policy(folder: Path, rng: Rng) -> Judged:
    """A policy file of plain arrays."""
    file = folder / "policy.npz"
    plain = np.random.default_rng(0)
    sizes = {"0": (4, 3), "1": (4, 4), "_mean": (2, 4), "_logstd": (2, 4)}
    arrays = {f"w{name}": plain.normal(size=size).astype("f4") for name, size in sizes.items()}
    arrays |= {f"b{name}": plain.normal(size=size[0]).astype("f4") for name, size in sizes.items()}
    np.savez(file, **mutators.damaged_arrays(arrays, rng))
    if rng.random() < 0.3:
        file.write_bytes(mutators.damaged_bytes(file.read_bytes(), rng))

    def judge(found: Any) -> str:
        arrays = readers.npz_columns(file)
        x = np.linspace(-1, 1, 5 * arrays["w0"].shape[1]).reshape(5, -1).astype("f4")
        with np.errstate(all="ignore"):
            close = np.allclose(found.mode(x), readers.policy_mode(arrays, x), atol=1e-4, equal_nan=True)
        return "" if close else "acts otherwise"

    return lambda: load_policy(file), judge


def _damage_one(folder: Path, rng: Rng) -> None:
    """One file below a folder."""
    files = sorted(each for each in folder.rglob("*") if each.is_file())
    file = files[int(rng.integers(len(files)))]
    content = file.read_bytes()
    what = rng.random()
    if what < 0.1:
        file.unlink()
    elif file.suffix == ".json" and what < 0.8:
        file.write_text(json.dumps(mutators.damaged_json(json.loads(content), rng)))
    elif file.suffix == ".gz" and what < 0.8:
        (array,) = mutators.damaged_arrays({"x": np.load(io.BytesIO(gzip.decompress(content)))}, rng).values() or [
            np.zeros(0)
        ]
        with gzip.open(file, "wb") as out:
            np.save(out, array)
    else:
        file.write_bytes(mutators.damaged_bytes(content, rng))


_LOG = make_log([5, 3, 4], [True, False, True], stack=2)


def frames(folder: Path, rng: Rng) -> Judged:
    """A folder of frames."""
    save_frames(_LOG, folder / "log")
    _damage_one(folder / "log", rng)

    def judge(found: Any) -> str:
        own = np.load(folder / "log" / "frames.npy", mmap_mode="r")
        rows = readers.npz_columns(folder / "log" / "rows.npz")
        same = np.array_equal(found.frames, own) and all(
            np.array_equal(getattr(found, name), rows[name]) for name in ("action", "reward", "terminal")
        )
        return "" if same else "other rows"

    return lambda: load_frames(folder / "log"), judge


def dqn_replay(folder: Path, rng: Rng) -> Judged:
    """A DQN-Replay folder."""
    own = folder / "replay_logs"
    if not _DQN:
        from sapp.data.loaders.dqn_replay import save_dqn_replay

        save_dqn_replay(_LOG, own)
        _DQN.update({each.name: each.read_bytes() for each in own.iterdir()})
    own.mkdir(exist_ok=True)
    for name, content in _DQN.items():
        (own / name).write_bytes(content)
    _damage_one(own, rng)

    def judge(found: Any) -> str:
        action, reward = readers.shard(own, "action"), readers.shard(own, "reward")
        at, terminal = 0, readers.shard(own, "terminal")
        for i in range(found.size):  # rows in order; those that pad an episode are left out
            while at < len(action) and (action[at], reward[at], bool(terminal[at])) != (
                found.action[i], found.reward[i], bool(found.terminal[i])
            ):  # fmt: skip
                at += 1
            if at == len(action):
                return f"row {i} is not in the files"
            at += 1
        return ""

    return lambda: load_dqn_replay(own), judge


_DQN: dict[str, bytes] = {}


def minari(folder: Path, rng: Rng) -> Judged:
    """A Minari dataset."""
    place = save_minari(behaviour_dataset(3), "mine/log-v0", root=folder)
    _damage_one(place, rng)

    def judge(found: Any) -> str:
        import h5py

        with h5py.File(place / "data" / "main_data.hdf5") as file:
            count = len([name for name in file if name.startswith("episode_")])
            episodes = [file[f"episode_{i}"] for i in range(count)]
            columns = {
                "observation": np.concatenate([each["observations"][:-1] for each in episodes]),
                "action": np.concatenate([each["actions"][()] for each in episodes]),
                "reward": np.concatenate([each["rewards"][()] for each in episodes]),
                "terminal": np.concatenate([each["terminations"][()] for each in episodes]),
            }
        return readers.differs(found, columns)

    return lambda: load(place), judge


WORDS: dict[str, tuple[str, ...]] = {
    "data convert": ("--name", "--environment", "--action-low", "--action-high", "--max-episode-steps", "--compress",
                     "--columns", "--map", "--force"),
    "data show": ("--plot", "--json", "--environment", "--action-low", "--max-episode-steps", "--map"),
    "data check": ("--json", "--environment", "--columns", "--max-episode-steps"),
    "collect point": ("--policy", "--steps", "--seeds", "--epsilon", "--rows", "--max-episode-steps", "--minari",
                      "--temperature", "--capacity", "--out", "--chunk", "--resume", "--quiet"),
    "theory chain": ("--left", "--right", "--arm", "--alpha", "--divergence", "--smoothing", "--plot"),
    "train bc nowhere.npz": ("--steps", "--seeds", "--hidden", "--batch-size", "--alpha", "--weights", "--pretrain",
                             "--eval-every", "--keep", "--out", "--precision", "--stream"),
    "evaluate nowhere": ("--episodes", "--seed", "--member", "--offline", "--bags", "--physics", "--video"),
    "report nowhere": ("--out", "--figures", "--title", "--force"),
    "export nowhere x.onnx": ("--member", "--step", "--samples"),
    "select nowhere": ("--by", "--act", "--checkpoints", "--fit-steps", "--fit-hidden", "--bags"),
    "experiment nowhere.py": ("--scale", "--seeds", "--steps", "--methods", "--store", "--on", "--time-limit"),
    "data make": ("--transitions", "--seed", "--policy-from", "--threads"),
    "resume nowhere": ("--data", "--columns", "--time-limit"),
    "algorithms": ("cql", "sa-cql", "nothing", "--json"),
}  # fmt: skip
VALUES = (
    "", "0", "1", "2", "-1", "3", "7", "0.5", "nan", "inf", "-inf", "1e400", str(2**31), str(2**63), str(-(2**70)), "x",
    "é\u202e", "\x1b[2J", "mine/log-v0", "..", "point", "uniform", "hopper", "evil:Env-v0", "1,1", "0,1", "out",
    "o.png", "last_step=end", "a=b", "--", "-", "tv", "kl", "mean", "1_000", "100", "9" * 400, "{", "[1]", "\\n",
)  # fmt: skip


def command_line(folder: Path, rng: Rng) -> Judged:
    """A command with some of its options and odd values; in an empty folder with one file of logs."""
    if not _POINT:
        from sapp.data import save_npz

        _POINT.append(save_npz(behaviour_dataset(6), folder / "point.npz").read_bytes())
    (folder / "point.npz").write_bytes(_POINT[0])
    command = tuple(WORDS)[int(rng.integers(len(WORDS)))]
    line = command.split()
    line += {"data convert": ["point.npz", "copy.npz"], "data show": ["point.npz"], "data check": ["point.npz"],
             "collect point": ["--policy", "uniform", "--steps", "50", "--quiet", "--out",
                               "given"]}.get(command, [])  # fmt: skip
    for _ in range(int(rng.integers(4))):
        line.append(WORDS[command][int(rng.integers(len(WORDS[command])))])
        if rng.random() < 0.85:
            line.append(VALUES[int(rng.integers(len(VALUES)))])

    def read() -> None:
        before = {each.name for each in folder.iterdir()}
        told = io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stderr(told), contextlib.redirect_stdout(io.StringIO()):
            try:
                code = main(line)
            except SystemExit as error:
                code = int(error.code or 0)
        if code not in (0, 2, 3):
            raise AssertionError(f"exit {code}: {line}")
        if code == 2:
            left = {each.name for each in folder.iterdir()} - before
            if left:
                raise AssertionError(f"refused and left {left}: {line}")
            raise SappError(told.getvalue().rstrip("\n"))

    def judge(_: Any) -> str:
        return _converted(folder, line) if command == "data convert" else _collected(folder, line, command)

    return read, judge


_POINT: list[bytes] = []


def _given(line: list[str], option: str) -> str | None:
    places = [i for i, word in enumerate(line[:-1]) if word == option]
    return line[places[-1] + 1] if places else None


def _converted(folder: Path, line: list[str]) -> str:
    """Whether what was written has the rows of what was read, and the name that was given."""
    if not (folder / "copy.npz").is_file():
        return ""
    ours, theirs = readers.npz_columns(folder / "copy.npz"), readers.npz_columns(folder / "point.npz")
    for name in ("observation", "reward", "terminal"):
        if not np.array_equal(ours[name], theirs[name]):
            return f"{name} has changed: {line}"
    name = _given(line, "--name")
    called = json.loads(str(ours["sapp_dataset"]))["name"]
    return f"is called {called}: {line}" if name and name.isprintable() and called != name else ""


def _collected(folder: Path, line: list[str], command: str) -> str:
    """Whether as many steps were recorded as were asked for."""
    steps, file = _given(line, "--steps"), folder / (_given(line, "--out") or "given") / "data.npz"
    if command != "collect point" or not file.is_file() or steps is None:
        return ""
    rows = len(readers.npz_columns(file)["reward"])
    return "" if rows == int(float(steps.replace("_", ""))) else f"{rows} rows: {line}"


FORMATS: dict[str, tuple[str, Callable[..., object]]] = {
    "policies": ("", policy),
    "folders of frames": ("", frames),
    "DQN-Replay": ("", dqn_replay),
    "Minari": ("", minari),
    "command lines": ("", command_line),
}

