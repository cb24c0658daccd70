"""Initialisations, critics with dropout and spectral norm, gradients with respect to actions."""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.core.spec import Spec
from sapp.networks import MLP, DropoutCritic, action_gradients, ensemble, make_critics, orthogonal, small_head

S, A, B = 4, 2, 6
SPEC = Spec(S, A, jnp.zeros(S), jnp.ones(S))


@pytest.fixture(scope="module")
def pairs() -> tuple[jax.Array, jax.Array]:
    rng = np.random.default_rng(0)
    return jnp.asarray(rng.normal(size=(B, S)), jnp.float32), jnp.asarray(np.tanh(rng.normal(size=(B, A))), jnp.float32)


def test_orthogonal_layers_are_orthogonal_with_their_gain() -> None:
    mlp = orthogonal(2**0.5, 1e-2)(jax.random.PRNGKey(0), MLP(jax.random.PRNGKey(1), 8, (8, 8), 3))
    hidden, last = np.asarray(mlp.layers[1].weight), np.asarray(mlp.layers[2].weight)
    np.testing.assert_allclose(hidden.T @ hidden, 2 * np.eye(8), atol=1e-5)
    np.testing.assert_allclose(last.T @ last, 1e-4 * np.eye(3), atol=1e-8)
    assert all(not np.any(layer.bias) for layer in mlp.layers)


def test_small_head_leaves_hidden_weights_and_shrinks_the_last_layer() -> None:
    before = MLP(jax.random.PRNGKey(1), 8, (8, 8), 3)
    after = small_head(3e-3, 0.1)(jax.random.PRNGKey(0), before)
    np.testing.assert_array_equal(after.layers[0].weight, before.layers[0].weight)
    np.testing.assert_allclose(after.layers[1].bias, 0.1)
    assert np.abs(after.layers[2].weight).max() <= 3e-3


def test_an_ensemble_is_independent_networks_in_one(pairs) -> None:
    critics = make_critics(jax.random.PRNGKey(0), SPEC, 50, (8, 8), "float32")
    values = ensemble(critics, *pairs)
    assert values.shape == (50, B)
    one = jax.tree.map(lambda leaf: leaf[17], critics)
    np.testing.assert_allclose(values[17], one(*pairs), rtol=1e-5, atol=1e-6)
    assert len(np.unique(np.round(np.asarray(values[:, 0]), 5))) == 50


def test_action_gradients_against_finite_differences(pairs) -> None:
    critics = make_critics(jax.random.PRNGKey(0), SPEC, 3, (16, 16), "float32")
    state, action = pairs
    found = action_gradients(critics, state, action)
    assert found.shape == (3, B, A)
    for d in range(A):
        step = 1e-3 * np.eye(A, dtype=np.float32)[d]
        difference = (ensemble(critics, state, action + step) - ensemble(critics, state, action - step)) / 2e-3
        np.testing.assert_allclose(found[..., d], difference, atol=5e-3)


def test_spectral_norm_of_every_layer_is_one_after_some_iterations() -> None:
    critic = DropoutCritic(jax.random.PRNGKey(0), S, A, (16, 16))
    iterate = jax.jit(lambda c: c.iterate())
    for _ in range(200):
        critic = iterate(critic)
    for layer, normalised in zip(critic.mlp.layers, critic.normalised().layers, strict=True):
        scale = np.linalg.svd(np.asarray(layer.weight), compute_uv=False)[0]
        np.testing.assert_allclose(normalised.weight, layer.weight / scale, rtol=1e-3, atol=1e-6)
        assert np.linalg.svd(np.asarray(normalised.weight), compute_uv=False)[0] == pytest.approx(1.0, rel=1e-3)


def test_dropout_drops_at_its_rate_and_keeps_the_mean(pairs) -> None:
    """One hidden layer: the output is linear in what is dropped, so its mean over masks is the network's own."""
    critic = DropoutCritic(jax.random.PRNGKey(0), S, A, (32,), rate=0.25, spectral=False)
    keys = jax.random.split(jax.random.PRNGKey(1), 4000)
    for score in (critic, critic.dropout_sample):
        draws = np.asarray(jax.vmap(lambda k, score=score: score(*pairs, k))(keys))
        error = draws.std(0) / np.sqrt(len(draws))
        assert np.all(np.abs(draws.mean(0) - np.asarray(critic(*pairs))) < 5 * error)
        # variance of Σ_j w_j h_j m_j/(1−p): Σ (w_j h_j)²·p/(1−p)
        first, last = critic.mlp.layers
        pair = np.concatenate(pairs, -1)
        hidden = np.maximum(pair @ np.asarray(first.weight) + np.asarray(first.bias), 0)
        expected = np.sum((hidden * np.asarray(last.weight)[:, 0]) ** 2, -1) * 0.25 / 0.75
        np.testing.assert_allclose(draws.var(0), expected, rtol=0.15)


def test_a_dropout_sample_is_the_network_without_the_dropped_units(pairs) -> None:
    """By hand, with the masks that the key gives: units times mask/(1−p), the same for every row."""
    critic = DropoutCritic(jax.random.PRNGKey(0), S, A, (16, 16), rate=0.3)
    key = jax.random.PRNGKey(4)
    x = np.concatenate(pairs, -1)
    layers = critic.normalised().layers
    for number, layer in enumerate(layers):
        x = x @ np.asarray(layer.weight) + np.asarray(layer.bias)
        if number < len(layers) - 1:
            keep = jax.random.bernoulli(jax.random.fold_in(key, number), 0.7, (16,))
            assert 0 < np.asarray(keep).sum() < 16
            x = np.maximum(x, 0) * np.asarray(keep) / 0.7
    np.testing.assert_allclose(critic.dropout_sample(*pairs, key), x[:, 0], rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("rows", [(B,), (B, 3)])
def test_samples_have_the_same_shape_by_the_kernel_and_without(
    rows: tuple[int, ...], pairs: tuple[jax.Array, jax.Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one action per state and of several; the values are compared in the kernel's own tests."""
    critic = DropoutCritic(jax.random.PRNGKey(0), S, A, (64, 64), "tf32")
    arguments = pairs[0], jnp.zeros((*rows, A)), jax.random.split(jax.random.PRNGKey(1), 4)
    for fused in (False, True):
        monkeypatch.setattr(sys.modules["sapp.networks.ensemble"], "on_cuda", lambda fused=fused: fused)
        assert critic.fused == fused
        assert jax.eval_shape(critic.samples, *arguments).shape == (4, *rows)
