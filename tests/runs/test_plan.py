"""A run's plan: written as JSON, read back, checked, and its members sorted into programs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sapp.algorithms import BC
from sapp.core.errors import SappError
from sapp.runs.members import Member
from sapp.runs.phases import Phase
from sapp.runs.plan import FORMAT, Plan, check_format, check_settings, versions
from sapp.runs.problem import Problem


def of(name: str, size: int = 2) -> Problem:
    return Problem(name, None, "f", None, None, size, 1, [-1.0], [1.0], 0, 0)


PLAN = Plan(
    (
        Member("bc", BC(hidden=(4,)), 0, 0), Member("bc", BC(hidden=(4,), noise=0.5), 1, 0),
        Member("wide", BC(hidden=(8,)), 0, 0), Member("bc", BC(hidden=(4,)), 0, 1),
    ),
    (of("one"), of("two", 3)), (Phase("train", 10, ratio=False),),
    log_every=1, checkpoint_every=0, eval_every=0, eval_episodes=1, eval_seed=0, keep=1,
)  # fmt: skip


def test_json_holds_all_of_it() -> None:
    content = json.loads(json.dumps(PLAN.to_json()))
    assert content["format"] == FORMAT
    assert Plan.from_json(content) == PLAN
    assert [str(each) for each in PLAN.ids] == ["bc/one/0", "bc/two/0", "wide/one/0", "bc/one/1"]


def test_members_of_one_shape_share_a_program() -> None:
    assert PLAN.groups() == [[0, 3], [1], [2]]
    assert [len(group.members) for group in PLAN.stacked()] == [2, 1, 1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"members": ()}, "the run has no members"),
        ({"members": (Member("bc", BC(), 2, 0),)}, "dataset is none of the 2"),
        ({"members": PLAN.members[:1] * 2}, "two members have the same name, dataset and seed"),
        ({"phases": (Phase("train", 0),)}, "the steps of all phases must be 1 to"),
        ({"keep": 0}, "'keep' is 0; it must be at least 1"),
    ],
)
def test_what_no_run_has_is_refused(change: dict, message: str) -> None:
    with pytest.raises(SappError, match=message):
        replace(PLAN, **change).check()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": 1}, "the run has 'colour', which this version does not know"),
        ({"log_every": "often"}, "'log_every' is 'often'; it must be a whole number"),
        ({"members": [{"name": "bc"}]}, "member 0 lacks 'algorithm'"),
        ({"phases": [{"name": "train", "steps": 1, "base": 2}]}, "phase 0: 'base' is 2; it must be true or false"),
    ],
)
def test_damaged_content_is_named(change: dict, message: str) -> None:
    with pytest.raises(SappError, match=message):
        Plan.from_json(json.loads(json.dumps(PLAN.to_json())) | change)


def test_other_formats_and_other_random_numbers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SappError, match=rf"run format 1, this version reads {FORMAT}; .*\(version 0.0.9\)"):
        check_format(Path("config.json"), {"format": 1, "versions": {"sapp": "0.0.9"}})
    begun = versions()
    assert check_settings(Path("run"), begun) == []
    assert "numpy 1.0 is now" in check_settings(Path("run"), begun | {"numpy": "1.0"})[0]
    with pytest.raises(SappError, match="set JAX_ENABLE_X64=True"):
        check_settings(Path("run"), begun | {"jax_enable_x64": "True"})
