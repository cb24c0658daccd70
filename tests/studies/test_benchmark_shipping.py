"""From a run to shipped policies: which seed, which snapshots, what the card says."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sapp.algorithms.sac import SAC
from sapp.collect.benchmark.make import load, make
from sapp.collect.benchmark.shipped import available, shipped
from sapp.collect.online_training import train
from sapp.collect.snapshot_evaluation import play
from sapp.data.normalised_scores import normalized_score
from sapp.envs import make as make_environment
from sapp.envs.policy_files import rounded
from studies.benchmark_data.buffer_check import beside, compare_replay
from studies.benchmark_data.shipping import Choice, best, latest_of_the_best, ship, spread


def test_the_seed_to_ship() -> None:
    good, better = Choice(0, 10, 50, 44.0, 101.0), Choice(1, 20, 60, 46.0, 107.0)
    far, weak = Choice(2, 20, 60, 55.0, 111.0), Choice(3, 30, 70, 45.0, 80.0)
    assert best("hopper", [good, better, far, weak]) == better
    assert best("hopper", [far, weak]) == far  # the expert's bar comes first
    assert best("hopper", [weak, Choice(4, 1, 2, 0.0, 30.0)]) == weak


def test_the_expert_is_the_last_of_the_best() -> None:
    scores = {100: 20.0, 200: 104.0, 300: 99.0, 400: 103.0, 500: 90.0}
    assert latest_of_the_best(scores, bar=100.0) == 400
    assert latest_of_the_best(scores, bar=104.0) == 200  # not below the bar
    assert latest_of_the_best(scores, bar=200.0) == 200  # out of reach: the best there is


def test_snapshots_are_spread_and_hold_medium_and_expert() -> None:
    steps = list(range(10, 1010, 10))
    chosen = spread(steps, medium=330, expert=800, count=20)
    assert len(chosen) == 20
    assert {10, 330, 800} <= set(chosen)
    assert max(chosen) == 800
    gaps = np.diff(chosen)
    assert gaps[:5].mean() < gaps[-5:].mean()
    assert spread(steps[:5], 20, 50, 20) == steps[:5]  # no more than there are
    assert len(spread(steps, 10, 1000, 3)) == 3


def test_a_run_is_shipped_and_data_are_made_of_it(tmp_path) -> None:
    run = train(
        "hopper", seeds=2, steps=640, algorithm=SAC(hidden=(8,), batch_size=8), random_steps=64, rows=4, chunk=64,
        snapshots=6, out=tmp_path / "run", progress=False, threads=1,
    )  # fmt: skip
    said: list[str] = []
    card = ship(
        run, tmp_path / "shipped", snapshots=4, episodes=(2, 3, 5), candidates=2, again="again", say=said.append
    )
    assert json.loads((tmp_path / "shipped" / "card.json").read_text()) == card
    assert available(tmp_path / "shipped") == ("hopper",)
    policies, training, entry = shipped("hopper", tmp_path / "shipped")
    assert 2 <= len(policies) == len(entry["snapshots"]) <= 4
    assert training.steps[training.medium] <= training.steps[training.expert]
    returns = {one["name"]: one["return"] for one in entry["snapshots"]}
    assert returns[training.expert] == max(returns.values())  # all are far below D4RL's
    assert entry["met"] is False  # nobody learns to hop in 640 steps
    # the card's score is that of the stored policy, played again
    one = entry["snapshots"][-1]
    result = play(list(policies.values()), make_environment("hopper"), 5, 3, [True] * len(policies))
    position = list(policies).index(one["name"])
    assert normalized_score("hopper", result.returns[position].mean()) == pytest.approx(one["score"], abs=0.01)
    stored = rounded(run.snapshot(one["step"])[f"hopper/{entry['seed']}"])
    np.testing.assert_array_equal(policies[one["name"]].mean[0], stored.mean[0])

    make("hopper-full-replay", transitions=2_000, policies=tmp_path / "shipped", root=tmp_path / "minari")
    data = load("hopper-full-replay", root=tmp_path / "minari")
    names = [segment["policy"] for segment in data.provenance["segments"]]
    assert names == list(training.shares["full-replay"])
    assert names[0] == "uniform"
    assert names[1:] == sorted(names[1:])  # training order

    found = compare_replay(run, tmp_path / "shipped", transitions=400, say=said.append)
    both = found["hopper-full-replay"]
    assert both["true"]["transitions"] == training.steps[training.expert]
    assert both["snapshots"]["transitions"] == 400
    assert len(both["ks_observation"]) == 11
    true = run.buffer("hopper", entry["seed"])
    same = beside(true, true, seed=0)
    assert max(same["ks_observation"]) == 0.0
    assert same["true"] == same["snapshots"]
