"""Online DQN: its ring beside a plain list, its schedule, what it logs, and that it learns the small game."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from compiling import LONG

from sapp.algorithms import DQN, ConvScores
from sapp.cli.main import main
from sapp.collect import online_dqn as dqn
from sapp.core.errors import SappError
from sapp.data import load
from sapp.data.frames import FrameDataset
from sapp.envs import make_frames
from sapp.runs.folders import locked

SMALL = ConvScores((8, 8), (4, 3), (4, 1), 64)


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
    assert "catch has images for observations and discrete actions: add --algorithm dqn" in capsys.readouterr().err


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


LEARNING = QUICK | {"steps": 120, "exploration": dqn.Exploration(20, 40), "checkpoint_every": 28}


def left_by(run: dqn.DQNRun) -> dict[str, Any]:
    """All that a run is, but the time that it took."""
    rows = list(csv.DictReader((run.path / "metrics.csv").open()))
    files = [*sorted(run.log.iterdir()), run.path / "network.safetensors", run.path / "actions.bin"]
    files += sorted((run.path / "checkpoints").iterdir())
    return {file.name: file.read_bytes() for file in files} | {
        "metrics": [{key: value for key, value in row.items() if key != "seconds"} for row in rows]
    }


@pytest.fixture(scope="module")
def straight(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return left_by(dqn.train("catch", out=tmp_path_factory.mktemp("straight") / "straight", **LEARNING))


@pytest.mark.parametrize("rounds", [3, 9, 16, 29])
def test_a_run_that_was_killed_goes_on_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, straight: dict[str, Any], rounds: int
) -> None:
    """Before the first checkpoint and after it, before the first shard and after it, and once more while it resumes."""
    out = tmp_path / "straight"
    with monkeypatch.context() as patch:
        patch.setattr(dqn.FramesLog, "__exit__", lambda *_: None)  # a killed process tidies nothing up
        with pytest.raises(ZeroDivisionError):
            dqn.train(kill_at(rounds), out=out, **LEARNING)
        with pytest.raises(ZeroDivisionError):
            dqn.resume(out, environment=kill_at(rounds), progress=False)
    with locked(out), pytest.raises(SappError, match="another process"):
        dqn.resume(out, progress=False)
    with pytest.raises(SappError, match=f"continue it with 'sapp collect --resume {out}'"):
        dqn.train("catch", out=out, **LEARNING)
    run = dqn.resume(out, progress=False)
    assert (run.steps, run.finished) == (120, True)
    found = left_by(run)
    assert [name for name in straight if found.get(name) != straight[name]] == []
    assert found.keys() == straight.keys()


def test_what_the_ring_is_given_never_changes_under_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, straight: dict[str, Any]
) -> None:
    """JAX may read a NumPy array where it lies, long after the call that took it."""
    out = tmp_path / "straight"
    with pytest.raises(ZeroDivisionError):
        dqn.train(kill_at(16), out=out, **LEARNING)
    given: list[tuple[Any, Any]] = []

    plain = dqn._repeat

    def watched(*args: Any) -> Any:
        given.extend((leaf, leaf.copy()) for leaf in jax.tree.leaves(args) if isinstance(leaf, np.ndarray))
        return plain(*args)

    monkeypatch.setattr(dqn, "_repeat", watched)
    run = dqn.resume(out, progress=False)
    assert len(given) > 7 * 2  # frames and ages of every round played again, and what came of it
    assert all(np.array_equal(array, copy) for array, copy in given)
    assert left_by(run).keys() == straight.keys()


COMMAND = ["collect", "catch", "--algorithm", "dqn", "--steps", "4_000_000", "--random-steps", "100", "--rows", "10",
           "--capacity", "2000", "--channels", "4", "--kernels", "4", "--strides", "4", "--features", "8",
           "--eval-episodes", "0", "--quiet", "--out"]  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_saves_says_so_and_exits_130(
    tmp_path: Path, number: int, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    process = subprocess.Popen([sys.executable, "-m", "sapp", *COMMAND, str(out)], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 200
    while not (out / "metrics.csv").is_file() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(number)
    _, told = process.communicate(timeout=100)
    assert process.returncode == 130, told
    assert told.count("\n") == 1
    assert f"continue with: sapp collect --resume {out}" in told
    run = dqn.DQNRun(out)
    assert (0 < run.steps < 4_000_000, run.finished) == (True, False)
    assert load(run.log).size == run.steps  # what was played is there, whole
    before = run.steps
    assert main(["collect", "--resume", str(out), "--time-limit", "0.01", "--quiet"]) == 0
    assert f"Go on with: sapp collect --resume {out}" in capfd.readouterr().out
    assert before < dqn.DQNRun(out).steps == load(run.log).size


def test_a_run_whose_emulator_plays_otherwise_or_whose_actions_changed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(dqn.FramesLog, "__exit__", lambda *_: None)
        with pytest.raises(ZeroDivisionError):
            dqn.train(kill_at(9), out=out, **LEARNING)
    place = make_frames("catch")
    plain = place.step
    place.step = lambda action: (lambda f, r, t: (f, -r, t))(*plain(action))  # type: ignore[method-assign]
    with pytest.raises(SappError, match="plays other games than when the run began"):
        dqn.resume(out, environment=place, progress=False)
    content = bytearray((out / "actions.bin").read_bytes())
    content[0] ^= 1
    (out / "actions.bin").write_bytes(content)
    with pytest.raises(SappError, match=r"actions.bin: is not what its checkpoint was made with"):
        dqn.resume(out, progress=False)


@pytest.mark.parametrize(
    ("key", "value"), [("rows", 0), ("seed", "x"), ("frame", [1]), ("exploration", {"luck": 1}), ("steps", 1e9)]
)
def test_a_damaged_configuration_is_one_line(tmp_path: Path, key: str, value: Any) -> None:
    run = dqn.train("catch", out=tmp_path / "run", **QUICK | {"steps": 4})
    content = json.loads((run.path / "config.json").read_text())
    (run.path / "config.json").write_text(json.dumps({**content, key: value}))
    with pytest.raises(SappError, match=r"config.json: damaged|exploration"):
        dqn.resume(run.path)


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
