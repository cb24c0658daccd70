"""Online runs: learned values, resumed bits, what is in the folder, and what is refused."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import gymnasium
import jax
import numpy as np
import pytest
from sac_runs import SETTINGS, TASKS, contents

import sapp
from sapp.cli.main import main
from sapp.collect import online_training as training
from sapp.collect.online_run import OnlineRun
from sapp.collect.online_training import resume, train
from sapp.collect.sac_learners import Learners
from sapp.core.errors import Interrupted, SappError
from sapp.envs.policies import TanhGaussianPolicy
from sapp.runs import checkpoint
from sapp.runs.folders import locked


class Target(gymnasium.Env):
    """One step an episode: the reward is 1 − (action − x/2)² with the observed sign x, in actions of ±2."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-2, 2, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.sign = np.float32([self.np_random.choice([-1.0, 1.0])])
        return self.sign, {}

    def step(self, action):
        return self.sign, float(1 - (action[0] - self.sign[0]) ** 2), True, False, {}


@pytest.fixture(scope="module")
def target():
    gymnasium.register("Target-v0", Target, max_episode_steps=10)
    yield "Target-v0"
    del gymnasium.registry["Target-v0"]


def untimed(run: OnlineRun) -> list[dict[str, str]]:
    return [{key: value for key, value in row.items() if key != "seconds"} for row in run.metrics()]


def test_it_learns_what_is_best(target, tmp_path, capfd) -> None:
    """The best action is the sign itself, half-way in actions of ±2; its value is 1 (entropy is priced at almost 0)."""
    words = (
        f"collect {target} --hidden 32,32 --batch-size 64 --actor-lr 3e-3 --critic-lr 3e-3 --temperature-lr 0 "
        "--tau 0.05 --initial-temperature 1e-3 --steps 1_500 --rows 4 --random-steps 200 --chunk 20 --snapshots 3 "
        f"--eval-episodes 20 --record 50 --quiet --out {tmp_path / 'run'}"
    ).split()
    assert main(words) == 0
    assert capfd.readouterr().out == f"Run: {tmp_path / 'run'}\n"
    run = OnlineRun(tmp_path / "run")
    assert run.plan.algorithm.actor_lr == 3e-3
    policy = run.snapshot(run.plan.steps)[f"{target}/0"]
    np.testing.assert_allclose(policy.mode(np.float32([[-1], [1]]))[:, 0], [-0.5, 0.5], atol=0.06)
    rows = run.evaluations()
    assert float(rows[-1]["deterministic_mean"]) > 0.98
    assert float(rows[-1]["stochastic_mean"]) > 0.95
    assert float(rows[0]["stochastic_mean"]) < 0.6  # untrained
    assert rows[-1]["episodes"] == "20"
    assert float(run.metrics()[-1]["critic/value"]) == pytest.approx(1.0, abs=0.4)
    data = sapp.load(run.path / "datasets" / f"{target}-0-best.npz")  # in the environment's own units
    assert len(data) == 50
    np.testing.assert_allclose(data.action[:, 0], data.observation[:, 0], atol=0.5)
    np.testing.assert_allclose(data.reward, 1 - (data.action[:, 0] - data.observation[:, 0]) ** 2, rtol=1e-4, atol=1e-4)


def test_a_resumed_run_has_the_same_bits(whole, tmp_path) -> None:
    run = train(TASKS, out=tmp_path / "cut", time_limit=0.0, **SETTINGS)
    assert run.step == 32
    with locked(run.path), pytest.raises(SappError, match="another process is training this run"):
        resume(run.path, progress=False)  # as if another one had it
    stops = 0
    while run.step < run.plan.steps:
        run = resume(run.path, time_limit=0.5 if stops else 0.0, progress=False, threads=2)
        stops += 1
    assert stops > 1
    ours, theirs = contents(run), contents(whole)
    common = [name for name in theirs if not name.startswith("checkpoints")]
    assert common
    assert all(ours[name] == theirs[name] for name in common)
    last = f"checkpoints/{whole.plan.steps:010d}.safetensors"
    assert ours[last] == theirs[last]
    assert resume(run.path).step == run.plan.steps  # nothing left to do


