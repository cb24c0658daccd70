"""Evaluations of a run's members: which are played, where, and what the table holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.evaluation.online_evaluation import Evaluation, Evaluator, play
from sapp.runs.members import MemberId
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
