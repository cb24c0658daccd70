"""State weights by the texts that commands, Python and configurations take."""

from __future__ import annotations

import pytest

from sapp import (
    ConstantWeights,
    ControlKind,
    DualDICE,
    FrozenWeights,
    OccupancyModel,
    RescaledWeights,
    SappError,
    Uniform,
)
from sapp.weights.registry import state_weights


def test_names_give_the_weights_with_the_datasets_range() -> None:
    assert isinstance(state_weights("uniform"), Uniform)
    found = state_weights("occupancy", "walker2d-expert-v2")
    assert isinstance(found, OccupancyModel)
    assert (found.f.b0, found.f.b1) == (0.5, 5.0)
    assert (state_weights("dualdice").f.b0, state_weights("dualdice").f.b1) == (0.0, 1.0)
    assert state_weights("dualdice", "pong").zeta_lr == 1e-3  # the paper's for Atari
    assert state_weights("constant:0.25") == ConstantWeights(0.25)


def test_the_papers_weights_never_fall_back_unless_asked() -> None:
    assert [state_weights(name).fallback for name in ("dualdice", "occupancy", "infonce")] == [False] * 3


def test_random_weights_have_the_range_of_f_or_the_papers_own() -> None:
    names = ("random", "random-b0-b1", "dualdice")
    ranges = {name: [float(end) for end in state_weights(name, "walker2d-medium").bounds()] for name in names}
    assert ranges == {"random": [0.5, 1.5], "random-b0-b1": [0.5, 1.0], "dualdice": [0.5, 1.5]}


def test_controls_nest() -> None:
    found = state_weights("rescaled:shuffled:frozen:dualdice", "hopper-expert")
    assert isinstance(found, RescaledWeights)
    assert found.of.kind == ControlKind.SHUFFLED
    assert isinstance(found.of.of, FrozenWeights)
    assert isinstance(found.of.of.of, DualDICE)
    assert found.of.of.of.f.b1 == 5.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ocupancy", "weights 'ocupancy' are unknown.*did you mean 'occupancy'"),
        ("shufled:dualdice", "did you mean 'shuffled'"),
        ("shuffled", "name the weights to control, as in shuffled:dualdice"),
        ("constant", "give the number, as in constant:0.5"),
        ("constant:much", "give the number"),
        ("dualdice:5", "nothing follows dualdice"),
        ("", "are unknown"),
    ],
)
def test_a_text_that_names_no_weights_is_refused(text: str, words: str) -> None:
    with pytest.raises(SappError, match=words):
        state_weights(text)
