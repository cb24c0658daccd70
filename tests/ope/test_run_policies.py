"""Logs that a run's policies are judged on, against those the run was trained on."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.data import Dataset
from sapp.ope.run_policies import _other_units, gather
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


def test_the_newest_policy_of_a_run_or_all_that_were_kept_are_gathered(trained: Path) -> None:
    name = "cql/point-behaviour/0"
    (last,) = gather([trained])
    assert [policy.name for policy in last.policies] == [name]
    assert (last.steps, last.data.num_episodes) == ([20], 6)
    (kept,) = gather([trained], checkpoints="all", discount=0.5)
    assert [policy.name for policy in kept.policies] == [f"{name} @ 10", f"{name} @ 20"]
    assert (kept.steps, kept.discount) == ([10, 20], 0.5)
    states = last.data.observation[:4]
    newest, first, second = (one.actions(states, 0, 1) for one in (*last.policies, *kept.policies))
    np.testing.assert_array_equal(second, newest)
    assert np.abs(first - newest).max() > 0


def exactly(mean: float, deviation: float, bound: float = 1.0) -> Dataset:
    """Logs whose one feature has this mean and deviation; actions are from −bound to bound."""
    sign = np.where(np.arange(200) % 2 == 0, 1.0, -1.0)
    state = (mean + deviation * sign)[:, None]
    return Dataset.from_arrays(
        state, bound * sign[:, None], sign, np.arange(200) % 10 == 9, next_observation=state, action_low=-bound,
        action_high=bound, name="others",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("mean", "deviation", "bound", "heard"),
    [
        (10.0, 1.0, 1.0, None),
        (12.9, 1.0, 1.0, None), (13.1, 1.0, 1.0, "asked"), (6.9, 1.0, 1.0, "asked"),  # three deviations
        (29.0, 1.0, 1.0, "asked"), (31.0, 1.0, 1.0, "refused"), (-11.0, 1.0, 1.0, "refused"),  # twenty
        (15.0, 2.0, 1.0, None),  # of the larger deviation
        (10.0, 3.9, 1.0, None), (10.0, 4.1, 1.0, "asked"), (10.0, 1 / 4.1, 1.0, "asked"),  # four times as wide
        (10.0, 49.0, 1.0, "asked"), (10.0, 51.0, 1.0, "refused"), (10.0, 1 / 51, 1.0, "refused"),  # fifty times
        (10.0, 0.0, 1.0, None),  # constant: nothing to compare
        (10.0, 1.0, 1.4, None), (10.0, 1.0, 1.6, "actions"), (10.0, 1.0, 1 / 1.6, "actions"),
    ],
)  # fmt: skip
def test_how_far_logs_may_differ_before_something_is_said(
    mean: float, deviation: float, bound: float, heard: str | None
) -> None:
    mine, other = Problem.of(exactly(10.0, 1.0), None), exactly(mean, deviation, bound)
    if heard in ("refused", "actions"):
        with pytest.raises(SappError, match="^runs/first: " + ("feature 0" if heard == "refused" else "action dim")):
            _other_units(mine, other, RUN)
    else:
        assert len(_other_units(mine, other, RUN)) == (heard == "asked")


def test_policies_of_several_runs_are_told_apart_and_other_logs_must_fit(trained: Path, tmp_path: Path) -> None:
    other = shutil.copytree(trained, tmp_path / "second")
    config = json.loads((other / "config.json").read_text())
    name = "cql/point-behaviour/0"
    (both,) = gather([trained, other])
    assert [policy.name for policy in both.policies] == [f"{trained.name}: {name}", f"second: {name}"]
    assert both.discount == gather([trained], members=[name])[0].discount
    with pytest.raises(SappError, match="no member 'cql'"):
        gather([trained], members=["cql"])
    with pytest.raises(SappError, match=r"its policies take 2 observations and give 2 actions; others has 1 and 1"):
        gather([trained], data=exactly(0.0, 1.0))
    text = json.dumps(config)
    discount = config["members"][0]["algorithm"]["discount"]
    (other / "config.json").write_text(text.replace(f'"discount": {discount}', '"discount": 0.5'))
    with pytest.raises(SappError, match=rf"trained with different discounts \(0\.5, {discount:g}\); give one with"):
        gather([trained, other])
    assert gather([trained, other], discount=0.7)[0].discount == 0.7


@pytest.mark.parametrize(("inputs", "outputs", "fits"), [(1, 1, True), (5, 1, False), (1, 2, False)])
def test_a_policy_file_must_fit_the_logs_it_is_judged_on(tmp_path: Path, inputs: int, outputs: int, fits: bool) -> None:
    rng = np.random.default_rng(0)
    sizes = {"w0": (5, inputs), "b0": (5,), "w_mean": (outputs, 5), "b_mean": (outputs,), "w_logstd": (outputs, 5),
             "b_logstd": (outputs,)}  # fmt: skip
    file, data = tmp_path / "mine.npz", exactly(0.0, 1.0)
    np.savez(file, **{key: rng.normal(size=shape) for key, shape in sizes.items()})
    if not fits:
        with pytest.raises(SappError, match=f"takes {inputs} observations and gives {outputs} actions, which others"):
            gather([file], data=data, discount=0.9)
        return
    (found,) = gather([file], data=data, discount=0.9)
    assert ([policy.name for policy in found.policies], found.steps, found.discount) == (["mine"], [None], 0.9)
    assert found.policies[0].actions(data.observation[:3], 0, 1).shape == (3, 1, 1)
    with pytest.raises(SappError, match="does not say which logs to judge it on; give --data"):
        gather([file])
