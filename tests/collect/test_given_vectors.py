"""Policies that are there already, recorded in any environment with vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sapp
from sapp.cli.main import main
from sapp.collect.given_vectors import policy_of, record
from sapp.core.errors import SappError
from sapp.envs import make
from sapp.envs.policies import TanhGaussianPolicy


def test_several_epsilons_share_the_steps() -> None:
    data = record("CartPole-v1", lambda seen: np.ones(len(seen), int), steps=901, epsilon=[0.0, 0.4, 1.0], seed=1)
    assert data.size == 901
    shares = np.split(data.action, [300, 600])
    assert shares[0].all()
    assert shares[1].mean() == pytest.approx(0.8, abs=0.08)
    assert shares[2].mean() == pytest.approx(0.5, abs=0.1)
    np.testing.assert_allclose(np.exp(data.extras["log_prob"][300:600]), np.where(shares[1] == 1, 0.8, 0.2), rtol=1e-5)
    again = record("CartPole-v1", lambda seen: np.ones(len(seen), int), steps=901, epsilon=[0.0, 0.4, 1.0], seed=1)
    assert again.fingerprint == data.fingerprint


def test_vectors_of_a_deterministic_policy_have_no_density() -> None:
    data = record("Pendulum-v1", lambda seen: np.full((len(seen), 1), 1.5), steps=50)
    assert (data.action == 1.5).all()
    assert "log_prob" not in data.extras
    assert record("Pendulum-v1", steps=50).extras["log_prob"] == pytest.approx(-np.log(4))


def test_policies_of_files_and_runs(tmp_path: Path) -> None:
    layer = np.ones((4, 3), np.float32), np.zeros(4, np.float32)
    head = np.full((1, 4), 0.1, np.float32), np.zeros(1, np.float32)
    policy = TanhGaussianPolicy((layer,), head, head)
    np.savez(tmp_path / "policy.npz", **policy.arrays())
    assert np.abs(record("Pendulum-v1", tmp_path / "policy.npz", steps=40).action).max() <= 2
    with pytest.raises(SappError, match="drawn from as it is"):
        record("Pendulum-v1", tmp_path / "policy.npz", steps=40, epsilon=0.1)
    with pytest.raises(SappError, match="3 values in an observation and 1 values in an action; CartPole-v1"):
        record("CartPole-v1", tmp_path / "policy.npz", steps=40)
    with pytest.raises(SappError, match="no such policy"):
        record("CartPole-v1", tmp_path / "nothing", steps=40)
    with pytest.raises(SappError, match="chance from 0 to 1"):
        record("CartPole-v1", steps=40, epsilon=1.5)
    logs = record("CartPole-v1", steps=200, name="logs")
    run = sapp.train("discrete-bc", logs, steps=2, out=tmp_path / "run", eval_every=0, progress=False)
    env = make("CartPole-v1")
    seen = env.reset(5, seed=0).astype(np.float32)
    taken, _ = policy_of(tmp_path / "run", env, 0.0).sample(seen, np.random.default_rng(0))
    np.testing.assert_array_equal(taken, run.predict(seen))
    assert record("CartPole-v1", tmp_path / "run", steps=60, epsilon=0.5).num_actions == 2


def test_the_command_writes_a_file_that_trains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "given"
    assert main(["collect", "CartPole-v1", "--policy", "uniform", "--steps", "100", "--out", str(out)]) == 0
    assert "100 transitions" in capsys.readouterr().out
    assert sapp.load(out / "data.npz").environment == "CartPole-v1"
    assert main(["collect", "CartPole-v1", "--steps", "20_000"]) == 2
    assert "sapp collect CartPole-v1 --policy uniform" in capsys.readouterr().err
