"""Logs by given policies: each kind of policy is what plays, and the command says what it cannot use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sapp
from sapp.algorithms import DQN, ConvScores, DiscreteCQL
from sapp.cli.main import main
from sapp.collect import online_dqn as dqn
from sapp.collect.given import given_policy, log_given
from sapp.core.errors import SappError
from sapp.data import load
from sapp.data.frames import FrameDataset
from sapp.envs.catch import Catch, behaviour_logs
from sapp.envs.frame_policies import load_conv_policy

TINY = ConvScores((4,), (4,), (4,), 8)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A network of catch's 24×24 frames: one convolution 24 → 6, then 4 · 36 numbers."""
    rng = np.random.default_rng(0)
    shapes = {"c0": (4, 4, 4, 4), "f": (8, 144), "a": (3, 8)}
    arrays = {f"{name}w": rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    arrays |= {f"{name}b": rng.normal(size=shape[0]).astype(np.float32) for name, shape in shapes.items()}
    np.savez(tmp_path / "catcher.npz", strides=np.array([4]), **arrays)
    return tmp_path / "catcher.npz"


def logged(folder: Path) -> FrameDataset:
    data = load(folder)
    assert isinstance(data, FrameDataset)
    return data


def test_a_file_plays_at_its_temperature(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["collect", "catch", "--policy", str(file), "--epsilon", "0,1", "--temperature", "1e-4", "--steps", "600"]
    assert main([*words, "--rows", "4", "--quiet", "--out", str(tmp_path / "log")]) == 0
    assert f"Data: {tmp_path / 'log' / 'replay_logs'}" in capsys.readouterr().out
    data = logged(tmp_path / "log" / "replay_logs")
    scores = np.asarray(load_conv_policy(file).logits(data.stacks(np.arange(data.size))))
    same = data.action == scores.argmax(-1)
    # at so low a temperature the greedy action is drawn; the other half of the steps is random
    assert same.mean() == pytest.approx(0.5 + 0.5 / 3, abs=0.06)
    ends = zip(data.episode_starts, data.episode_ends, strict=True)
    assert sum(end + 1 - start for start, end in ends if same[start : end + 1].all()) >= 300
    assert (data.name, data.provenance["made"]["epsilon"]) == ("catch-given-0", [0.0, 1.0])


def test_folders_of_dqns_and_runs_play_greedily(tmp_path: Path) -> None:
    learner = dqn.train("catch", steps=40, rows=10, capacity=200, algorithm=DQN(network=TINY, batch_size=4),
                        exploration=dqn.Exploration(20, 10), out=tmp_path / "dqn", progress=False)  # fmt: skip
    run = sapp.train(DiscreteCQL(network=TINY, batch_size=4), behaviour_logs(3), steps=2, eval_every=0,
                     out=tmp_path / "run", progress=False)  # fmt: skip
    for number, (folder, policy) in enumerate(((learner.path, learner.policy()), (run.path, run.predict))):
        data = logged(log_given("catch", folder, steps=60, rows=2, epsilon=0.0, seed=3, out=tmp_path / f"log{number}"))
        np.testing.assert_array_equal(data.action, np.asarray(policy(data.stacks(np.arange(data.size)))))
        assert data.provenance["made"]["seed"] == 3
        other = Catch()
        other.num_actions = 2
        with pytest.raises(SappError, match=r"a policy of 3 actions .* has 2 .*another game"):
            given_policy(folder, other)


def test_what_is_no_policy_of_frames_is_said(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SappError, match="no policy; give an npz file"):
        given_policy(tmp_path, Catch())
    (tmp_path / "config.json").write_text('{"kind": "online dqn"}')
    with pytest.raises(SappError, match="plays greedily; a temperature is for npz files"):
        given_policy(tmp_path, Catch(), temperature=0.5)
    with pytest.raises(SappError, match="layers do not fit 3 frames of"):
        given_policy(file, Catch(), stack=3)
    other = Catch()
    other.num_actions = 6
    with pytest.raises(SappError, match=r"a policy of 3 actions .* has 6 .*another game"):
        given_policy(file, other)
    for words, message in (
        (["hopper", "--policy", str(file)], "no array w_mean"),
        (["catch", "--policy", str(file), "--lr", "1"], "learns nothing"),
        (["catch", "--policy", str(file), "--epsilon", "much"], "give a chance such as 0.1"),
        (["catch", "--policy", str(file), "--temperature", "0"], "temperature is 0; it must be above 0"),
        (["catch", "--policy", str(file), "--epsilon", "0.1,0.2", "--rows", "3"], "cannot share 2 values"),
    ):
        assert main(["collect", *words, "--steps", "30", "--quiet", "--out", str(tmp_path / "no")]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "no").exists()
