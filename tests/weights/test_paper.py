"""The paper's weights by dataset."""

from __future__ import annotations

import pytest

from sapp import (
    preset,
)
from sapp.weights import ControlKind, DualDICE
from sapp.weights.paper import dualdice, is_atari, weight_range

QUALITIES = ("medium", "medium-replay", "full-replay", "random", "expert", "medium-expert")
TABLE = {
    "halfcheetah": [(0, 1), (0, 1), (0, 1), (0, 1), (0, 5), (0, 5)],
    "hopper": [(0, 1), (0, 1), (0, 1), (0, 1), (0, 5), (0, 5)],
    "walker2d": [(0.5, 1), (0.5, 1), (0.5, 1), (0.5, 1), (0.5, 5), (0.5, 5)],
}
"""b0 and b1 as the paper prints them."""


@pytest.mark.parametrize(("task", "number"), [(task, number) for task in TABLE for number in range(6)])
def test_presets_have_the_papers_b0_and_b1(task: str, number: int) -> None:
    b0, b1 = TABLE[task][number]
    quality = QUALITIES[number]
    for name in (f"{task}-{quality}-v2", f"{task}_{quality.replace('-', '_')}-v2", f"{task}-{quality}"):
        assert weight_range(name) == (b0, b1)
        f = preset("sa-cql", name).weights.f
        assert (f.b0, f.b1, f.span) == (b0, b1, "added")
        random = preset("s-sa-cql", name).weights
        assert [float(end) for end in random.bounds()] == [b0, b0 + b1]
        literal = preset("cql", name, "random-b0-b1").weights
        assert [float(end) for end in literal.bounds()] == [b0, b1]
        for text, kind in (("shuffled:dualdice", ControlKind.SHUFFLED), ("matched:occupancy", ControlKind.MATCHED)):
            weights = preset("cql", name, text).weights
            assert (weights.kind, weights.of.f.b0, weights.of.f.b1) == (kind, b0, b1)


@pytest.mark.parametrize("name", ["", "ant-medium-v2", "my_hopper_log", "hopper"])
def test_other_data_gets_the_plain_range(name: str) -> None:
    assert weight_range(name) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("name", "atari"),
    [
        ("pong", True), ("Breakout-1pct", True), ("ALE/Chess-v5", True), ("qbert_mixed", True), ("pongs", False),
        ("hopper-medium-v2", False), ("my-pong", False), ("", False),
    ],
)  # fmt: skip
def test_games_have_a_range_and_a_learning_rate_of_their_own(name: str, atari: bool) -> None:
    assert is_atari(name) == atari
    assert (weight_range(name) == (0.5, 2.0)) == atari
    dice = dualdice(name)
    assert dice.zeta_lr == (1e-3 if atari else 1e-4)
    assert (dice.f.b0, dice.f.b1) == weight_range(name)
    assert dice.nu_lr == DualDICE().nu_lr
