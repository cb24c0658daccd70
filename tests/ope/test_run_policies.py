"""Logs that a run's policies are judged on, against those the run was trained on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.data import Dataset
from sapp.ope.run_policies import _other_units
from sapp.runs.problem import Problem

RUN = Path("runs/first")


def logs(seed: int = 0, scale: float = 1.0, shift: float = 0.0, rare: float = 0.01, bound: float = 1.0) -> Dataset:
    rng = np.random.default_rng(seed)
    state = np.column_stack([shift + scale * rng.normal(size=1000), rng.random(1000) < rare, np.full(1000, 7.0)])
    return Dataset.from_arrays(
        state, bound * rng.uniform(-1, 1, (1000, 1)), rng.normal(size=1000), np.arange(1000) % 10 == 9,
        next_observation=state, action_low=-bound, action_high=bound, name=f"logs{seed}",
    )  # fmt: skip


def test_other_logs_of_the_same_task_are_fine() -> None:
    assert _other_units(Problem.of(logs(), None), logs(1, shift=1.0, rare=0.2), RUN) == []
    assert _other_units(Problem.of(logs().standardised(), None), logs(1), RUN) == []


def test_logs_that_may_be_in_other_units_are_asked_about() -> None:
    (line,) = _other_units(Problem.of(logs(), None), logs(1, scale=6.0), RUN)
    assert line.startswith("runs/first: feature 0 is ")
    assert "are these the same units?" in line


@pytest.mark.parametrize("other", [logs(1, scale=1000.0), logs(1, shift=273.15)])
def test_logs_in_other_units_are_refused(other: Dataset) -> None:
    with pytest.raises(SappError, match="these are other units, and estimates would be wrong"):
        _other_units(Problem.of(logs(), None), other, RUN)


def test_actions_in_other_units_are_refused() -> None:
    with pytest.raises(SappError, match=r"from -1 to 1 in the logs it was trained on and from -2 to 2 in logs1"):
        _other_units(Problem.of(logs(), None), logs(1, bound=2.0), RUN)


def test_runs_that_do_not_remember_are_left_alone() -> None:
    forgot = replace(Problem.of(logs(), None), observation_mean=None)
    assert _other_units(forgot, logs(1, scale=1000.0), RUN) == []
