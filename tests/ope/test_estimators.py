"""One step of the estimators by hand: what FQE regresses on, and how its target follows."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.core.spec import Batch
from sapp.networks import MLP
from sapp.ope.dice import ADAM as DICE_ADAM
from sapp.ope.dice import RatioScale
from sapp.ope.estimators import FQE_ADAM, Fit, Scales, Settings, _Numbers, _step, decay
from sapp.ope.fqe import ValueScale


def table(values: list[list[float]]) -> MLP:
    """A network without hidden layers: of one-hot states, one output per action."""
    made = MLP(jax.random.PRNGKey(0), 2, (), 2)
    return eqx.tree_at(
        lambda n: (n.layers[0].weight, n.layers[0].bias), made, (jnp.asarray(values, jnp.float32), jnp.zeros(2))
    )


def test_fqe_regresses_on_its_target_network_which_follows_at_its_rate() -> None:
    """One transition, state 0 to state 1 by action 1, reward ½, γ = 0.8, the policy ¼ and ¾; values are 10 + 2·output.

    Q(0, 1) = 10 + 2·3 and V̄(1) = 10 + 2·(¼·1 + ¾·5) = 18, so y = ½ + 0.8·18 = 14.9.
    """
    value, target = table([[1.0, 3.0], [7.0, 7.0]]), table([[0.0, -1.0], [1.0, 5.0]])
    ones = table([[1.0, 1.0], [1.0, 1.0]])
    optimisers = FQE_ADAM.init(value), DICE_ADAM.init((ones, ones))
    fit = Fit(value, target, optimisers[0], ones, ones, ones, optimisers[1], jnp.float32(0.0), jnp.bool_(True))
    scale = ValueScale(jnp.float32(10.0), jnp.float32(2.0))
    here, there = jnp.eye(2)[:1], jnp.eye(2)[1:]
    batch = Batch(here, jnp.array([1], jnp.int32), jnp.array([0.5]), there, jnp.zeros(1), here)
    policy = jnp.array([[0.25, 0.75]])
    numbers = _Numbers.of(Settings(discount=0.8, target_rate=0.25))
    new = _step(numbers, Scales(scale, RatioScale(jnp.float32(1.0), scale)), batch, policy, policy, fit, 0.1)
    gradient = -2.0 * ((14.9 - 10.0) / 2.0 - 3.0)  # of the one squared difference, in the network's units
    moment = np.asarray(new.value_optimiser.mu.layers[0].weight)
    np.testing.assert_allclose(moment, [[0.0, 0.1 * gradient], [0.0, 0.0]], rtol=1e-4, atol=1e-6)
    assert float(new.value.layers[0].weight[0, 1]) == pytest.approx(3.0 - 0.1 * np.sign(gradient), rel=1e-4)
    followed = 0.75 * target.layers[0].weight + 0.25 * new.value.layers[0].weight
    np.testing.assert_allclose(new.target.layers[0].weight, followed, rtol=1e-6)


def test_the_learning_rate_stays_for_half_of_the_steps_and_falls_to_a_tenth() -> None:
    assert [float(decay(step, 100)) for step in (0, 50, 75, 100)] == pytest.approx([1.0, 1.0, 0.55, 0.1])
