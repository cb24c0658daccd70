"""values and action gradients by one way back, against plain differentiation."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.algorithms.edac import alignment
from sapp.core.spec import Spec
from sapp.networks import StateActionNetwork, action_gradients, ensemble, make_critics, values_and_action_gradients

S, A, B, N = 4, 2, 8, 3
SPEC = Spec(S, A, jnp.zeros(S), jnp.ones(S))
Both = Callable[[StateActionNetwork, jax.Array, jax.Array], tuple[jax.Array, jax.Array]]


def plain(critics: StateActionNetwork, state: jax.Array, action: jax.Array) -> tuple[jax.Array, jax.Array]:
    return ensemble(critics, state, action), action_gradients(critics, state, action)


def drawn(hidden: tuple[int, ...], precision: str = "float32") -> tuple[StateActionNetwork, jax.Array, jax.Array]:
    rng = np.random.default_rng(1)
    critics = make_critics(jax.random.PRNGKey(0), SPEC, N, hidden, precision)  # type: ignore[arg-type]
    state, action = (jnp.asarray(rng.normal(size=(B, size)), jnp.float32) for size in (S, A))
    return critics, state, jnp.tanh(action)


def gradients(both: Both, *arguments: object) -> object:
    """Of a loss in which values and action gradients meet, towards critics, states and actions."""

    def loss(critics: StateActionNetwork, state: jax.Array, action: jax.Array) -> jax.Array:
        value, action_gradient = both(critics, state, action)
        return jnp.sum(jnp.square(value - 1.0)) + jnp.sum(jnp.sin(value)[..., None] * action_gradient**2)

    return jax.grad(loss, argnums=(0, 1, 2))(*arguments)


@pytest.mark.parametrize("hidden", [(16,), (16, 8), (16, 8, 12)])
def test_values_action_gradients_and_gradients_are_those_of_plain_differentiation(hidden: tuple[int, ...]) -> None:
    arguments = drawn(hidden)
    for found, expected in zip(values_and_action_gradients(*arguments), plain(*arguments), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    found, expected = (jax.tree.leaves(gradients(both, *arguments)) for both in (values_and_action_gradients, plain))
    assert [x.shape for x in found] == [x.shape for x in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("of", ["values", "action gradients"])
def test_each_output_has_its_own_gradient(of: str) -> None:
    """A loss of the values alone, and one of the action gradients alone (EDAC's)."""
    critics, state, action = drawn((16, 16))

    def gradient(both: Both) -> list[jax.Array]:
        def loss(critics: StateActionNetwork) -> jax.Array:
            value, action_gradient = both(critics, state, action)
            return jnp.sum(value**2 if of == "values" else alignment(action_gradient))

        return jax.tree.leaves(jax.grad(loss)(critics))

    for one, other in zip(gradient(values_and_action_gradients), gradient(plain), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_tf32_gradients_are_float32_and_as_exact_as_plain_ones() -> None:
    """Relative error of all gradients together, against float32; the shared way back loses nothing."""
    exact = jax.tree.leaves(gradients(plain, *drawn((32, 32))))

    def error(both: Both) -> float:
        found = jax.tree.leaves(gradients(both, *drawn((32, 32), "tf32")))
        assert all(x.dtype == jnp.float32 for x in found)
        difference = sum(float(jnp.sum((x - y) ** 2)) for x, y in zip(found, exact, strict=True))
        return (difference / sum(float(jnp.sum(y**2)) for y in exact)) ** 0.5

    assert error(values_and_action_gradients) < 1.5 * error(plain) < 0.1
