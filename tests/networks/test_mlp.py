"""Perceptrons against NumPy, initialisation, precision."""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp import SappError
from sapp.core.precision import check_precision
from sapp.networks import MLP, Linear, StateActionNetwork, ensemble


@eqx.filter_jit
def build(kind: type, *arguments: object, **options: object) -> object:
    """A network, made in one compiled program (eager JAX compiles every draw of every shape apart)."""
    return kind(*arguments, **options)


def numpy_mlp(network: MLP, x: np.ndarray) -> np.ndarray:
    x = np.asarray(x, np.float64)
    for number, layer in enumerate(network.layers):
        x = x @ np.asarray(layer.weight, np.float64) + np.asarray(layer.bias, np.float64)
        if number < len(network.layers) - 1:
            x = np.maximum(x, 0.0)
    return x


@pytest.mark.parametrize("hidden", [(), (7,), (16, 16, 5)])
def test_mlp_matches_numpy(hidden: tuple[int, ...]) -> None:
    network = build(MLP, jax.random.PRNGKey(0), 6, hidden, 3)
    x = np.random.default_rng(0).normal(size=(20, 6)).astype(np.float32)
    np.testing.assert_allclose(network(jnp.asarray(x)), numpy_mlp(network, x), rtol=1e-5, atol=1e-6)


def test_a_trunks_last_layer_is_computed_like_a_hidden_one() -> None:
    """Where products have ten bits, one and 2⁻¹³ are one; a value, a network's only output, keeps the rest."""
    network = build(MLP, jax.random.PRNGKey(0), 6, (16, 5), 3, trunk=True)
    x = np.random.default_rng(0).normal(size=(20, 6)).astype(np.float32)
    np.testing.assert_allclose(network(jnp.asarray(x)), numpy_mlp(network, x), rtol=1e-5, atol=1e-6)
    for trunk, expected in ((True, 1.0), (False, 1.0 + 2.0**-13)):
        one = build(MLP, jax.random.PRNGKey(0), 1, (), 1, "tf32", bias=0.0, trunk=trunk)
        one = eqx.tree_at(lambda n: n.layers[0].weight, one, jnp.full((1, 1), 1.0 + 2.0**-13))
        assert float(one(jnp.ones((1, 1)))[0, 0]) == expected


def test_state_action_network_is_the_mlp_of_the_concatenation() -> None:
    network = build(StateActionNetwork, jax.random.PRNGKey(1), 5, 2, (16, 16))
    rng = np.random.default_rng(1)
    state, action = rng.normal(size=(12, 5)), rng.normal(size=(12, 2))
    expected = numpy_mlp(network.mlp, np.concatenate([state, action], 1))[:, 0]
    actual = network(jnp.asarray(state, jnp.float32), jnp.asarray(action, jnp.float32))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_many_actions_a_state_equal_one_at_a_time() -> None:
    network = build(StateActionNetwork, jax.random.PRNGKey(1), 5, 2, (16, 16))
    rng = np.random.default_rng(2)
    state, action = rng.normal(size=(12, 5)).astype(np.float32), rng.normal(size=(12, 7, 2)).astype(np.float32)
    together = network(jnp.asarray(state), jnp.asarray(action))
    assert together.shape == (12, 7)
    looped = np.stack([network(jnp.asarray(state), jnp.asarray(action[:, k])) for k in range(7)], axis=1)
    np.testing.assert_allclose(together, looped, rtol=1e-5, atol=1e-6)


def test_ensemble_evaluates_each_member_with_its_own_parameters() -> None:
    networks = [build(StateActionNetwork, jax.random.PRNGKey(k), 3, 1, (8,)) for k in (0, 1)]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *networks)
    rng = np.random.default_rng(3)
    state, action = rng.normal(size=(6, 3)).astype(np.float32), rng.normal(size=(6, 4, 1)).astype(np.float32)
    values = ensemble(stacked, state, action)
    assert values.shape == (2, 6, 4)
    for row, network in zip(values, networks, strict=True):
        np.testing.assert_allclose(row, network(state, action), rtol=1e-5, atol=1e-6)
    assert np.abs(values[0] - values[1]).max() > 0.01


