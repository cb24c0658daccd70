"""The eighteen names of the benchmark and their sizes."""

from __future__ import annotations

import pytest

from sapp.core.errors import SappError
from sapp.data.benchmark_names import NAMES, TRANSITIONS, is_name, of_minari, parse
from sapp.data.loaders import d4rl


def test_the_eighteen_names() -> None:
    assert len(NAMES) == 18
    assert {f"{name}-v2" for name in NAMES} == set(d4rl.PUBLISHED)  # ours without a version, D4RL's with one
    for name in NAMES:
        assert is_name(name)
        assert not d4rl.is_name(name)
        assert not is_name(f"{name}-v2")
        assert parse(name).text == name
        assert of_minari(parse(name).minari) == name
    assert parse("hopper-medium-expert").minari == "sapp/hopper/medium-expert-v0"
    assert of_minari("sapp/hopper/mediun-v0") is None
    assert of_minari("mujoco/hopper/medium-v0") is None


def test_sizes_are_d4rls() -> None:
    for environment, sizes in TRANSITIONS.items():
        medium, expert = sizes[1], sizes[4]
        assert sizes[5] == medium + expert
        assert parse(f"{environment}-medium-expert").transitions == medium + expert
    assert parse("hopper-medium").transitions == 999_906
    assert parse("hopper-medium").d4rl_episodes == 2_187


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hopper-mediun", "did you mean 'hopper-medium'"),
        ("hopper-medium-v2", "use hopper-medium"),
        ("ant-medium", "no such dataset"),
    ],
)
def test_wrong_names_are_named(name: str, message: str) -> None:
    with pytest.raises(SappError, match=message):
        parse(name)
