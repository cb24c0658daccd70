"""Evaluations of a run's members: which are played, where, and what the table holds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.evaluation.online_evaluation import Evaluation, Evaluator, play
from sapp.runs.members import MemberId
from sapp.runs.plan import Plan
from sapp.runs.run import Run


def test_a_row_holds_means_deviations_and_every_return() -> None:
    found = Evaluation(0, np.array([1.0, 3.0]), np.array([10, 20]), np.array([50.0, 70.0]))
    row = found.row(7, 6, MemberId("cql", "x", 0))
    assert row == {
        "step": 7, "updates": 6, "algorithm": "cql", "dataset": "x", "seed": 0, "episodes": 2, "return_mean": 2.0,
        "return_std": 1.0, "length_mean": 15.0, "returns": "1;3", "score_mean": 60.0, "score_std": 10.0,
    }  # fmt: skip
    assert "score_mean" not in replace(found, scores=None).row(7, 6, MemberId("cql", "x", 0))


def test_the_environment_is_the_datas_or_the_one_that_is_named(trained: Path) -> None:
    run = Run(trained)
    (own,) = play(run, episodes=2, seed=3)
    (named,) = play(run, episodes=2, seed=3, environment="point", members=[str(run.members[0])])
    np.testing.assert_array_equal(own.returns, named.returns)
    with pytest.raises(SappError, match="has 2 values in an observation and 2 values in an action, environment"):
        play(run, environment="hopper")
    with pytest.raises(SappError, match="no member 'nobody'"):
        play(run, members=["nobody"])


def test_data_that_name_no_environment_are_told_apart(trained: Path) -> None:
    plan = Run(trained).plan
    nowhere = replace(plan, problems=(replace(plan.problems[0], environment=None),))
    assert [each.name for each in Evaluator(nowhere).missing()] == [plan.problems[0].name]
    assert Evaluator(plan).missing() == []
    Evaluator(nowhere).check()
    with pytest.raises(SappError, match=r"did you mean 'point'.*; or play never"):
        Evaluator(replace(plan, problems=(replace(plan.problems[0], environment="pont"),))).check("; or play never")


@pytest.fixture
def recorded(trained: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run whose data say the physics they were recorded with, and whose plan has a limit of steps."""
    run = Run(trained)
    plan = replace(run.plan, problems=(replace(run.plan.problems[0], physics="d4rl"),), eval_max_steps=50)
    monkeypatch.setattr(run, "plan", plan)
    return run


def test_another_environment_has_its_own_physics(recorded: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def make(name: str, *, physics: str | None, **_: object) -> None:
        seen.append((name, physics))
        raise SappError("seen")

    monkeypatch.setattr("sapp.envs.make", make)
    for environment, physics in ((None, None), ("point", None), ("hopper", None), ("hopper", "v4")):
        with pytest.raises(SappError, match="seen"):
            play(recorded, environment=environment, physics=physics)
    assert seen == [("point", "d4rl"), ("point", "d4rl"), ("hopper", None), ("hopper", "v4")]


def test_a_limit_that_is_asked_for_goes_before_the_plans(recorded: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def evaluator(plan: Plan, *_: object) -> None:
        seen.append(plan.eval_max_steps)
        raise SappError("seen")

    monkeypatch.setattr("sapp.evaluation.online_evaluation.Evaluator", evaluator)
    for limit in (None, 7):
        with pytest.raises(SappError, match="seen"):
            play(recorded, max_episode_steps=limit)
    assert seen == [50, 7]


def test_evaluations_come_in_the_order_of_the_members(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of one environment are played together: members 0 and 2, then 1."""
    plan = Run(trained).plan
    member, problem = plan.members[0], plan.problems[0]
    members = (member, replace(member, dataset=1), replace(member, seed=1))
    plan = replace(plan, members=members, problems=(problem, replace(problem, name="other", environment="elsewhere")))

    def rollouts(act: partial, environment: None, members: int, episodes: int, seed: int) -> tuple:
        numbers = np.repeat(np.asarray(act.args[0], float)[:, None], episodes, 1)  # policies are their numbers here
        assert numbers.shape == (members, episodes)
        return numbers, numbers

    monkeypatch.setattr("sapp.evaluation.rollouts.evaluate", rollouts)
    monkeypatch.setattr(Evaluator, "environment", lambda *_: None)
    found = Evaluator(plan).evaluate([np.arange(3)], 2, 0)
    assert [(each.member, each.returns.tolist()) for each in found] == [(i, [i, i]) for i in range(3)]
