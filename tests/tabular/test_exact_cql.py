"""The exact minimiser of CQL's loss in worlds of uneven coverage."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.tabular.exact_cql import conservative_values
from sapp.tabular.uneven_coverage import Setting, make_world

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
