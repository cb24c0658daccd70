"""From what is asked of `sapp.train` to a plan, or to one line that says what cannot be."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import sapp
from sapp.core.errors import SappError
from sapp.data.ledger import Kind, Ledger
from sapp.envs.point import behaviour_dataset
from sapp.runs.plan import Plan
from sapp.training.planning import a_twentieth, planned, stem


def test_without_a_word_a_twentieth_of_the_steps_lies_between_evaluations() -> None:
    assert [a_twentieth(steps) for steps in (5, 300, 1_000, 12_345, 1_000_000)] == [1, 15, 50, 650, 50_000]


def plan(algorithms: Any, data: Any, **more: Any) -> Plan:
    options = {
        "seeds": 1, "steps": 100, "phases": None, "only": None, "eval_every": 0, "eval_episodes": 1, "eval_seed": 0,
        "eval_max_steps": None, "log_every": 10, "checkpoint_every": None, "keep": 2, "progress": False,
    } | more  # fmt: skip
    return planned(algorithms, data, **options)[0]


def test_every_algorithm_meets_every_dataset_with_every_seed() -> None:
    one, two = (dataclasses.replace(behaviour_dataset(3), name=name) for name in ("one", "two"))
    algorithms = {"bc": sapp.BC(hidden=(4,)), "only-two": lambda name: sapp.BC() if name == "two" else None}
    found = plan(algorithms, [one, two], seeds=[3, 5], only=lambda member: str(member) != "bc/one/5")
    assert [str(each) for each in found.ids] == [
        "bc/one/3", "bc/two/3", "bc/two/5", "only-two/two/3", "only-two/two/5",
    ]  # fmt: skip
    assert [phase.name for phase in found.phases] == ["train"]
    assert (found.eval_every, found.checkpoint_every) == (0, a_twentieth(100))


def test_ratios_that_learn_bring_the_papers_phases_and_preparations_their_own() -> None:
    data = behaviour_dataset(3)
    names = [phase.name for phase in plan(sapp.CQL(weights="dualdice"), data).phases]
    assert names == ["pretrain", "ratio", "joint"]
    phases = plan(sapp.BRAC(behaviour_steps=7), data).phases
    assert [(phase.name, phase.steps) for phase in phases] == [("prepare", 7), ("train", 100)]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ((None, None), (20, 20)), ((30, None), (30, 30)), ((30, 7), (30, 7)), ((0, None), (0, 20)), ((0, 7), (0, 7)),
        ((None, 7), (20, 7)), ((30, 0), (30, 30)),
    ],
)  # fmt: skip
def test_checkpoints_come_with_evaluations_unless_told_and_where_there_are_none_by_themselves(
    asked: tuple[int | None, int | None], found: tuple[int, int]
) -> None:
    """Of 400 steps a twentieth is 20."""
    made = plan(sapp.BC(), behaviour_dataset(3), steps=400, eval_every=asked[0], checkpoint_every=asked[1])
    assert (made.eval_every, made.checkpoint_every) == found


def test_algorithms_in_a_list_are_called_by_their_kind_and_each_must_have_a_name_of_its_own() -> None:
    def mine(name: str) -> sapp.Algorithm:
        return sapp.BC(hidden=(len(name),))

    found = plan([sapp.BC(), "cql", mine], behaviour_dataset(3))
    assert [each.algorithm for each in found.ids] == ["BC", "cql", "mine"]
    assert found.members[2].algorithm.hidden == (len(behaviour_dataset(3).name),)
    assert [each.algorithm for each in plan(sapp.BC(), behaviour_dataset(3)).ids] == ["BC"]
    with pytest.raises(SappError, match="algorithms BC, cql, BC: give a dictionary"):
        plan([sapp.BC(), "cql", sapp.BC()], behaviour_dataset(3))


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("steps", 1), ("eval_episodes", 1), ("log_every", 1), ("keep", 1), ("eval_max_steps", 1), ("eval_every", 0),
        ("checkpoint_every", 0), ("eval_seed", 0),
    ],
)  # fmt: skip
def test_a_number_below_its_least_is_refused_by_name(name: str, least: int) -> None:
    with pytest.raises(SappError, match=f"{name} is {least - 1}: it must be at least {least}"):
        plan(sapp.BC(), behaviour_dataset(3), **{name: least - 1})
    if name != "eval_max_steps":  # which is for games
        plan(sapp.BC(), behaviour_dataset(3), **{name: least})


@pytest.mark.parametrize(
    ("algorithms", "more", "message"),
    [
        ("cql", {"steps": 0}, "steps is 0: it must be at least 1"),
        ({}, {}, "nothing to train: give at least one algorithm"),
        ("cql", {"seeds": [1, 1]}, r"seeds \[1, 1\]: give a count"),
        (lambda name: None, {}, "every algorithm declined every dataset"),
        (lambda name: 3, {}, "3 is not an algorithm"),
        ("discrete-cql", {}, "its actions are continuous, DiscreteCQL takes discrete ones; use cql"),
        ({"a": sapp.BRAC(behaviour_steps=7), "b": "td3bc"}, {}, "a prepares itself for 7 updates and b for 0"),
        ("cql", {"eval_max_steps": 5}, "no dataset is of frames"),
    ],
)
def test_what_cannot_be_trained_is_refused(algorithms: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(SappError, match=message):
        plan(algorithms, behaviour_dataset(3), **more)


def test_discrete_algorithms_are_refused_before_a_known_dataset_is_fetched() -> None:
    with pytest.raises(SappError, match="hopper-medium-v2: its actions are continuous, REM takes discrete ones"):
        plan("rem", "hopper-medium-v2")


def test_a_folder_is_named_after_what_is_in_it() -> None:
    one = dataclasses.replace(behaviour_dataset(3), name="a/b")
    assert stem(plan({"bc": "bc"}, one)) == "bc-a-b"
    assert stem(plan({str(number): "bc" for number in range(4)}, [one, behaviour_dataset(3)])) == (
        "4-algorithms-2-datasets"
    )


def test_what_is_doubtful_about_logs_is_said_before_they_are_trained_on(capsys: pytest.CaptureFixture[str]) -> None:
    data, ledger = behaviour_dataset(3), Ledger(30)
    ledger.say(Kind.WARNING, "column 'run' is not used")
    plan("bc", dataclasses.replace(data, name="mine", provenance={"ledger": ledger.to_json()}))
    assert capsys.readouterr().err == "mine: column 'run' is not used\n"
