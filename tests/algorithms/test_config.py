"""Algorithms as JSON and as options; the paper's presets."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from sapp import (
    CQL,
    Clip,
    ConstantWeights,
    DualDICE,
    Identity,
    LogMinMax,
    MatchedWeights,
    OccupancyModel,
    Power,
    RandomWeights,
    SappError,
    ShuffledWeights,
    StateWeights,
    Uniform,
    preset,
)
from sapp.algorithms.config import build, describe, import_modules, options, override, register, resolve
from sapp.algorithms.registry import ALGORITHMS, PAPER
from sapp.weights import Control, control

WEIGHTS = [
    Uniform(), ConstantWeights(0.3), RandomWeights(LogMinMax(0.5, 1.0)),
    ShuffledWeights(DualDICE()), MatchedWeights(DualDICE()),
    control(DualDICE(f=Clip(0.2, 4.0)), "random"), Control(Uniform(), 4),
    *(DualDICE(f=f) for f in (LogMinMax(0.5, 5.0, 0.02, "upper"), Identity(), Power(0.7), Clip(0.2, 4.0))),
    DualDICE(route="density", positivity="softplus", unit_mean=True, components=3, hidden=(7,), fallback=True),
]  # fmt: skip


class Mine(StateWeights):
    """Somebody's own weights."""

    size: float = 2.0


class Unknown(StateWeights):
    """The same, never registered."""


def same(a: object, b: object) -> bool:
    return jax.tree.structure(a) == jax.tree.structure(b) and jax.tree.leaves(a) == jax.tree.leaves(b)


@pytest.mark.parametrize("weights", WEIGHTS, ids=lambda w: type(w).__name__)
def test_describe_and_build_are_inverse_through_json(weights: StateWeights) -> None:
    structure = {"hidden": (32, 16), "backup": "soft", "precision": "mixed", "alpha_scale": "per-critic"}
    algorithm = CQL(weights=weights, alpha=1.25, **structure)
    text = json.dumps(describe(algorithm))
    assert same(build(json.loads(text)), algorithm)
    assert not same(build(json.loads(text)), CQL(weights=weights))


@pytest.mark.parametrize("name", [*ALGORITHMS, *PAPER])
def test_presets_roundtrip(name: str) -> None:
    algorithm = preset(name, "walker2d_expert-v2")
    assert same(build(json.loads(json.dumps(describe(algorithm)))), algorithm)


def test_numpy_and_jax_numbers_are_written_as_numbers() -> None:
    described = describe(CQL(alpha=np.float32(0.5), discount=jax.numpy.float32(0.75)))
    assert (described["alpha"], described["discount"]) == (0.5, 0.75)


def test_values_that_json_cannot_hold_are_refused() -> None:
    register(Mine)
    with pytest.raises(SappError, match="not finite"):
        describe(Mine(float("nan")))
    with pytest.raises(SappError, match=r"is a list: give a tuple, \(1\.0, 2\.0\)"):
        describe(Mine([1.0, 2.0]))
    with pytest.raises(SappError, match=r"cannot be written to config\.json"):
        describe(Mine({1.0, 2.0}))


def test_own_classes_must_be_registered_and_then_roundtrip() -> None:
    with pytest.raises(SappError, match=r"Unknown is not registered.*sapp\.register"):
        describe(CQL(weights=Unknown()))
    with pytest.raises(SappError, match=r"unknown class 'Unknown'"):
        build({"class": "Unknown"})
    register(Mine)
    assert same(build(describe(CQL(weights=Mine(3.0)))), CQL(weights=Mine(3.0)))


def test_build_refuses_fields_it_does_not_know() -> None:
    with pytest.raises(SappError, match=r"CQL has no field 'alhpa'.*did you mean 'alpha'"):
        build({"class": "CQL", "alhpa": 1.0})


@pytest.mark.parametrize(
    ("description", "words"),
    [
        ({"class": "CQL", "alpha": "five"}, "CQL: alpha is 'five'; it must be of type float"),
        ({"class": "CQL", "hidden": 256}, "CQL: hidden is 256"),
        ({"class": "CQL", "batch_size": True}, "batch_size is True; it must be of type int"),
        ({"class": "Control", "kind": 1}, "Control lacks its field 'of'"),
        ({"class": "CLQ"}, "unknown class 'CLQ'.*did you mean 'CQL'"),
        ({"class": "CQL", "weights": "ocupancy"}, "weights 'ocupancy' are unknown.*did you mean 'occupancy'"),
    ],
)
def test_build_refuses_what_cannot_be_meant(description: dict, words: str) -> None:
    with pytest.raises(SappError, match=words):
        build(description)


def test_weights_by_name_in_python_in_configurations_and_in_overrides() -> None:
    named = CQL(weights="shuffled:occupancy")
    assert same(named, CQL(weights=ShuffledWeights(OccupancyModel())))
    assert same(build({"class": "CQL", "weights": "shuffled:occupancy"}), named)
    assert same(override(CQL(), {"weights": "shuffled:occupancy"}), named)
    assert same(build(json.loads(json.dumps(describe(named)))), named)


