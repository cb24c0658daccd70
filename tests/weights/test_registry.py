"""State weights by the texts that commands, Python and configurations take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
from sapp.weights.registry import ABOUT, CONTROLS, names, state_weights


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


def test_every_name_is_taken_as_it_is_typed_and_has_its_line_of_help() -> None:
    assert names() == [*ABOUT]
    for name in names():
        weights = state_weights(name.replace("NUMBER", "0.5"))
        assert isinstance(weights, Uniform) == (name == "uniform")
        assert isinstance(weights, ConstantWeights) == (name == "constant:NUMBER")
    for control in CONTROLS:
        assert isinstance(state_weights(f"{control}:dualdice").of, DualDICE)


ESTIMATORS = {"DualDICE": "dualdice", "OccupancyModel": "occupancy", "OccupancyInfoNCE": "infonce"}


def recorded() -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """By estimator: the datasets that studies used it on, and the settings that were written down then."""
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {name: [] for name in ESTIMATORS.values()}

    def look(row: Any, datasets: list[str]) -> None:
        if isinstance(row, dict):
            if row.get("class") in ESTIMATORS:
                found[ESTIMATORS[row["class"]]] += [(dataset, row) for dataset in datasets]
            for value in row.values():
                look(value, row.get("datasets", datasets))
        elif isinstance(row, list):
            for value in row:
                look(value, datasets)

    for file in sorted((Path(__file__).resolve().parents[2] / "studies").glob("*/rows/settings.json")):
        look(json.loads(file.read_text(encoding="utf-8")), [])
    return found


@pytest.mark.parametrize(("name", "rows"), recorded().items())
def test_estimators_by_name_are_those_of_the_studies_results(name: str, rows: list[tuple[str, dict[str, Any]]]) -> None:
    assert len(rows) > 4
    for dataset, row in rows:
        weights = state_weights(name, dataset)
        for field in row.keys() - {"class", "precision", "f"}:
            own = getattr(weights, field)
            assert (list(own) if isinstance(own, tuple) else own) == row[field], (dataset, field)
        for field in row["f"].keys() - {"class"}:
            assert getattr(weights.f, field) == row["f"][field], (dataset, field)
