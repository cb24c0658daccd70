"""DualDICE as an estimator: the units in which its networks learn, and its gradient."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.core.spec import Batch
from sapp.data import Dataset
from sapp.ope.dice import RatioScale, ratios, saddle, saddle_gradient
from sapp.ope.fqe import ValueScale, make_network

DISCOUNT = 0.9


def logs(terminal: bool) -> Dataset:
    """Four episodes of three steps."""
    rng = np.random.default_rng(0)
    last = np.arange(12) % 3 == 2
    none = np.zeros(12, bool)
    return Dataset(
        rng.normal(size=(12, 2)), rng.uniform(-1, 1, (12, 1)), np.ones(12), rng.normal(size=(12, 2)),
        last if terminal else none, none if terminal else last,
    )  # fmt: skip


def test_mass_is_what_terminals_leave_of_the_occupancy() -> None:
    assert float(RatioScale.of(logs(True), DISCOUNT).mass) == pytest.approx(0.1 * (1 + 0.9 + 0.81))
    assert float(RatioScale.of(logs(False), DISCOUNT).mass) == pytest.approx(1.0, abs=0.05)


def test_the_gradient_goes_down_in_nu_and_up_in_zeta() -> None:
    data = logs(True)
    scale = RatioScale(jnp.float32(0.5), ValueScale(jnp.float32(0.3), jnp.float32(2.0)))
    nu, zeta = (make_network(jax.random.PRNGKey(seed), 2, 1, False, (8,)) for seed in (0, 1))
    start = jnp.asarray(data.initial_observation)[jnp.arange(12) % 4]
    batch = Batch(
        *(jnp.asarray(x, jnp.float32) for x in (
            data.observation, data.action, data.reward, data.next_observation, data.terminal)), start,
    )  # fmt: skip
    answers = (jnp.zeros((12, 1, 1)), jnp.full((12, 1, 1), 0.5))
    j, (down, up), (_, found) = saddle_gradient((nu, zeta), scale, batch, *answers, jnp.float32(DISCOUNT))
    assert (np.asarray(found) >= 0).all()
    np.testing.assert_allclose(found, ratios(zeta, scale, batch.observation, batch.action), rtol=1e-6)

    def at(nu: Any, zeta: Any) -> float:
        return float(saddle((nu, zeta), scale, batch, *answers, jnp.float32(DISCOUNT))[0])

    def moved(network: Any, gradient: Any) -> Any:
        return jax.tree.map(lambda p, g: p - 1e-3 * g, network, gradient)

    assert at(nu, zeta) == pytest.approx(float(j), rel=1e-5)
    assert at(moved(nu, down), zeta) < float(j)
    assert at(nu, moved(zeta, up)) > float(j)