def test_a_part_of_controlled_weights_is_found_without_naming_the_control() -> None:
    weights = override(CQL(weights="rescaled:matched:dualdice"), {"weights.f.b1": 3, "weights.hidden": "4"}).weights
    assert (weights.of.of.f.b1, weights.of.of.hidden) == (3.0, (4,))


SA = CQL(weights=DualDICE())


def test_override_by_name_by_dotted_name_and_outermost_first() -> None:
    changed = override(SA, {"alpha": 2, "zeta_lr": "3e-4", "weights.hidden": "64,32", "hidden": (8, 8, 8), "b1": 5})
    assert changed.alpha == 2.0
    assert changed.weights.zeta_lr == 3e-4
    assert changed.weights.hidden == (64, 32)
    assert changed.hidden == (8, 8, 8)  # CQL's, not DualDICE's
    assert changed.weights.f.b1 == 5.0
    assert same(override(SA, {}), SA)
    assert SA.alpha == 5.0  # a copy


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("batch-size", "64", 64), ("batch_size", 64, 64), ("batch_size", 64.0, 64), ("alpha", "0.5", 0.5),
        ("alpha", 1, 1.0), ("hidden", "16x16", (16, 16)), ("hidden", "16", (16,)), ("hidden", [16, 4], (16, 4)),
        ("backup", "soft", "soft"), ("weights.fallback", "yes", True), ("unit_mean", "true", True),
        ("fallback", False, False), ("weights.f.quantile", "0", 0.0),
    ],
)  # fmt: skip
def test_override_reads_text_as_the_fields_type(name: str, value: object, expected: object) -> None:
    found = dict(options(override(SA, {name: value})))[resolve(SA, name)]
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("alpha", "much", "'alpha'.*'much'.*finite number"), ("alpha", "nan", "finite number"),
        ("alpha", "inf", "finite number"), ("batch_size", "many", "whole"), ("batch_size", "2.5", "whole"),
        ("batch_size", 2.5, "whole number"), ("hidden", "0", "at least 1"), ("hidden", "a,b", "256,256"),
        ("hidden", "", "256,256"), ("fallback", "maybe", "true or false"), ("backup", "hard", "mode, sample or soft"),
        ("span", "no", "added"),
    ],
)  # fmt: skip
def test_override_refuses_what_it_cannot_read(name: str, value: object, words: str) -> None:
    with pytest.raises(SappError, match=words):
        override(SA, {name: value})


def test_a_number_written_without_a_point_is_still_a_real_number() -> None:
    """CQL(alpha=5) has an integer in a field of real numbers; an override must not round to it."""
    assert override(CQL(alpha=5), {"alpha": 2.5}).alpha == 2.5
    assert override(CQL(alpha=5), {"alpha": "2.5"}).alpha == 2.5
    assert override(CQL(weights=ConstantWeights(1)), {"value": 0.5}).weights.value == 0.5


@pytest.mark.parametrize(
    ("name", "hint"),
    [("aplha", "'alpha'"), ("zeta-rl", "'zeta_lr'"), ("weights.zetalr", "weights.zeta_lr"), ("qqq", "it has .*alpha")],
)
def test_a_misspelt_name_gets_a_suggestion(name: str, hint: str) -> None:
    with pytest.raises(SappError, match=rf"CQL has no hyper-parameter.*{hint}"):
        override(SA, {name: 1})


def test_options_lists_every_hyper_parameter_once() -> None:
    names = [name for name, _ in options(SA)]
    assert len(names) == len(set(names))
    assert {"alpha", "hidden", "weights.hidden", "weights.f.b0", "weights.f.span"} <= set(names)
    assert names.index("hidden") < names.index("weights.hidden") < names.index("weights.f.b0")


def test_classes_of_your_own_are_known_by_name_once_their_file_is_imported(tmp_path: Path) -> None:
    file = tmp_path / "own_rule.py"
    file.write_text(
        "import sapp\n\n@sapp.register\nclass OwnRule(sapp.CQL):\n    alpha: float = 3.5\n\n\n"
        "@sapp.register\nclass OwnWeights(sapp.ConstantWeights):\n    value: float = 0.25\n"
    )
    with pytest.raises(SappError, match=r"unknown class 'OwnRule'.*sapp --import my_module.py"):
        build({"class": "OwnRule"})
    import_modules([str(file)])
    assert build({"class": "OwnRule", "discount": 0.5}).alpha == 3.5
    assert preset("own-rule", weights="own-weights").weights.value == 0.25
    with pytest.raises(SappError, match=r"--import .*missing.py: cannot be imported"):
        import_modules(["json", str(tmp_path / "missing.py")])
