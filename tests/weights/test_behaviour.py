"""β̂, the cloned behaviour, and the box around it."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.weights.behaviour import LOGGED_LIMIT, TanhBehaviour, box


def behaviour_of(mean: tuple[float, ...], std: tuple[float, ...]) -> TanhBehaviour:
    """The same at every state of size 2."""
    behaviour = TanhBehaviour(jax.random.PRNGKey(0), 2, len(mean), (4,))
    last = behaviour.mlp.layers[-1]
    return eqx.tree_at(
        lambda b: (b.mlp.layers[-1].weight, b.mlp.layers[-1].bias),
        behaviour,
        (jnp.zeros_like(last.weight), jnp.asarray([*mean, *np.log(std)], jnp.float32)),
    )


def test_the_box_keeps_actions_within_two_standard_deviations() -> None:
    behaviour = behaviour_of((0.0, 0.9), (0.1, 0.2))
    action, share = box(behaviour(jnp.zeros((2, 2))), jnp.asarray([[0.5, 0.85], [-0.1, -0.7]]), 2.0)
    np.testing.assert_allclose(action, [[np.tanh(0.2), 0.85], [-0.1, np.tanh(0.5)]], atol=1e-6)
    assert float(share) == 0.5
    action, _ = box(behaviour(jnp.zeros((1, 2))), jnp.asarray([[0.0, 3.0]]), 2.0)
    np.testing.assert_allclose(action, [[0.0, np.tanh(1.3)]], atol=1e-6)


def test_the_behaviours_loss_is_the_density_of_tanh_and_finite_at_the_bounds() -> None:
    behaviour, actions = behaviour_of((0.3, -0.2), (0.5, 0.8)), np.asarray([[0.1, -0.6], [0.9, 0.0]])
    raw = np.arctanh(actions)
    normal = np.exp(-0.5 * ((raw - [0.3, -0.2]) / [0.5, 0.8]) ** 2) / np.sqrt(2 * np.pi) / [0.5, 0.8]
    expected = -np.log(normal / (1 - actions**2)).sum(1).mean()
    assert float(behaviour.loss(jnp.zeros((2, 2)), jnp.asarray(actions))) == pytest.approx(expected, rel=1e-4)
    ends = behaviour.loss(jnp.zeros((1, 2)), jnp.asarray([[1.0, -1.0]]))
    inside = behaviour.loss(jnp.zeros((1, 2)), jnp.asarray([[LOGGED_LIMIT, -LOGGED_LIMIT]]))
    assert float(ends) == pytest.approx(float(inside), rel=1e-4)
