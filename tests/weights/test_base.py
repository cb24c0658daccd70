"""What all estimators of state weights share."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from sapp.core.errors import SappError
from sapp.weights.base import predicted_reward
from sapp.weights.registry import WEIGHTS, state_weights


def test_the_normalised_reward_does_not_know_the_scale_of_the_ratios() -> None:
    ratio, reward = jnp.asarray([0.5, 1.5, 4.0]), jnp.asarray([1.0, -1.0, 2.0])
    for scale in (1.0, 0.1, 20.0):
        found = predicted_reward(scale * ratio, reward)
        assert float(found["ratio/reward"]) == pytest.approx(scale * 7.0 / 3.0)
        assert float(found["ratio/reward_normalised"]) == pytest.approx(7.0 / 6.0)


@pytest.mark.parametrize("name", [*sorted(set(WEIGHTS) - {"constant"}), "constant:0.5"])
def test_numbers_are_leaves_and_all_else_is_structure(name: str) -> None:
    """A text among the leaves could not be traced, and a size that is one would not be known to the compiler."""
    for text in (name, f"frozen:{name}"):
        leaves = jax.tree_util.tree_leaves_with_path(state_weights(text))
        kinds = {jax.tree_util.keystr(path): type(leaf) for path, leaf in leaves}
        numbers = {path for path, kind in kinds.items() if kind is not float}
        assert numbers <= {".fallback", ".updates", ".of.fallback"}


@pytest.mark.parametrize("name", ["dualdice", "occupancy", "infonce"])
def test_whatever_the_estimator_each_setting_has_its_range(name: str) -> None:
    """No number is nan or negative, and what is counted is there."""
    weights, nan = state_weights(name), float("nan")
    bad: list[tuple[str, Any]] = [("hidden", ()), ("health_rate", 1.5)]
    for field in fields(weights):
        value: Any = getattr(weights, field.name)
        if type(value) is float:
            bad += [(field.name, nan), (field.name, -1.0)]
        elif type(value) is int:
            bad += [(field.name, -1), (field.name, 0)]
        elif type(value) is str:
            bad.append((field.name, "other"))
    assert len(bad) > 15
    for field_name, value in bad:
        with pytest.raises(SappError, match=field_name):
            replace(weights, **{field_name: value})
