"""Online DQN: its ring beside a plain list, its schedule, what it logs, and that it learns the small game."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import LONG

from sapp.algorithms import DQN, ConvScores
from sapp.cli.main import main
from sapp.collect import online_dqn as dqn
from sapp.collect.frame_replay import FrameRing
from sapp.core.errors import SappError
from sapp.data import load
from sapp.data.frames import FrameDataset
from sapp.envs import make_frames
from sapp.runs.folders import locked

SMALL = ConvScores((8, 8), (4, 3), (4, 1), 64)


def test_the_ring_gives_the_stacks_of_a_plain_list() -> None:
    """Two environments, episodes of length 5 and 4 (the latter by time-out), a ring of eight rounds gone round."""
    rng = np.random.default_rng(0)
    ring, rounds = FrameRing.empty(8, 2, (3, 2), 3), 19
    frames = rng.integers(1, 256, (rounds, 2, 3, 2)).astype(np.uint8)
    lengths = (5, 4)
    age = np.stack([np.arange(rounds) % length for length in lengths], 1).astype(np.int32)
    last = np.stack([age[:, i] == lengths[i] - 1 for i in range(2)], 1)
    terminal, timeout = last & [True, False], last & [False, True]
    action, reward = rng.integers(0, 5, (rounds, 2)), rng.normal(size=(rounds, 2)).astype(np.float32)
    for t in range(rounds):
        if t:
            before = [jnp.asarray(each[t - 1]) for each in (action, reward, terminal, timeout)]
            ring = ring.record(jnp.int32(t - 1), *before)
        ring = ring.see(jnp.int32(t), jnp.asarray(frames[t]), jnp.asarray(age[t]))

    def stack(t: int, row: int) -> np.ndarray:
        wanted = [frames[t - k, row] if k <= age[t, row] else np.zeros((3, 2), np.uint8) for k in (2, 1, 0)]
        return np.stack(wanted)

    now = rounds - 1
    batch = jax.jit(lambda key: ring.draw(key, jnp.int32(now), 400))(jax.random.PRNGKey(0))
    seen = set()
    known = {reward[t, row].tobytes(): (t, row) for t in range(rounds) for row in range(2)}
    for i in range(400):
        t, row = known[np.asarray(batch.reward[i]).tobytes()]
        seen.add((t, row))
        np.testing.assert_array_equal(batch.observation[i], stack(t, row))
        assert batch.action[i] == action[t, row]
        assert bool(batch.terminal[i]) == terminal[t, row]
        if not terminal[t, row]:
            np.testing.assert_array_equal(batch.next_observation[i], stack(t + 1, row))
    # a ring of eight with the newest at 18 has whole stacks from 13 on, and 18 has no successor yet
    assert seen == {(t, row) for t in range(13, 18) for row in range(2) if not timeout[t, row]}


def test_epsilon_falls_as_dopamines_does() -> None:
    schedule = dqn.Exploration()
    assert [schedule.epsilon(step) for step in (0, 20_000, 145_000, 270_000, 10**7)] == pytest.approx(
        [1.0, 1.0, 0.505, 0.01, 0.01]
    )
    algorithm = dqn.dopamine_dqn()
    assert (algorithm.lr, algorithm.adam_eps, algorithm.target_every, algorithm.batch_size) == (
        6.25e-5, 1.5e-4, 2000, 32,
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dqn.DQNRun:
    algorithm = DQN(lr=2e-3, target_every=50, batch_size=64, discount=0.95, network=SMALL)
    # thousands of updates: compiled for that
    learn = jax.jit(dqn._learn.__wrapped__, static_argnums=0, donate_argnums=2, compiler_options=LONG)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dqn, "_learn", learn)
        return dqn.train(
            "catch", steps=6000, rows=20, algorithm=algorithm, exploration=dqn.Exploration(600, 1800, 0.05),
            log_every=2000, capacity=4000, shard_rows=4000, out=tmp_path_factory.mktemp("dqn") / "run", progress=False,
        )  # fmt: skip


def test_it_learns_and_its_log_shows_it(run: dqn.DQNRun) -> None:
    data = load(run.log)
    assert isinstance(data, FrameDataset)
    assert (data.size, data.num_actions, data.environment) == (6000, 3, "catch")
    assert set(np.unique(data.episode_lengths[:500])) <= {11, *range(1, 11)}
    returns = data.episode_returns
    assert returns[-200:].mean() > returns[:100].mean() + 0.3
    rows = list(csv.DictReader((run.path / "metrics.csv").open()))
    assert [int(row["step"]) for row in rows] == [2000, 4000, 6000]
    # one update for four steps, from the end of the warm-up on
    assert int(rows[-1]["updates"]) == (6000 - 600) // 4
    assert sum(int(row["episodes"]) for row in rows) == int(data.terminal.sum())
    assert len(list(run.log.glob("*observation*.gz"))) == 2  # padding counts, and episodes stay whole
    assert run.play(20).returns.mean() > returns[:100].mean()


def test_the_command_collects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    words = ["collect", "catch", "--algorithm", "dqn", "--steps", "220", "--random-steps", "110", "--rows", "10",
             "--capacity", "2000", "--channels", "4", "--kernels", "4", "--strides", "4", "--features", "8",
             "--eval-episodes", "0", "--quiet", "--out", str(out)]  # fmt: skip
    assert main(words) == 0
    assert f"Data: {out / 'replay_logs'}" in capsys.readouterr().out
    config = json.loads((out / "config.json").read_text())
    assert (config["steps_taken"], config["rows"], config["algorithm"]["network"]["channels"]) == (220, 10, [4])
    assert load(out / "replay_logs").num_episodes == 20
    assert main(words) == 2  # never into a folder that holds something
    assert "is not empty" in capsys.readouterr().err
    assert main(["collect", "catch", "--algorithm", "ppo"]) == 2
    assert main(["collect", "catch"]) == 2
    assert "catch has images for observations and choices for actions: add --algorithm dqn" in capsys.readouterr().err


QUICK = {
    "steps": 60, "rows": 4, "capacity": 200, "shard_rows": 40, "log_every": 20, "progress": False,
    "algorithm": DQN(batch_size=4, network=SMALL), "exploration": dqn.Exploration(1000, 1000),
}  # fmt: skip


def kill_at(step: int) -> Any:
    """Play catch until a process would be killed."""
    place = make_frames("catch")
    plain, calls = place.step, 0

    def play(action: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == step:
            raise ZeroDivisionError
        return plain(action)

    place.step = play  # type: ignore[method-assign]
    return place


def test_a_log_that_was_killed_before_its_first_shard_starts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(dqn.FramesLog, "__exit__", lambda *_: None)  # a killed process tidies nothing up
        for name, step in (("early", 6), ("late", 14)):
            with pytest.raises(ZeroDivisionError):
                dqn.train(kill_at(step), out=tmp_path / name, **QUICK)
    assert {file.name for file in (tmp_path / "early").iterdir()} == {".lock", "metrics.csv", "replay_logs"}
    with locked(tmp_path / "early"), pytest.raises(SappError, match="another process"):
        dqn.train("catch", out=tmp_path / "early", **QUICK)
    again, straight = (dqn.train("catch", out=tmp_path / name, **QUICK) for name in ("early", "straight"))
    assert load(again.log).fingerprint == load(straight.log).fingerprint
    assert len(list(csv.DictReader((again.path / "metrics.csv").open()))) == 3
    with pytest.raises(SappError, match=rf"is not empty: .* can be loaded from {tmp_path / 'late' / 'replay_logs'}"):
        dqn.train("catch", out=tmp_path / "late", **QUICK)
    assert load(tmp_path / "late" / "replay_logs").size > 0


def test_default_folders_of_one_second_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dqn.time, "strftime", lambda _: "20260101-120000")
    runs = [dqn.train("catch", **QUICK | {"steps": 4}) for _ in range(2)]
    assert [str(run.path) for run in runs] == [f"runs/dqn-catch-20260101-120000{end}" for end in ("", "-2")]


def test_bad_numbers_are_named(tmp_path: Path) -> None:
    with pytest.raises(SappError, match="capacity is 10: 4 environments need at least 24"):
        dqn.train("catch", capacity=10, rows=4, out=tmp_path / "x")
    with pytest.raises(SappError, match="update_period is 0"):
        dqn.train("catch", update_period=0, out=tmp_path / "x")
    with pytest.raises(SappError, match="no image environment"):
        dqn.train("hopper", out=tmp_path / "x")
    assert not (tmp_path / "x").exists()
