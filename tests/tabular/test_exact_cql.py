"""The exact minimiser of CQL's loss in worlds of uneven coverage."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.tabular.exact_cql import SPREADS, Spread, conservative_values, exact_losses, log_min_max
from sapp.tabular.uneven_coverage import FLOOR, Setting, make_world
from sapp.tabular.weights import LogMinMax

SETTING = Setting(episodes=60, length=20)


@pytest.mark.parametrize("charge", [0.01, 1.0, 30.0])
def test_conservative_values_minimise_their_loss(charge: float) -> None:
    world = make_world(SETTING, 1)
    behaviour = jnp.asarray(world.visits / world.visits.sum(1, keepdims=True))
    seen = world.visits > 0
    charges = charge * np.linspace(0.5, 2.0, 20)

    def loss(values: jax.Array) -> jax.Array:
        whole = jnp.where(seen, values, -jnp.inf)
        error = jnp.where(seen, values - world.mean, 0.0)
        penalty = jax.nn.logsumexp(whole, axis=1) - jnp.sum(jnp.where(seen, behaviour * values, 0.0), axis=1)
        return jnp.sum(jnp.sum(behaviour * jnp.square(error), axis=1) + charges * penalty)

    found = conservative_values(world, charges, iterations=400)
    slope = jax.grad(loss)(jnp.asarray(np.where(seen, found, 0.0)))
    assert float(jnp.abs(slope).max()) < 1e-4 * charge
    assert np.isneginf(found[~seen]).all()


def test_without_a_charge_the_values_are_the_logs_means_and_with_a_large_one_the_behaviour_is_followed() -> None:
    world = make_world(SETTING, 2)
    seen = world.visits > 0
    free = conservative_values(world, np.zeros(20))
    np.testing.assert_allclose(free[seen], world.mean[seen])
    bound = conservative_values(world, np.full(20, 1e5), iterations=400)
    policy = np.exp(bound - bound.max(1, keepdims=True))
    policy /= policy.sum(1, keepdims=True)
    np.testing.assert_allclose(policy, world.visits / world.visits.sum(1, keepdims=True), atol=2e-3)


def test_the_papers_weights_are_those_of_the_tables_but_for_equal_ratios() -> None:
    ratio = np.random.default_rng(0).lognormal(size=9)
    np.testing.assert_allclose(log_min_max(ratio), LogMinMax(FLOOR, 1.0)(ratio))
    np.testing.assert_array_equal(log_min_max(np.full(3, 7.0)), 1.0)


def test_only_the_spread_of_a_penalty_counts_and_none_leaves_the_means() -> None:
    worlds = [make_world(SETTING, number) for number in (1, 2)]
    spreads: dict[str, Spread] = {
        "even": SPREADS["CQL"], "seven": lambda world, rng: np.full_like(world.ratio, 7.0), "w": SPREADS["SA-CQL, w"],
    }  # fmt: skip
    found = exact_losses(worlds, [0.0, 1.0], spreads)
    assert found["w"].shape == (2, 2)
    np.testing.assert_allclose(found["even"], found["seven"])
    means = [world.lost(np.where(world.visits > 0, world.mean, -np.inf)) for world in worlds]
    for losses in found.values():
        np.testing.assert_allclose(losses[0], means)
    # w has mean 1 over the data by itself: Σ d^D·d^π/d^D
    np.testing.assert_allclose([world.share @ world.ratio for world in worlds], 1.0)
    whole = [world.lost(conservative_values(world, world.ratio)) for world in worlds]
    np.testing.assert_allclose(found["w"][1], whole)