@pytest.mark.slow
def test_killed_at_any_moment_it_resumes_with_the_same_bits(whole, tmp_path) -> None:
    folder = tmp_path / "killed"
    code = (
        f"import sys; sys.path.insert(0, {str(Path.cwd())!r})\n"
        "from sapp.collect.online_training import train\nfrom sapp.algorithms.sac import SAC\n"
        f"train({TASKS!r}, out={str(folder)!r}, seeds=2, steps=320, algorithm=SAC(hidden=(8,), batch_size=16), "
        "random_steps=64, rows=4, chunk=32, snapshots=4, checkpoint_every=96, log_every=64, progress=False, threads=1)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "JAX_PLATFORMS": "cpu"})
    deadline = time.monotonic() + 120
    while not list(folder.glob("checkpoints/*.safetensors")) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    run = resume(folder, progress=False, threads=1)
    ours, theirs = contents(run), contents(whole)
    assert all(ours[name] == theirs[name] for name in theirs if not name.startswith("checkpoints"))
    assert untimed(run) == untimed(whole)


def test_interrupted_by_hand_it_says_how_to_go_on(whole, tmp_path, monkeypatch) -> None:
    saves = []

    def save_then_stop(self) -> None:
        save(self)
        saves.append(self.step)
        if len(saves) == 2:
            raise KeyboardInterrupt

    save = training._Loop._save
    monkeypatch.setattr(training._Loop, "_save", save_then_stop)
    with pytest.raises(Interrupted, match=r"saved at step 192 of 320, continue with: sapp collect --resume"):
        train(TASKS, out=tmp_path / "cut", **SETTINGS)
    monkeypatch.undo()
    ours, theirs = contents(resume(tmp_path / "cut", progress=False, threads=1)), contents(whole)
    assert all(ours[name] == theirs[name] for name in theirs)


def test_a_run_holds_what_happened(whole) -> None:
    assert whole.step == whole.plan.steps == 320
    assert sorted(whole.snapshots) == list(whole.plan.snapshots)
    assert set(whole.snapshot(320)) == {"hopper/0", "hopper/1", "point/0", "point/1"}
    policy = whole.snapshot(320)["point/1"]
    assert (policy.observation_size, policy.action_size) == (2, 2)  # the padding is gone
    data = whole.buffer("hopper", 1)
    assert len(data) == 320
    assert data.physics == "d4rl"
    steps = whole.log("hopper", 1).read(0, 320)
    assert data.episode_returns.sum() == pytest.approx(steps.reward.sum(), rel=1e-5)
    assert data.terminal.sum() == steps.terminal.sum()
    # the first 64 are uniform: their density is that of the cube
    np.testing.assert_allclose(steps.log_prob[:64], -3 * np.log(2), rtol=1e-6)
    assert np.abs(steps.log_prob[64:] + 3 * np.log(2)).min() > 1e-6
    # later ones are the snapshot's: the density of logged actions under the policy that acted in the last chunk
    before = policy_of_checkpoint(whole, 288, "hopper/1")
    rows = slice(288, 320)
    np.testing.assert_allclose(
        before.log_prob(steps.observation[rows], steps.action[rows]),
        steps.log_prob[rows], rtol=2e-2, atol=2e-2,
    )  # fmt: skip
    rows_of_metrics = untimed(whole)
    returns = [
        (float(r["return_mean"]), int(r["episodes"]))
        for r in rows_of_metrics
        if r["member"] == "hopper/1" and r["return_mean"]
    ]
    ended = (steps.terminal + steps.timeout) > 0
    done = np.isin(steps.episode, steps.episode[ended])
    assert sum(mean * count for mean, count in returns) == pytest.approx(steps.reward[done].sum(), rel=1e-4)


def policy_of_checkpoint(run: OnlineRun, step: int, member: str) -> TanhGaussianPolicy:
    sizes = [(11, 3)] * 2 + [(2, 2)] * 2
    learners = Learners(run.plan.algorithm, sizes, [0, 1, 0, 1])
    rows = {
        "episode": np.zeros((2, 4), np.int32),
        "elapsed": np.zeros((2, 4), np.int32),
        "begun": np.zeros(2, np.int32),
    }
    like = jax.eval_shape(lambda: {"learners": learners.init(), "simulations": [rows, rows]})
    state = checkpoint.load(run.checkpoints[step], like)["learners"]
    return learners.policies(state)[run.plan.names.index(member)]


def test_datasets_are_written_and_load(whole) -> None:
    files = whole.save_datasets(40)
    assert [file.name for file in files if "point" in file.name] == [
        "point-0-replay.npz", "point-0-best.npz", "point-1-replay.npz", "point-1-best.npz",
    ]  # fmt: skip
    replay = sapp.load(whole.path / "datasets" / "point-1-replay.npz")
    assert replay.fingerprint == whole.buffer("point", 1).fingerprint
    assert replay.environment == "point"
    assert len(sapp.load(files[1])) == 40


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chunk": 30}, "multiple of rows"),
        ({"steps": 64}, "the first 64 are random"),
        ({"snapshots": 0}, "snapshots is 0"),
        ({"seeds": []}, "at least one environment and one seed"),
    ],
)
def test_bad_plans_are_refused_and_leave_nothing(change, message, tmp_path) -> None:
    with pytest.raises(SappError, match=message):
        train("point", out=tmp_path / "run", **SETTINGS | change)
    assert not list(tmp_path.iterdir())


def test_default_folders_of_one_second_differ(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(training.time, "strftime", lambda _: "20260101-120000")
    monkeypatch.setattr(training, "_go", lambda run, *_: run)
    runs = [train("point", **SETTINGS) for _ in range(3)]
    assert [str(run.path) for run in runs] == [f"runs/sac-point-20260101-120000{end}" for end in ("", "-2", "-3")]
    with pytest.raises(SappError, match="did you mean 'hopper'"):
        train("hoper", **SETTINGS)
    assert len(list(Path("runs").iterdir())) == 3  # a failed start leaves none


def test_a_disk_that_is_too_small_is_found_before_training(tmp_path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small disk needs root")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(small)], capture_output=True).returncode:
        pytest.skip("mounting a small disk is not permitted here")
    try:
        with pytest.raises(SappError, match=r"cannot reserve .* MB for the replay buffer \(No space left"):
            train("hopper", out=small / "run", **SETTINGS | {"steps": 3200})
        assert not [path for path in small.rglob("*") if path.is_file()]
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)
