"""What a new user brings: each environment is collected, saved, loaded, trained on and played."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import sapp
from sapp.algorithms import DiscreteBC, DiscreteCQL, MLPScores
from sapp.collect.given_vectors import record
from sapp.core.errors import SappError

TAXI = "Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3"


class Corridor(gymnasium.Env):
    """Walk five cells to the door; an action is (left or right, slow or fast), an observation a Dict."""

    observation_space = spaces.Dict({"cell": spaces.Discrete(6), "light": spaces.Box(0, 1, (1,), np.float32)})
    action_space = spaces.MultiDiscrete([2, 2])

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.cell = int(self.np_random.integers(3))
        return self._seen(), {}

    def _seen(self) -> Any:
        return {"cell": self.cell, "light": np.float32([self.cell / 5])}

    def step(self, action: np.ndarray) -> tuple[Any, float, bool, bool, dict]:
        move = (1 if action[0] else -1) * (2 if action[1] else 1)
        self.cell = int(np.clip(self.cell + move, 0, 5))
        return self._seen(), -1.0, self.cell == 5, False, {}


@pytest.mark.usefixtures("long_training")
def test_cartpole_through_minari_is_solved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))

    def lean(seen: np.ndarray) -> np.ndarray:
        return (seen[:, 2] + 0.5 * seen[:, 3] > 0).astype(int)

    logs = record("CartPole-v1", lean, steps=8_000, epsilon=0.6)
    assert logs.episode_returns.mean() < 150
    sapp.save_minari(logs, "cartpole/mediocre-v0")
    algorithm = DiscreteCQL(alpha=2.0, lr=1e-3, target_every=40, network=MLPScores((64, 64)))
    data = sapp.load("minari:cartpole/mediocre-v0")
    run = sapp.train(algorithm, data, seeds=2, steps=4_000, out=tmp_path / "run", eval_every=0, progress=False)
    assert np.mean([one.returns.mean() for one in run.evaluate(episodes=20, seed=5)]) >= 475


@pytest.mark.usefixtures("long_training")
def test_an_object_with_dict_observations_and_two_part_actions_is_solved(tmp_path: Path) -> None:
    data = record(Corridor, steps=3_000, max_episode_steps=30)
    assert (data.num_actions, data.observation_size, data.environment) == (4, 7, None)
    run = sapp.train(
        DiscreteCQL(alpha=0.1, lr=3e-3, target_every=20, network=MLPScores((32,))), data, steps=1_500,
        out=tmp_path / "run", eval_every=0, progress=False,
    )  # fmt: skip
    (found,) = run.evaluate(Corridor(), episodes=12, max_episode_steps=30)
    assert found.returns.min() >= -3
    with pytest.raises(SappError, match="no environment is known"):
        run.evaluate(episodes=1)
    with pytest.raises(SappError, match="7 values in an observation and 4 discrete actions, environment 'CartPole-v1'"):
        run.evaluate("CartPole-v1", episodes=1)


def optimal(name: str) -> Any:
    """The optimal policy of a finite MDP that Gymnasium has tables of, as a function of one-hot observations."""
    table = gymnasium.make(name).unwrapped.P  # type: ignore[attr-defined]
    moves, reward = np.zeros((len(table), len(table[0]), len(table))), np.zeros((len(table), len(table[0])))
    for state, actions in table.items():
        for action, outcomes in actions.items():
            for chance, successor, gain, done in outcomes:
                moves[state, action, successor] += chance * (not done)
                reward[state, action] += chance * gain
    value = np.zeros(len(table))
    for _ in range(200):
        value = (reward + 0.99 * moves @ value).max(1)
    best = (reward + 0.99 * moves @ value).argmax(1)
    return lambda seen: best[np.asarray(seen).argmax(1)]


@pytest.mark.usefixtures("long_training")
@pytest.mark.parametrize(("name", "steps", "share"), [("FrozenLake-v1", 4_000, 0.5), (TAXI, 10_000, 0.9)])
def test_toy_text_is_cloned_from_noisy_logs(name: str, steps: int, share: float, tmp_path: Path) -> None:
    data = record(name, optimal(name), steps=steps, epsilon=0.3)
    assert data.environment == name
    assert np.mean(data.episode_returns > 0) < share
    algorithm = DiscreteBC(lr=3e-3, batch_size=256, network=MLPScores((64,)))
    run = sapp.train(algorithm, data, steps=800, out=tmp_path / "run", eval_every=0, progress=False)
    assert np.mean(run.evaluate(episodes=40)[0].returns > 0) >= share


@pytest.mark.usefixtures("long_training")
def test_a_point_maze_is_cloned_from_a_controller_and_played(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium_robotics")

    def controller(seen: np.ndarray) -> np.ndarray:
        """Towards the goal: flattened observations are (where, goal, where and velocity)."""
        return np.clip(5 * (seen[:, 2:4] - seen[:, :2]) - seen[:, 6:], -1, 1)

    name = "PointMaze_Open-v3"
    data = record(name, controller, steps=1_500, epsilon=0.1)
    assert (data.environment, data.observation_size, data.action_size) == (name, 8, 2)
    algorithm = sapp.BC(hidden=(64,), actor_lr=3e-3, batch_size=128)
    run = sapp.train(algorithm, data, steps=1_500, out=tmp_path / "run", eval_every=1_500, eval_episodes=3,
                     progress=False)  # fmt: skip
    (row,) = run.evaluations()
    (own,) = sapp.evaluate(controller, name, episodes=3)
    assert float(row["return_mean"]) >= 0.8 * own.returns.mean() > 150


def test_a_function_is_evaluated_as_a_policy() -> None:
    (found,) = sapp.evaluate(lambda seen: np.full(len(seen), 3), Corridor, episodes=6, max_episode_steps=30)
    assert set(found.returns) <= {-3.0, -2.0}
    assert (found.returns == -found.lengths).all()
    with pytest.raises(SappError, match="needs an environment"):
        sapp.evaluate(lambda seen: seen)


def test_a_stranger_s_file_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dataset and a run folder that name module:Id must not run that module; the user's own word may."""
    text = (
        "import pathlib, gymnasium\n"
        "pathlib.Path(__file__).with_name('ran').touch()\n"
        "gymnasium.register('Foreign-v0', 'gymnasium.envs.classic_control:CartPoleEnv', max_episode_steps=9)\n"
    )
    (tmp_path / "foreign.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    data = record("CartPole-v1", steps=100)
    path = sapp.save_npz(sapp.load(data, name="theirs"), tmp_path / "theirs.npz")
    with np.load(path) as arrays:
        held = {key: arrays[key] for key in arrays.files}
    held["sapp_dataset"] = np.array(str(held["sapp_dataset"]).replace("CartPole-v1", "foreign:Foreign-v0"))
    np.savez(path, **held)
    with pytest.raises(SappError, match="'foreign:Foreign-v0' comes from a file"):
        sapp.train("discrete-bc", path, steps=2, out=tmp_path / "run", progress=False)
    run = sapp.train("discrete-bc", path, steps=2, out=tmp_path / "run", eval_every=0, progress=False)
    with pytest.raises(SappError, match="comes from a file"):
        run.evaluate(episodes=1)
    assert not (tmp_path / "ran").exists()
    try:
        assert run.evaluate("foreign:Foreign-v0", episodes=1)[0].lengths[0] <= 9
        assert (tmp_path / "ran").exists()
    finally:
        sys.modules.pop("foreign", None)
        gymnasium.registry.pop("Foreign-v0", None)


def steps_of_noise(observation: int, action: int) -> dict[str, np.ndarray]:
    """Forty steps in episodes of ten, every other one cut off."""
    rng = np.random.default_rng(0)
    rows = np.arange(40)
    return {
        "observations": rng.normal(size=(40, observation)).astype(np.float32),
        "actions": rng.uniform(-1, 1, (40, action)).astype(np.float32),
        "rewards": (rows % 20 == 9).astype(np.float32), "terminals": rows % 20 == 9, "timeouts": rows % 20 == 19,
    }  # fmt: skip


@pytest.mark.usefixtures("long_training")
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_is_trained_on_asked_and_judged(library: str, tmp_path: Path) -> None:
    frames = pytest.importorskip(library)
    arrays = steps_of_noise(2, 1)
    frame = frames.DataFrame({
        "episode_id": np.arange(40) // 10, "step": np.arange(40) % 10, "obs_0": arrays["observations"][:, 0],
        "obs_1": arrays["observations"][:, 1], "action": np.arange(40) % 3, "reward": arrays["rewards"],
        "terminated": arrays["terminals"],
    })  # fmt: skip
    run = sapp.train("discrete-cql", frame, steps=4, eval_every=0, out=tmp_path / "run", progress=False)
    assert run.plan.problems[0].num_actions == 3
    assert run.predict([0.5, -0.5]) in (0, 1, 2)
    assert run.predict(frame[["obs_0", "obs_1"]].to_numpy()).shape == (40,)
    assert np.isfinite(run.predict_value([0.5, -0.5], 1))
    assert sapp.resume(run.path, progress=False).step == 4  # the frame's copy is in the run's folder


@pytest.mark.usefixtures("long_training")
@pytest.mark.parametrize("kind", ["ogbench", "antmaze"])
def test_files_of_other_benchmarks_are_trained_on_by_the_command(kind: str, tmp_path: Path) -> None:
    from sapp.cli.main import main

    arrays = steps_of_noise(29, 8)
    if kind == "ogbench":
        file = tmp_path / "antmaze-medium-navigate-singletask-v0.npz"
        ends = arrays.pop("timeouts") | arrays["terminals"]
        masks = (~arrays["terminals"]).astype(np.float32)
        np.savez(file, **arrays | {"terminals": ends, "masks": masks, "next_observations": arrays["observations"]})
    else:
        import h5py

        file = tmp_path / "antmaze-medium-play-v2.hdf5"
        with h5py.File(file, "w") as opened:
            for key, value in arrays.items():
                opened[key] = value
            opened["infos/goal"] = np.zeros((40, 2))
    words = ["--steps", "4", "--hidden", "8", "--batch-size", "8", "--out", str(tmp_path / "run"), "-q"]
    assert main(["train", "iql", str(file), *words]) == 0
    run = sapp.Run(tmp_path / "run")
    assert (run.step, run.plan.problems[0].episodes) == (4, 4)
    chosen = run.predict(arrays["observations"])
    assert chosen.shape == (40, 8)
    assert np.abs(chosen).max() <= 1
