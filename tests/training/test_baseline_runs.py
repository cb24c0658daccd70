"""Baselines as whole runs: normalised policies and prepared algorithms train, resume and evaluate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sapp
from sapp import BRAC, TD3BC
from sapp.envs.point import behaviour_dataset
from sapp.evaluation.online_evaluation import play
from sapp.runs.phases import plain_protocol, prepared

SMALL = {"hidden": (8, 8), "batch_size": 16}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs") / "several"


@pytest.fixture(scope="module")
def run(folder: Path) -> sapp.Run:
    named = {
        "td3bc": TD3BC(**SMALL),
        "brac": BRAC(**SMALL, critic_hidden=(8,), behaviour_steps=6),
    }
    return sapp.train(
        named, behaviour_dataset(6), phases=prepared(6, plain_protocol(10)), out=folder, eval_every=4, eval_episodes=2,
        log_every=4, progress=False, keep=9,
    )  # fmt: skip


def test_an_algorithms_preparation_is_a_phase_of_its_own(run: sapp.Run) -> None:
    assert [(phase.name, phase.steps) for phase in run.plan.phases] == [("prepare", 6), ("train", 10)]
    rows = [row for row in run.metrics() if row["algorithm"] == "brac"]
    cloning = [row for row in rows if row["phase"] == "prepare"]
    assert all(float(row["behaviour/loss"]) != 0.0 and float(row["critic/td"]) == 0.0 for row in cloning)
    assert all(float(row["behaviour/loss"]) == 0.0 for row in rows if row["phase"] == "train")
    assert {int(row["step"]) for row in run.evaluations()} == {10, 14, 16}  # nothing is played while it prepares
    assert prepared(0, plain_protocol(5)) == plain_protocol(5)


def test_train_adds_the_preparation_that_all_members_share(tmp_path: Path) -> None:
    brac = BRAC(**SMALL, critic_hidden=(8,), behaviour_steps=2)
    options = {"steps": 3, "eval_every": 0, "progress": False}
    run = sapp.train(brac, behaviour_dataset(6), out=tmp_path / "alone", **options)
    assert [(phase.name, phase.steps) for phase in run.plan.phases] == [("prepare", 2), ("train", 3)]
    with pytest.raises(sapp.SappError, match="brac prepares itself for 2 updates and td3bc for 0"):
        sapp.train({"brac": brac, "td3bc": TD3BC(**SMALL)}, behaviour_dataset(6), out=tmp_path / "both", **options)
    assert not (tmp_path / "both").exists()


def test_policies_act_on_raw_observations_as_in_evaluation(run: sapp.Run) -> None:
    data = behaviour_dataset(6)
    for name in run.members:
        actions = run.predict(data.observation[:7], name)
        assert actions.shape == (7, data.action.shape[1])
        np.testing.assert_allclose(run.predict(data.observation[3], name), actions[3], rtol=1e-5, atol=1e-6)
        assert np.all(np.abs(actions) <= np.abs(data.action_high) + 1e-6)
        values = run.predict_value(data.observation[:7], actions, name)
        assert values.shape == (7,)
        one = run.predict_value(data.observation[3], actions[3], name)
        np.testing.assert_allclose(one, values[3], rtol=1e-4, atol=1e-5)
    found = play(run, episodes=2)
    assert [one.row(16, 16, run.members[one.member])["returns"] for one in found] == [
        row["returns"] for row in run.evaluations() if row["step"] == "16"
    ]


def test_a_resumed_run_has_the_same_bits(run: sapp.Run, folder: Path) -> None:
    assert max(run.checkpoints) == 16
    whole = run.checkpoints[16].read_bytes()
    for step, file in run.checkpoints.items():
        if step > 6:
            file.unlink()
    again = sapp.resume(folder, progress=False)
    assert again.checkpoints[16].read_bytes() == whole
