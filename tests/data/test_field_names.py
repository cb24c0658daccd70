from __future__ import annotations

import pytest

from sapp.core.errors import SappError
from sapp.data.field_names import ROLES, detect, refuse_near_misses, refuse_opposites, resembles, why_unused


def test_no_name_means_two_fields() -> None:
    words = [word for names in ROLES.values() for word in names]
    assert len(words) == len(set(words))


@pytest.mark.parametrize("names", [["obs_0", "obs_1"], ["obs.0", "obs.1"], ["Obs[0]", "Obs[1]"], ["OBS0", "OBS1"]])
def test_numbered_columns(names: list[str]) -> None:
    assert detect([*reversed(names), "action", "reward"], "x")["observation"] == tuple(names)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["obs", "state"], "both 'obs' and 'state' are given for observation"),
        (["reward", "rew"], "both 'reward' and 'rew' are given for reward"),
        (["obs_0", "obs_2"], "skip number 1"),
        (["obs", "obs_0"], "are given for observation"),
    ],
)
def test_names_that_contradict_each_other(names: list[str], words: str) -> None:
    with pytest.raises(SappError, match=words):
        detect(names, "x")


def test_of_several_orders_in_time_the_first_counts() -> None:
    assert detect(["timestamp", "t", "step"], "x")["time"] == ("step",)


@pytest.mark.parametrize(
    ("name", "role"),
    [("next_observatons", "next_observation"), ("Epis_ID", "episode"), ("teminal", "terminal"), ("heart", None),
     ("dose", None), ("timeout_3", "timeout"), ("age", None), ("t", None)],
)  # fmt: skip
def test_what_a_name_resembles(name: str, role: str | None) -> None:
    assert resembles(name) == role


def test_why_a_column_is_not_used() -> None:
    assert why_unused("infos", (), ()) == "not needed"
    assert why_unused("heart", (), ()) == "no field goes by that name"
    assert why_unused("truncated", (), ("truncated",)) == "ignored, as asked"
    assert why_unused("rewards", ("reward",), ()) == "reward is taken from another column"


@pytest.mark.parametrize("name", ["masks", "not_dones", "NonTerminal", "not_done"])
def test_the_opposite_of_an_end_is_not_passed_over(name: str) -> None:
    with pytest.raises(SappError, match=f"x: column '{name}' looks like the opposite of terminal, 0 where the task"):
        refuse_opposites(["heart", name], {"reward"}, "x")
    refuse_opposites([name], {"terminal"}, "x")
    refuse_opposites(["done_at", "unmasked"], {"reward"}, "x")


def test_near_misses() -> None:
    refuse_near_misses(["heart", "infos", "rewrds"], {"reward": None}, "x")
    with pytest.raises(SappError, match=r"x: unknown column 'rewrds', which looks like reward .did you mean"):
        refuse_near_misses(["rewrds"], {}, "x")
