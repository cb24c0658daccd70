"""Names, sizes, and what each dataset is made of."""

from __future__ import annotations

import pytest

from sapp.collect.benchmark.recipes import UNIFORM, Segment, Training, recipe, scaled
from sapp.core.errors import SappError
from sapp.data.benchmark_names import parse

STEPS = {"a": 1_000, "b": 2_000, "c": 4_000, "d": 10_000}
SHARES = {"medium-replay": {UNIFORM: 1_000, "a": 1_000, "b": 2_000}}
TRAINING = Training(STEPS, "b", "d", SHARES)


def test_simple_recipes() -> None:
    assert recipe(parse("hopper-random"), 7, None) == [Segment(UNIFORM, 7)]
    assert recipe(parse("hopper-medium"), 7, TRAINING) == [Segment("b", 7)]
    assert recipe(parse("hopper-expert"), 7, TRAINING) == [Segment("d", 7)]
    both = recipe(parse("hopper-medium-expert"), 1_999_400, TRAINING)
    assert both == [Segment("b", 999_906), Segment("d", 999_494)]  # D4RL's two files
    with pytest.raises(SappError, match="no policy to make it with"):
        recipe(parse("hopper-medium"), 7, None)
    with pytest.raises(SappError, match="at least 2"):
        recipe(parse("hopper-medium-expert"), 1, TRAINING)


def test_a_replay_set_has_the_card_s_shares_at_every_size() -> None:
    assert recipe(parse("hopper-medium-replay"), 400, TRAINING) == [
        Segment(UNIFORM, 100), Segment("a", 100), Segment("b", 200),
    ]  # fmt: skip
    assert recipe(parse("hopper-medium-replay"), 2, TRAINING) == [Segment("a", 1), Segment("b", 1)]  # none of nothing
    for count in (1, 3, 999, 123_457):
        assert sum(segment.transitions for segment in scaled(SHARES["medium-replay"], count)) == count
    with pytest.raises(SappError, match="gives no shares for it"):
        recipe(parse("hopper-full-replay"), 400, TRAINING)
