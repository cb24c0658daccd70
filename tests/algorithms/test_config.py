"""Algorithms as JSON and as options; the paper's presets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
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
from sapp.weights import Control, ControlKind, control
from sapp.weights.paper import weight_range

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
    with pytest.raises(SappError, match=r"cannot be written to config\.json"):
        describe(Mine([1.0, 2.0]))


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


def test_presets_have_the_papers_table_of_hyper_parameters() -> None:
    algorithm = preset("sa-cql", "hopper-medium-v2")
    assert (algorithm.critic_lr, algorithm.actor_lr, algorithm.alpha, algorithm.batch_size) == (3e-4, 1e-4, 5.0, 256)
    assert (algorithm.action_samples, algorithm.discount, algorithm.tau) == (10, 0.99, 0.005)
    assert algorithm.hidden == (256, 256, 256)
    dice = algorithm.weights
    assert (dice.zeta_lr, dice.nu_lr, dice.next_actions, dice.hidden) == (1e-4, 1e-4, 1, (256, 256))
    assert type(preset("cql").weights) is Uniform


def test_an_unknown_preset_gets_a_suggestion() -> None:
    with pytest.raises(SappError, match="did you mean 'sa-cql'"):
        preset("sacql")


def test_a_name_of_the_paper_has_its_weights() -> None:
    assert same(preset("sa-cql", "hopper-expert"), preset("cql", "hopper-expert", "dualdice"))
    with pytest.raises(SappError, match="sa-cql is cql with weights 'dualdice': for other weights name cql"):
        preset("sa-cql", "hopper-expert", "occupancy")
    with pytest.raises(SappError, match="IQL takes no state weights"):
        preset("iql", weights="dualdice")


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


def test_a_name_of_sapp_cannot_be_taken() -> None:
    with pytest.raises(SappError, match="Uniform is a class of sapp"):
        register(type("Uniform", (StateWeights,), {}))
    with pytest.raises(SappError, match="'iql' is taken"):
        register(type("Iql", (CQL,), {}))


def test_an_installed_package_offers_algorithms_and_weights(tmp_path: Path) -> None:
    """In a process of its own: a package on the path, as an installer leaves it."""
    (tmp_path / "their_rules.py").write_text(
        "import sapp\n\n\nclass TheirRule(sapp.CQL):\n    alpha: float = 7.0\n\n\n"
        "class TheirWeights(sapp.ConstantWeights):\n    value: float = 0.125\n"
    )
    about = tmp_path / "their_rules-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: their-rules\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[sapp.algorithms]\ntheir-rule = their_rules:TheirRule\n\n"
        "[sapp.weights]\ntheir-weights = their_rules:TheirWeights\n"
    )
    code = (
        "import json, sapp\nfrom sapp.algorithms.config import build, describe\n"
        "made = sapp.preset('their-rule', weights='shuffled:their-weights')\n"
        "text = json.dumps(describe(made))\nprint(made.alpha, made.weights.of.value, build(json.loads(text)) == made)\n"
        "from sapp.cli.main import main\nmain(['algorithms'])"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path}
    )
    first, *page = done.stdout.splitlines()
    assert first == "7.0 0.125 True"
    assert any("their-rule " in line for line in page)
    listed = subprocess.run(
        [sys.executable, "-m", "sapp", "algorithms", "--json"], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert "their_rules:TheirRule" in json.loads(listed.stdout)["algorithms"]["their-rule"]["about"]
    assert any(line.startswith("their-weights ") for line in page)
