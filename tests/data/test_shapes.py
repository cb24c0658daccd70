"""Logs in the shapes that others write: what is loaded equals an independent reading, or one clear line says why not.

Each shape writes the same episodes its own way. They are told by plain loops below what must come out: every step with
its successor, except that the last step of an episode that stops unfinished goes where its successor is not recorded.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from sapp.core.errors import SappError
from sapp.data import Ledger, load_vectors


@dataclass
class Episode:
    observation: np.ndarray
    """[T + 1, 2]: the state after the last step, too."""
    action: np.ndarray
    reward: np.ndarray
    terminal: bool


def episodes(discrete: bool = False) -> list[Episode]:
    rng, out = np.random.default_rng(3), []
    for number, (steps, terminal) in enumerate([(150, False), (37, True), (150, False), (9, True), (150, False)]):
        states = np.column_stack([np.arange(steps + 1) + 1000 * number, rng.normal(size=steps + 1)]).astype(np.float32)
        action = rng.integers(0, 3, steps) if discrete else rng.uniform(-1, 1, (steps, 2)).astype(np.float32)
        reward = rng.normal(1, 0.1, size=steps).astype(np.float32)
        out.append(Episode(states, action, reward, terminal))
    return out


def flat(found: list[Episode]) -> dict[str, np.ndarray]:
    """One row per step."""
    sizes = [len(each.reward) for each in found]
    last = np.concatenate([np.arange(n) == n - 1 for n in sizes])
    terminal = last & np.repeat([each.terminal for each in found], sizes)
    return {
        "obs": np.concatenate([each.observation[:-1] for each in found]),
        "next": np.concatenate([each.observation[1:] for each in found]),
        "action": np.concatenate([each.action for each in found]),
        "reward": np.concatenate([each.reward for each in found]),
        "terminal": terminal, "timeout": last & ~terminal, "done": last,
        "episode": np.repeat(np.arange(len(found)), sizes),
        "step": np.concatenate([np.arange(n) for n in sizes]),
    }  # fmt: skip


@dataclass
class Shape:
    """How to write the episodes; what to tell ``load``; whether the last state of an episode is in the file."""

    write: Callable[[dict[str, np.ndarray], Path], Any]
    options: dict[str, Any]
    successors: bool = True
    discrete: bool = False


def hdf5(**fields: Any) -> Callable[[dict[str, np.ndarray], Path], Path]:
    """An HDF5 file whose arrays are columns, some of them changed."""

    def write(rows: dict[str, np.ndarray], folder: Path) -> Path:
        with h5py.File(folder / "log.hdf5", "w") as file:
            for key, field in fields.items():
                file[key.replace("__", "/")] = field(rows) if callable(field) else rows[field]
        return folder / "log.hdf5"

    return write


def renamed(**names: str) -> Callable[[dict[str, np.ndarray], Path], dict[str, np.ndarray]]:
    return lambda rows, folder: {new: rows[old] for new, old in names.items()}


def npz(**names: str) -> Callable[[dict[str, np.ndarray], Path], Path]:
    def write(rows: dict[str, np.ndarray], folder: Path) -> Path:
        np.savez(folder / "log.npz", **{new: rows[old] for new, old in names.items()})
        return folder / "log.npz"

    return write


def wide(rows: dict[str, np.ndarray], names: dict[str, str]) -> dict[str, np.ndarray]:
    """Columns of single numbers."""
    out = {}
    for new, old in names.items():
        value = rows[old]
        out |= {f"{new}_{i}": value[:, i] for i in range(value.shape[1])} if value.ndim == 2 else {new: value}
    return out


def csv(mark: str = ",", shuffle: bool = False, change: Any = None, **names: str) -> Any:
    def write(rows: dict[str, np.ndarray], folder: Path) -> Path:
        table = wide(rows, names)
        if change is not None:
            table = change(table)
        order = np.random.default_rng(0).permutation(len(rows["reward"])) if shuffle else np.arange(len(rows["reward"]))
        lines = [mark.join(table)]
        lines += [mark.join(str(column[row]) for column in table.values()) for row in order]
        (folder / "log.csv").write_text("\n".join(lines) + "\n")
        return folder / "log.csv"

    return write


def parquet(lists: bool = True, **names: str) -> Any:
    def write(rows: dict[str, np.ndarray], folder: Path) -> Path:
        table = {new: rows[old] for new, old in names.items()} if lists else wide(rows, names)
        plain = {key: list(value) if value.ndim == 2 else value for key, value in table.items()}
        pa.parquet.write_table(pa.table(plain), folder / "log.parquet")
        return folder / "log.parquet"

    return write


def structures(rows: dict[str, np.ndarray], folder: Path) -> Path:
    table = {"obs": "obs", "new_obs": "next", "action": "action"}
    pairs = {new: [{"x": a, "y": b} for a, b in rows[old].tolist()] for new, old in table.items()}
    plain = {new: rows[old] for new, old in (("reward", "reward"), ("terminal", "terminal"), ("timeout", "timeout"))}
    pa.parquet.write_table(pa.table({**pairs, **plain}), folder / "log.parquet")
    return folder / "log.parquet"


def with_commas(table: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {
        key: np.char.replace(value.astype(str), ".", ",") if value.dtype.kind == "f" else value.astype(int)
        for key, value in table.items()
    }


def partitioned(rows: dict[str, np.ndarray], folder: Path) -> Path:
    for number in np.unique(rows["episode"]):
        names = {"obs": "obs", "action": "action", "reward": "reward", "terminated": "terminal", "new_obs": "next"}
        part = {new: rows[old][rows["episode"] == number] for new, old in names.items()}
        (folder / "logs" / f"episode={number}").mkdir(parents=True)
        plain = {k: list(v) if v.ndim == 2 else v for k, v in part.items()}
        pa.parquet.write_table(pa.table(plain), folder / "logs" / f"episode={number}" / "part-0.parquet")
    return folder / "logs"


def rllib(ends: dict[str, str], batch: int, multi: bool = False, several: bool = False) -> Any:
    """Batches of so many steps, which cut episodes; in one file or in two."""

    def write(rows: dict[str, np.ndarray], folder: Path) -> Path:
        names = {"obs": "obs", "new_obs": "next", "actions": "action", "rewards": "reward", "eps_id": "episode",
                 "t": "step", **ends}  # fmt: skip
        lines = []
        for start in range(0, len(rows["reward"]), batch):
            part: dict[str, Any] = {new: rows[old][start : start + batch].tolist() for new, old in names.items()}
            part |= {"type": "SampleBatch", "infos": [{} for _ in part["t"]], "unroll_id": [start for _ in part["t"]]}
            whole = {"type": "MultiAgentBatch", "count": len(part["t"]), "policy_batches": {"default_policy": part}}
            lines.append(json.dumps(whole if multi else part))
        if not several:
            (folder / "output-1.json").write_text("\n".join(lines) + "\n")
            return folder / "output-1.json"
        (folder / "rllib").mkdir()
        for number in range(2):
            (folder / "rllib" / f"output-{number}.json").write_text("\n".join(lines[number::2]) + "\n")
        return folder / "rllib"

    return write


def robomimic(rows: dict[str, np.ndarray], folder: Path) -> Path:
    with h5py.File(folder / "low_dim.hdf5", "w") as file:
        for number in np.unique(rows["episode"]):
            inside = rows["episode"] == number
            for name, old in (("obs/a_pos", "obs"), ("next_obs/a_pos", "next")):
                file[f"data/demo_{number}/{name}"] = rows[old][inside][:, :1]
                file[f"data/demo_{number}/{name.replace('a_pos', 'b_vel')}"] = rows[old][inside][:, 1:]
            for name, old in (("actions", "action"), ("rewards", "reward"), ("dones", "terminal")):
                file[f"data/demo_{number}/{name}"] = rows[old][inside]
            file[f"data/demo_{number}/states"] = np.zeros((inside.sum(), 5))
    return folder / "low_dim.hdf5"


def as_words(table: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {**table, "treatment": np.array(["none", "low", "high"])[table["treatment"]],
            "discharged": np.where(table["discharged"], "yes", "no"), "note": table["yield"]}  # fmt: skip


def dated(table: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {**table, "hour": np.datetime64("2024-03-01T00:00:00") + table["hour"] * np.timedelta64(3600, "s")}


GYM = {"observations": "obs", "actions": "action", "rewards": "reward", "terminals": "terminal"}
D4RL = {**GYM, "timeouts": "timeout"}
MAPPED = {
    "observation": ["heart_0", "heart_1"], "action": "treatment", "reward": "yield", "episode": "patient",
    "time": "hour", "terminal": "discharged", "action_labels": ["none", "low", "high"], "scale": "none",
}  # fmt: skip
PLANT = {
    "observation": ["heat_0", "heat_1"], "action": ["valve_0", "valve_1"], "reward": "yield", "episode": "batch",
    "time": "hour", "terminal": "tripped", "scale": "none", "action_low": -1, "action_high": 1,
}  # fmt: skip

SHAPES: dict[str, Shape] = {
    "D4RL locomotion v2": Shape(hdf5(**D4RL, next_observations="next", infos__qpos="obs", infos__qvel="obs"), {}),
    "D4RL locomotion v0": Shape(hdf5(**D4RL), {}, successors=False),
    "D4RL maze2d": Shape(hdf5(**D4RL, infos__goal="obs"), {}, successors=False),
    "D4RL antmaze": Shape(hdf5(**D4RL, infos__goal="obs", infos__qpos="obs"), {}, successors=False),
    "D4RL adroit": Shape(hdf5(**D4RL, infos__env_state__qpos="obs", infos__action_log_probs="reward"), {}, False),
    "D4RL kitchen": Shape(hdf5(**D4RL, metadata__x="obs"), {}, successors=False),
    "D4RL flow": Shape(hdf5(**GYM, timeouts=lambda r: r["timeout"].astype(np.uint8)), {}, successors=False),
    "D4RL carla": Shape(hdf5(**D4RL, next_observations="next"), {}),
    "D4RL bullet": Shape(
        hdf5(observations="obs", actions="action", rewards=lambda r: r["reward"][:, None].astype(np.float64),
             terminals=lambda r: r["terminal"].astype(np.float32), timeouts=lambda r: r["timeout"].astype(np.float32)),
        {}, successors=False,
    ),
    "D4RL without time-outs": Shape(hdf5(**GYM, next_observations="next"), {}),
    "RLlib JSON": Shape(rllib({"terminateds": "terminal", "truncateds": "timeout"}, 40), {}),
    "RLlib JSON, old": Shape(rllib({"dones": "done"}, 200), {"max_episode_steps": 150}),
    "RLlib JSON of several workers": Shape(rllib({"dones": "terminal"}, 33, multi=True, several=True), {}),
    "RLlib Parquet": Shape(
        parquet(obs="obs", new_obs="next", actions="action", rewards="reward", terminateds="terminal",
                truncateds="timeout", eps_id="episode", t="step"), {}),
    "robomimic": Shape(robomimic, {}),
    "d3rlpy": Shape(renamed(observations="obs", actions="action", rewards="reward", terminals="terminal",
                            timeouts="timeout"), {}, successors=False),
    "Stable-Baselines buffer": Shape(npz(obs="obs", next_obs="next", actions="action", rewards="reward", dones="done",
                                         timeouts="timeout"), {}),
    "Tianshou buffer": Shape(npz(obs="obs", act="action", rew="reward", terminated="terminal", truncated="timeout",
                                 done="done", obs_next="next"), {}),
    "Gym's old done": Shape(npz(observations="obs", actions="action", rewards="reward", dones="done",
                                next_observations="next"), {"max_episode_steps": 150}),
    "Gymnasium arrays": Shape(renamed(obs="obs", action="action", reward="reward", terminated="terminal",
                                      truncated="timeout", next_obs="next"), {}),
    "arrays with episode ids": Shape(renamed(state="obs", action="action", reward="reward", terminal="terminal",
                                             episode="episode"), {}, successors=False),
    "choices in an array": Shape(renamed(observations="obs", actions="action", rewards="reward",
                                         terminations="terminal", truncations="timeout",
                                         next_observations="next"), {}, discrete=True),
    "LeRobot": Shape(
        parquet(**{"observation.state": "obs", "action": "action", "next.reward": "reward", "episode_index": "episode",
                   "frame_index": "step", "next.done": "terminal", "timestamp": "step", "task_index": "episode"}),
        {"columns": {"observation": "observation.state", "reward": "next.reward", "terminal": "next.done",
                     "scale": "none"}}, successors=False),
    "folders per episode": Shape(partitioned, {"columns": {"episode": "episode"}}),
    "CSV with usual names": Shape(csv(obs="obs", action="action", reward="reward", terminal="terminal",
                                      episode="episode", step="step"), {}, successors=False),
    "CSV out of order": Shape(csv(shuffle=True, state="obs", next_state="next", action="action", reward="reward",
                                  done="terminal", trajectory_id="episode", timestep="step"), {}),
    "hospital": Shape(csv(change=as_words, patient="episode", hour="step", heart="obs", treatment="action",
                          discharged="terminal", **{"yield": "reward"}),
                      {"columns": MAPPED}, successors=False, discrete=True),
    "greenhouse": Shape(csv(mark=";", change=dated, batch="episode", hour="step", heat="obs", valve="action",
                            tripped="terminal", **{"yield": "reward"}), {"columns": PLANT}, successors=False),
    "a counter of steps": Shape(csv(obs="obs", action="action", reward="reward", terminated="terminal", step="step"),
                                {}, successors=False),
    "structures in Parquet": Shape(structures, {}),
    "semicolons and decimal commas": Shape(csv(mark=";", change=with_commas, obs="obs", act="action", rew="reward",
        terminal="terminal", episode_id="episode"), {"columns": {"episode": "episode_id"}}, successors=False),
    "index of a frame": Shape(lambda rows, folder: pytest.importorskip("pandas").DataFrame(wide(rows, {"obs": "obs",
        "action": "action", "reward": "reward", "terminal": "terminal", "episode": "episode", "step": "step"}))
        .set_index(["episode", "step"]), {}, successors=False),
    "Arrow table": Shape(lambda rows, folder: pa.table(wide(rows, {"obs": "obs", "next_obs": "next", "action": "action",
        "reward": "reward", "terminated": "terminal", "truncated": "timeout"})), {}),
    "pandas": Shape(lambda rows, folder: pytest.importorskip("pandas").DataFrame(wide(rows, {"obs": "obs",
        "action": "action", "reward": "reward", "terminal": "terminal", "episode": "episode"})), {}, successors=False),
}  # fmt: skip


def columns_of(source: Any) -> list[str]:
    """The columns that a plain reader sees."""
    if isinstance(source, Path) and source.suffix == ".hdf5":
        with h5py.File(source) as file:
            if "data" in file:  # the vectors of robomimic's observations are one field, side by side
                return [*file["data/demo_0"], "episode"]
            groups = [f"{key}/{name}" for key in file if isinstance(file[key], h5py.Group) for name in file[key]]
            return [key for key in file if isinstance(file[key], h5py.Dataset)] + groups
    if isinstance(source, Path) and (source.suffix == ".json" or source.name == "rllib"):
        file = source if source.is_file() else source / "output-0.json"
        batch = json.loads(file.read_text().splitlines()[0])
        return [key for key in batch.get("policy_batches", {"": batch}).popitem()[1] if key != "type"]
    if isinstance(source, Path) and source.is_dir():
        return [*pa.parquet.read_schema(next(source.rglob("*.parquet"))).names, "episode"]
    if isinstance(source, Path) and source.suffix == ".parquet":
        return list(pa.parquet.read_schema(source).names)
    if isinstance(source, Path) and source.suffix == ".npz":
        return list(np.load(source))
    if isinstance(source, Path):
        return source.read_text().splitlines()[0].replace(";", ",").split(",")
    index = [name for name in source.index.names if name] if hasattr(source, "index") else []
    return index + (list(source.column_names) if isinstance(source, pa.Table) else [str(key) for key in source])


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_is_read_as_it_is_meant(tmp_path: Path, name: str) -> None:
    shape = SHAPES[name]
    truth = episodes(shape.discrete)
    source = shape.write(flat(truth), tmp_path)
    data = load_vectors(source, **shape.options)
    expected: dict[str, list[Any]] = {key: [] for key in ("length", "return", "terminal", "obs", "next", "action")}
    lost = 0
    for each in truth:
        dropped = not shape.successors and not each.terminal
        steps = len(each.reward) - dropped
        lost += dropped
        expected["length"].append(steps)
        expected["return"].append(each.reward[:steps].sum(dtype=np.float64))
        expected["terminal"].append(each.terminal)
        expected["obs"].append(each.observation[:steps])
        after = each.observation[1 : steps + 1].copy()
        if not shape.successors and each.terminal:
            after[-1] = each.observation[steps - 1]  # a copy that nothing uses
        expected["next"].append(after)
        expected["action"].append(each.action[:steps])
    assert data.episode_lengths.tolist() == expected["length"]
    np.testing.assert_allclose(data.episode_returns, expected["return"], rtol=1e-6)
    assert data.terminal[data.episode_ends].tolist() == expected["terminal"]
    assert data.terminal.sum() == 2
    assert data.timeout.sum() == 3
    np.testing.assert_allclose(data.observation, np.concatenate(expected["obs"]), rtol=1e-6)
    np.testing.assert_allclose(data.next_observation, np.concatenate(expected["next"]), rtol=1e-6)
    np.testing.assert_allclose(data.action, np.concatenate(expected["action"]), rtol=1e-6, atol=1e-7)
    assert data.discrete == shape.discrete
    ledger = Ledger.of(data)
    assert (ledger.rows, ledger.dropped) == (sum(len(each.reward) for each in truth), lost)
    assert ledger.rows - ledger.dropped == data.size
    assert sorted(each.name for each in ledger.columns) == sorted(columns_of(source))
    assert all(each.note for each in ledger.unused)
    uses = [str(each.use).split()[0] for each in ledger.used]
    assert {"observation", "action", "reward"} <= set(uses)
    assert uses.count("reward") == 1


def ogbench(rows: dict[str, np.ndarray], folder: Path) -> Path:
    return npz(observations="obs", actions="action", terminals="done", qpos="obs")(rows, folder)


def pickled(rows: dict[str, np.ndarray], folder: Path) -> Path:
    (folder / "hopper.pkl").write_bytes(b"\x80\x04")
    return folder / "hopper.pkl"


def packed(rows: dict[str, np.ndarray], folder: Path) -> Path:
    (folder / "out.json").write_text(json.dumps({"type": "SampleBatch", "rewards": [1.0], "obs": "BCJNGGhA"}))
    return folder / "out.json"


def two_policies(rows: dict[str, np.ndarray], folder: Path) -> Path:
    batch = {"type": "MultiAgentBatch", "policy_batches": {"red": {}, "blue": {}}}
    (folder / "out.json").write_text(json.dumps(batch))
    return folder / "out.json"


def notes(rows: dict[str, np.ndarray], folder: Path) -> Path:
    (folder / "out.json").write_text('{"learning rate": 3}')
    return folder / "out.json"


REFUSED = {
    "no reward (OGBench)": (ogbench, "holds no rewards, as OGBench"),
    "a pickle": (pickled, "unknown file ending '.pkl'"),
    "RLlib, packed": (packed, "field 'obs' is packed (a pickle), which is never loaded; write the logs again"),
    "RLlib, several policies": (two_policies, "steps of 2 policies (red, blue)"),
    "another program's JSON": (notes, "is no batch of steps"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_shape_that_cannot_be_read_says_why(tmp_path: Path, name: str) -> None:
    write, words = REFUSED[name]
    with pytest.raises(SappError) as caught:
        load_vectors(write(flat(episodes()), tmp_path))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_there_are_thirty() -> None:
    assert len(SHAPES) >= 30
