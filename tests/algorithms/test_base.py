"""What every algorithm is: weights by name, settings that are checked, and what a subclass must define."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from sapp import BC, CQL, TD3BC, Algorithm, SappError
from sapp.algorithms.registry import ALGORITHMS, preset
from sapp.core.spec import Spec
from sapp.weights import OccupancyModel, StateWeights, Uniform


class Bare(Algorithm):
    discount: float = 0.9
    batch_size: int = eqx.field(static=True, default=4)
    weights: StateWeights = Uniform()


def test_weights_may_be_given_by_name() -> None:
    assert isinstance(CQL(weights="occupancy").weights, OccupancyModel)
    assert isinstance(replace(TD3BC(), weights="occupancy").weights, OccupancyModel)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"critic_lr": -1.0}, "CQL: critic_lr is -1; it must be 0 or more"),
        ({"discount": 1.5}, "CQL: discount is 1.5; it must be between 0 and 1"),
        ({"tau": -0.1}, "CQL: tau is -0.1; it must be between 0 and 1"),
        ({"batch_size": 0}, "CQL: batch_size is 0; it must be 1 or more"),
        ({"hidden": ()}, "CQL: hidden must name at least one layer"),
        ({"precision": "fp8"}, "fp8"),
    ],
)
def test_settings_that_no_algorithm_can_have_are_named(change: dict, message: str) -> None:
    with pytest.raises(SappError, match=message):
        CQL(**change)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_whatever_the_algorithm_each_setting_has_its_range(name: str) -> None:
    """No number is nan, none but a shift of rewards or values is negative, and what is counted is there."""
    algorithm, nan = preset(name), float("nan")
    free, absent = {"reward_shift", "reward_bonus", "target_divergence"}, {"quantiles", "behaviour_steps"}
    bad: list[tuple[str, Any]] = []
    for field in fields(algorithm):
        value: Any = getattr(algorithm, field.name)
        if type(value) is float:
            bad += [(field.name, nan), *([] if field.name in free else [(field.name, -1.0)])]
        elif type(value) is int:
            bad += [(field.name, -1), *([] if field.name in absent else [(field.name, 0)])]
        elif type(value) is tuple:
            bad.append((field.name, ()))
        if field.name in ("discount", "tau", "share"):
            bad.append((field.name, 1.5))
        if field.name in ("precision", "kernel", "divergence", "optimiser"):
            bad.append((field.name, "other"))
    assert ("batch_size", 0) in bad
    for field_name, value in bad:
        with pytest.raises(SappError, match=field_name):
            replace(algorithm, **{field_name: value})


def test_weights_without_a_penalty_are_refused() -> None:
    with pytest.raises(SappError, match=r"BC takes no state weights: .*; leave weights at Uniform\(\)"):
        BC(weights="occupancy")


def test_a_subclass_is_told_what_it_must_define() -> None:
    bare = Bare()
    for call, name in (
        (lambda: bare.init(None, None), "init"), (lambda: bare.scheduled_update(None, None, None, None, 0), "update"),
        (lambda: bare.feature_policy(None), "policy"),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=rf"Bare must define {name}\(\)"):
            call()


def test_by_default_features_are_observations_and_targets_grow_by_the_reward() -> None:
    spec, seen = Spec(2, 1, jnp.zeros(2), jnp.ones(2)), jnp.ones((3, 2))
    bare = Bare()
    assert bare.features(None, seen) is seen
    assert bare.feature_spec(spec) is spec
    assert bare.largest_target(2.5, 1, {}) == 2.5
    assert bare.preparation == 0


@pytest.mark.parametrize("name", ALGORITHMS)
def test_numbers_are_leaves_and_all_else_is_structure(name: str) -> None:
    """A text among the leaves could not be traced, and a size that is one would not be known to the compiler."""
    leaves = jax.tree_util.tree_leaves_with_path(preset(name))
    kinds = {jax.tree_util.keystr(path): type(leaf) for path, leaf in leaves}
    assert len(kinds) >= 2
    assert {path for path, kind in kinds.items() if kind is not float} <= {".target_every"}
