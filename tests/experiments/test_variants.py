"""Variants differ in their weights alone, and changes reach those that have the hyper-parameter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sapp.algorithms import config
from sapp.experiments.grid import scaled
from sapp.experiments.variants import CONTROLS, changed, cql_family, dualdice, named, with_controls
from sapp.weights import RescaledWeights


@pytest.mark.parametrize("base", ["cql", "td3bc"])
def test_controls_share_everything_but_what_they_do_with_the_weights(base: str) -> None:
    variants = with_controls(scaled("small"), dualdice(scaled("small")), base=base)
    made = [make("walker2d-medium") for make in variants.values()]
    assert list(variants) == list(CONTROLS)
    assert len({algorithm.weights.kind for algorithm in made}) == len(made)
    same = {config.describe(replace(algorithm, weights=made[0].weights)).__repr__() for algorithm in made}
    assert len(same) == 1
    assert (made[0].weights.of.f.b0, made[0].weights.of.f.b1) == (0.5, 1.0)


def test_a_mean_rescales_every_variant_and_changes_still_reach_the_estimator() -> None:
    variants = with_controls(scaled("smoke"), dualdice(scaled("smoke")), mean=0.7)
    for make in variants.values():
        weights = make("point-60").weights
        assert isinstance(weights, RescaledWeights)
        assert weights.mean == 0.7
        assert weights.of.of.hidden == (32, 32)


def test_a_scale_changes_what_an_algorithm_has() -> None:
    small = replace(scaled("small"), changes={"batch_size": 17, "no_such_setting": 3})
    assert named(small, "iql")("hopper-medium").batch_size == 17
    assert named(small, "iql", batch_size=19)("hopper-medium").batch_size == 19
    algorithm = named(scaled("small"), "iql")("hopper-medium")
    assert changed(algorithm, {"nothing": 1}) == algorithm


def test_weights_fall_back_only_where_asked() -> None:
    for fallback in (False, True):
        family = cql_family(scaled("small", fallback=fallback))
        assert family.variants["SA-CQL"]("hopper-medium").weights.of.fallback is fallback
