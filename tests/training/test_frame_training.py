"""Training on frames: batches beside the host's, a game solved, state weights on features, streaming, resuming."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import sapp
from sapp.algorithms import REM, ConvScores, DiscreteCQL
from sapp.core.errors import Interrupted, SappError
from sapp.data.frames import FrameDataset
from sapp.data.loaders.frame_files import load_frames, save_frames
from sapp.envs.catch import behaviour_logs
from sapp.evaluation import online_evaluation
from sapp.runs.learners import Learner
from sapp.runs.members import Member, MemberId
from sapp.runs.phases import Phase
from sapp.runs.run import Run
from sapp.training import loop as loop_module
from sapp.training import streaming as streaming_module
from sapp.training.device_frames import DeviceFrames, frame_spec
from sapp.training.population import Population, variants_of
from sapp.training.streaming import HostFrames
from sapp.weights import DualDICE, LogMinMax, Uniform, control

TINY = ConvScores((4,), (4,), (4,), 8)
DICE = DualDICE(hidden=(8,), f=LogMinMax(0.5, 2.0), zeta_lr=1e-3)
SA = DiscreteCQL(network=TINY, batch_size=4, target_every=3, lr=1e-3, weights=control(DICE, "real"))
JOINT = Phase("joint", 20)


# A game solved from the logs of a mediocre player


@pytest.mark.usefixtures("long_training")
def test_catch_is_learned_from_a_mediocre_player(tmp_path: Path) -> None:
    data = behaviour_logs(1500)
    assert data.episode_returns.mean() < 0.0
    algorithm = DiscreteCQL(
        alpha=0.1, lr=2e-3, target_every=50, discount=0.95, network=ConvScores((8, 8), (4, 3), (4, 1), 64)
    )
    run = sapp.train(
        algorithm, data, steps=3000, out=tmp_path / "run", eval_every=1500, eval_episodes=50, log_every=1500,
        progress=False, copy_data=False,
    )  # fmt: skip
    (row,) = run.final_and_best()
    assert row["final"] >= 0.7
    assert row["best"] == max(float(each["return_mean"]) for each in run.evaluations())
    stack = data.stacks([5])
    assert run.predict(stack)[0] == run.predict(stack[0])
    assert run.predict(stack).dtype == np.int32
    with pytest.raises(SappError, match=r"float64 \(4, 24, 24\); catch has stacks of frames, uint8 \(4, 24, 24\)"):
        run.predict(stack[0].astype(float))


# Populations: state weights and controls on features, a member alone and among others, streamed and resident


def members(datasets: int = 2) -> list[Member]:
    chosen = [("real", 0), ("shuffled", 0), ("matched", 1), ("random", 1), ("uniform", 0), ("real", 1)]
    return [
        Member(f"{kind}/{i}", replace(SA, weights=control(DICE, kind)), seed % datasets, seed)
        for i, (kind, seed) in enumerate(chosen)
    ]


@pytest.fixture(scope="module")
def games() -> list[FrameDataset]:
    return [behaviour_logs(6, 0, name="first"), behaviour_logs(9, 1, name="second")]


def run_of(population: Population, steps: int, pieces: int = 1) -> tuple[Learner, dict]:
    learner = population.init()
    sums = population.empty_sums(JOINT)
    for _ in range(pieces):
        learner, sums = population.run(learner, sums, JOINT, steps // pieces)
    return jax.device_get(learner), jax.device_get(sums.values)


@pytest.fixture(scope="module")
def together(games: list[FrameDataset], usual_compiler: None) -> tuple[Population, Learner, dict]:
    population = Population(members(), DeviceFrames.of(games), [frame_spec(game) for game in games])
    return population, *run_of(population, 20)


def test_weights_and_their_controls_are_what_they_say(together: tuple[Population, Learner, dict]) -> None:
    _, learner, sums = together
    assert learner.ratio.nu.state_size == 8  # the encoder's features, not pixels
    low, high, mean = (sums[f"weights/{what}"] / 20 for what in ("min", "max", "mean"))
    real, shuffled, matched, random, uniform, other = range(6)
    np.testing.assert_allclose(mean[shuffled], mean[real], rtol=0.02)  # the same but for what they learned apart
    assert low[matched] == pytest.approx(high[matched])
    assert 0.5 <= low[random] < high[random] <= 2.5
    assert (low[uniform], high[uniform]) == (1.0, 1.0)
    assert high[real] - low[real] > 0.1
    assert high[other] - low[other] > 0.1
    assert np.isfinite(sums["ratio/saddle"]).all()


def test_a_member_among_six_equals_itself_alone(
    games: list[FrameDataset], together: tuple[Population, Learner, dict]
) -> None:
    population, among, _ = together
    number = 5  # of the second dataset, whose frames lie behind the first's
    chosen = population.members[number]
    alone = Population([Member("alone", chosen.algorithm, 0, chosen.seed)], DeviceFrames.of(games[1:]),
                       [frame_spec(games[1])])  # fmt: skip
    shift = len(games[0])
    np.testing.assert_array_equal(alone.batch_rows(0, 7) + shift, population.batch_rows(number, 7))
    learner, _ = run_of(alone, 20)
    for a, b in zip(jax.tree.leaves(among.base.scores), jax.tree.leaves(learner.base.scores), strict=True):
        np.testing.assert_allclose(a[number], b[0], atol=2e-5)
    for a, b in zip(jax.tree.leaves(among.ratio.zeta), jax.tree.leaves(learner.ratio.zeta), strict=True):
        np.testing.assert_allclose(a[number], b[0], atol=2e-4)


def test_variants_that_share_their_batches_learn_what_they_learn_apart(games: list[FrameDataset]) -> None:
    """As on a GPU, where the columns of one dataset and seed read the same patches of their images."""
    kinds, draws = ("real", "shuffled", "uniform"), [(0, 0), (1, 0), (1, 4)]
    table = [
        Member(kind, replace(SA, weights=control(DICE, kind)), dataset, seed)
        for kind in kinds
        for dataset, seed in draws
    ]
    assert variants_of([(member.dataset, member.seed) for member in table]) == 3
    found = []
    for variants in (1, 3):
        population = Population(table, DeviceFrames.of(games), [frame_spec(game) for game in games])
        population.variants = variants
        found.append(run_of(population, 12))
    (apart, apart_sums), (shared, shared_sums) = found
    for a, b in zip(jax.tree.leaves(apart), jax.tree.leaves(shared), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-4)
    for name, values in apart_sums.items():
        np.testing.assert_allclose(values, shared_sums[name], rtol=2e-3, atol=1e-3, err_msg=name)
    assert apart.alive.all()
    assert len({leaf.tobytes() for leaf in apart.base.scores.encoder.dense.bias}) == 9  # nine that differ


def test_variants_are_counted_where_batches_repeat_in_order() -> None:
    assert variants_of([(0, 0), (0, 1), (0, 0), (0, 1)]) == 2
    assert variants_of([(0, 0)] * 5) == 5
    assert variants_of([(0, 0), (0, 0), (0, 1), (0, 1)]) == 1
    assert variants_of([(0, 0), (0, 1), (0, 0)]) == 1


@pytest.mark.parametrize("mapped", [False, True])
def test_a_streamed_run_has_the_bits_of_a_resident_one(
    games: list[FrameDataset], together: tuple[Population, Learner, dict], tmp_path: Path, mapped: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(streaming_module, "BLOCK_BYTES", 200_000)  # several blocks, and pieces across their bounds
    chosen = games
    if mapped:
        chosen = [load_frames(save_frames(game, tmp_path / game.name)) for game in games]
        assert all(game.mapped for game in chosen)
    population = Population(members(), HostFrames(chosen), [frame_spec(game) for game in games])
    assert not population.supply.resident
    assert 1 < population.supply.block < 10
    learner, sums = run_of(population, 20, pieces=4)
    population.close()
    for a, b in zip(jax.tree.leaves(together[1]), jax.tree.leaves(learner), strict=True):
        np.testing.assert_array_equal(a, b)
    for name, values in together[2].items():
        np.testing.assert_array_equal(values, sums[name])


# Through the command's own path: phases, groups, interruption, resume


def learned(run: Run) -> dict[str, bytes]:
    from safetensors.numpy import load_file

    return {name: array.tobytes() for name, array in load_file(run.checkpoints[run.step]).items()}


def test_an_interrupted_run_resumes_with_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = behaviour_logs(8)
    algorithms = {"rem": REM(ensemble=3, network=TINY, batch_size=4)}

    def train(folder: str) -> Run:
        return sapp.train(
            algorithms, data, steps=6, out=tmp_path / folder, log_every=2, eval_every=4, eval_episodes=2, progress=False
        )

    straight = train("straight")
    plain = loop_module.calls
    with monkeypatch.context() as patch:
        calls = []

        def interrupting(populations: Any, learners: Any, sums: Any, phase: Phase, steps: int) -> Any:
            calls.append(steps)
            if len(calls) == 2:
                os.kill(os.getpid(), signal.SIGINT)
            return plain(populations, learners, sums, phase, steps)

        patch.setattr(loop_module, "calls", interrupting)
        with pytest.raises(Interrupted):
            train("cut")
    assert 1 <= Run(tmp_path / "cut").step < 6
    shutil.rmtree(tmp_path / "straight" / "data")  # the other one has a copy of its own
    resumed = sapp.resume(tmp_path / "cut", progress=False)
    assert learned(resumed) == learned(straight)
    assert resumed.evaluations() == straight.evaluations()
    assert [str(row["member"]) for row in resumed.final_and_best()] == ["rem/catch/0"]


@pytest.mark.parametrize("moment", ["copying", "copied"])
def test_a_run_killed_while_it_copied_frames_starts_again(tmp_path: Path, moment: str) -> None:
    data, out = behaviour_logs(8), tmp_path / "run"
    (out / "checkpoints").mkdir(parents=True)
    name = data.fingerprint[:16]
    save_frames(data, out / "data" / (name if moment == "copied" else f".{name}.41.tmp"))
    algorithm = {"rem": REM(ensemble=3, network=TINY, batch_size=4)}
    run = sapp.train(algorithm, data, steps=1, out=out, log_every=1, eval_every=0, progress=False)
    assert run.step == 1
    assert [file.name for file in (out / "data").iterdir()] == [name]


def test_games_are_played_alike_side_by_side_and_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two populations that share a game's emulators, as beside an accelerator and as on a processor."""
    algorithms = {"rem": REM(ensemble=3, network=TINY, batch_size=4), "cql": replace(SA, weights=Uniform())}

    def train(folder: str) -> Run:
        return sapp.train(
            algorithms, behaviour_logs(8), steps=2, out=tmp_path / folder, log_every=1, eval_every=1, eval_episodes=3,
            seeds=2, progress=False,
        )  # fmt: skip

    alone = train("alone").evaluations()
    monkeypatch.setattr(online_evaluation, "host_is_free", lambda: True)
    monkeypatch.setattr(loop_module, "host_is_free", lambda: True)
    assert train("beside").evaluations() == alone
    assert len({MemberId.of(row) for row in alone}) == 4


def test_frames_and_algorithms_must_match(tmp_path: Path) -> None:
    data = behaviour_logs(2)
    with pytest.raises(SappError, match="actions are discrete, CQL takes continuous ones"):
        sapp.train(sapp.CQL(), data, steps=1, out=tmp_path / "a", progress=False)
    with pytest.raises(SappError, match="the observations are frames; use network=ConvScores"):
        sapp.train(DiscreteCQL(network=sapp.algorithms.MLPScores()), data, steps=1, out=tmp_path / "b", progress=False)
    pytest.importorskip("ale_py")
    other = replace(data, environment="ALE/Pong-v5")
    with pytest.raises(SappError, match="24 by 24 and there are 3 actions"):
        sapp.train(SA, other, steps=1, out=tmp_path / "c", progress=False)
    assert not any(tmp_path.iterdir())