def test_on_a_gpu_each_member_has_its_own_inputs_and_the_same_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and gradients are those of one shared input, kept apart by a barrier."""
    keys = jax.random.split(jax.random.PRNGKey(0), 3)
    network = jax.vmap(lambda key: StateActionNetwork(key, 3, 2, (8, 8)))(keys)
    state, action = jax.random.normal(keys[0], (5, 3)), jax.random.normal(keys[1], (5, 2))

    def minimum(network: StateActionNetwork, action: jax.Array) -> jax.Array:
        return jnp.sum(jnp.min(ensemble(network, state, action), axis=0))

    expected = jax.value_and_grad(minimum, (0, 1))(network, action)
    assert "optimization_barrier" not in str(jax.make_jaxpr(minimum)(network, action))
    monkeypatch.setattr("sapp.networks.mlp.on_cuda", lambda: True)
    assert "optimization_barrier" in str(jax.make_jaxpr(partial(minimum))(network, action))
    found = jax.value_and_grad(minimum, (0, 1))(network, action)
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
    many = jax.random.normal(keys[2], (5, 4, 2))
    assert ensemble(network, state, many).shape == (3, 5, 4)


@pytest.mark.parametrize("inputs", [4, 100])
def test_initialisation_is_pytorchs_uniform_within_one_over_root_fan_in(inputs: int) -> None:
    layer = build(Linear, jax.random.PRNGKey(0), inputs, 2000)
    bound = 1 / np.sqrt(inputs)
    for leaf in (layer.weight, layer.bias):
        leaf = np.asarray(leaf)
        assert np.abs(leaf).max() <= bound
        assert np.abs(leaf).max() > 0.99 * bound
        assert np.std(leaf) == pytest.approx(bound / np.sqrt(3), rel=0.05)
        assert abs(np.mean(leaf)) < 5 * bound / np.sqrt(3 * leaf.size)


def test_last_layer_scale_and_bias() -> None:
    network = build(MLP, jax.random.PRNGKey(0), 10, (64,), 1, scale=1e-2, bias=1.0)
    assert np.abs(np.asarray(network.layers[-1].weight)).max() <= 1e-2 / np.sqrt(64)
    np.testing.assert_array_equal(network.layers[-1].bias, [1.0])
    out = network(jax.random.normal(jax.random.PRNGKey(1), (50, 10)))
    np.testing.assert_allclose(out, 1.0, atol=0.02)


def test_tf32_products_are_close_to_float32_and_differ() -> None:
    key = jax.random.PRNGKey(0)
    exact = build(StateActionNetwork, key, 11, 3, (256, 256, 256))
    rough = build(StateActionNetwork, key, 11, 3, (256, 256, 256), "tf32")
    rng = np.random.default_rng(4)
    state, action = rng.normal(size=(256, 11)).astype(np.float32), rng.uniform(-1, 1, (256, 3)).astype(np.float32)
    a, b = np.asarray(exact(state, action)), np.asarray(rough(state, action))
    assert b.dtype == np.float32
    error = np.linalg.norm(a - b) / np.linalg.norm(a)
    assert 0 < error < 1e-3


@pytest.mark.parametrize("precision", ["float32", "tf32", "mixed"])
def test_nearby_inputs_have_different_values_however_large_these_are(precision: str) -> None:
    """2,000 pairs whose values lie near 350 have nearly as many; in bfloat16, with steps of 2 there, they had one."""
    network = build(StateActionNetwork, jax.random.PRNGKey(0), 11, 3, (64, 64), precision, bias=350.0)
    exact = build(StateActionNetwork, jax.random.PRNGKey(0), 11, 3, (64, 64), bias=350.0)
    rng = np.random.default_rng(5)
    state, action = rng.normal(size=(2000, 11)).astype(np.float32), rng.uniform(-1, 1, (2000, 3)).astype(np.float32)
    values = np.asarray(network(state, action))
    assert np.unique(values).size > 1_700  # float32 has some 20,000 numbers where they lie
    np.testing.assert_allclose(values, exact(state, action), rtol=0, atol=5e-4)
    moved = np.asarray(network(state, np.clip(action + 0.01, -1, 1)))
    assert np.mean(moved != values) > 0.97


@pytest.mark.parametrize("precision", ["float32", "tf32", "mixed"])
def test_the_last_layer_is_float32(precision: str) -> None:
    """Whatever the hidden layers are: a network's output is never rounded."""
    network = build(MLP, jax.random.PRNGKey(0), 3, (), 1, precision, bias=1_400.0)
    x = np.random.default_rng(6).normal(size=(50, 3)).astype(np.float32)
    np.testing.assert_allclose(network(jnp.asarray(x)), numpy_mlp(network, x), rtol=2e-7)


def test_highest_precision_is_asked_for_in_float32() -> None:
    """On accelerators the default for float32 operands is a faster, rougher product."""
    program = jax.make_jaxpr(build(MLP, jax.random.PRNGKey(0), 3, (4,), 1))(jnp.zeros((2, 3)))
    products = [e for e in program.eqns if e.primitive.name == "dot_general"]
    assert len(products) == 2
    assert all("HIGHEST" in str(e.params["precision"]) for e in products)


def test_unknown_precision_is_refused_by_name() -> None:
    with pytest.raises(SappError, match=r"'fp8'.*float32, tf32, mixed"):
        check_precision("fp8")


def test_critic_without_hidden_layers_is_refused() -> None:
    with pytest.raises(SappError, match="at least one hidden layer"):
        build(StateActionNetwork, jax.random.PRNGKey(0), 3, 1, ())
