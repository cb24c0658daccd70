"""One-step models: what they learn of mean, noise and ends."""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import LONG

from sapp.weights.classifier import (
    ADAM,
    descend,
)
from sapp.weights.successor import GaussianSuccessor, LoggedSuccessor, Transitions


def trained(model: GaussianSuccessor, logged: Callable[[jax.Array], Transitions]) -> GaussianSuccessor:
    """After 1,500 steps on fresh batches."""

    def body(step: jax.Array, carry: tuple) -> tuple:
        model, optimiser = carry
        batch = logged(jax.random.fold_in(jax.random.PRNGKey(1), step))
        loss, gradient = jax.value_and_grad(lambda m: m[0].loss(batch)[0])((model,))
        (model,), optimiser, _ = descend((model,), loss, gradient, optimiser, (3e-3,))
        return model, optimiser

    steps = jax.jit(lambda carry: jax.lax.fori_loop(0, 1500, body, carry), compiler_options=LONG)
    return steps((model, ADAM.init((model,))))[0]


def test_the_gaussian_model_learns_mean_noise_and_ends() -> None:
    """s' = s + 0.3a + 0.1·ε, the end where s > 1; a constant model's error is the spread of the change."""
    model = GaussianSuccessor(jax.random.PRNGKey(0), 1, 1, (32, 32))

    def logged(key: jax.Array) -> Transitions:
        keys = jax.random.split(key, 3)
        state, action = jax.random.normal(keys[0], (256, 1)), jax.random.uniform(keys[1], (256, 1), minval=-1.0)
        moved = state + 0.3 * action + 0.1 * jax.random.normal(keys[2], (256, 1))
        return Transitions(state, action, moved, (state[:, 0] > 1.0).astype(jnp.float32))

    model = trained(model, logged)
    state, action = jnp.asarray([[-0.5], [0.0], [0.5]]), jnp.asarray([[1.0], [-1.0], [0.5]])
    mean, log_std, logit = model.heads(state, action)
    np.testing.assert_allclose(mean, 0.3 * action, atol=0.06)
    np.testing.assert_allclose(jnp.exp(log_std), 0.1, rtol=0.35)
    assert np.all(logit < -1.5)
    assert float(model.heads(jnp.asarray([[1.6]]), jnp.zeros((1, 1)))[2][0]) > 1.5
    _, (error, constant) = model.loss(logged(jax.random.PRNGKey(9)))
    assert float(error / constant) == pytest.approx(0.1**2 / (0.1**2 + 0.3**2 / 3), rel=0.3)
    still, _ = model.step(state, action, logged(jax.random.PRNGKey(2)), jnp.float32(0.0), jax.random.PRNGKey(3))
    np.testing.assert_allclose(still, state + mean, atol=1e-6)


def test_what_terminals_lead_to_is_not_learned() -> None:
    rng = np.random.default_rng(0)
    state, action, following = (jnp.asarray(rng.normal(size=(6, 2)), jnp.float32) for _ in range(3))
    terminal = jnp.asarray([0.0, 1.0, 0.0, 0.0, 1.0, 0.0])
    elsewhere = jnp.where(terminal[:, None] > 0.0, following + 3.0, following)
    for kind in (GaussianSuccessor, LoggedSuccessor):
        model = kind(jax.random.PRNGKey(0), 2, 2, (8,))
        found, moved = (model.loss(Transitions(state, action, to, terminal))[0] for to in (following, elsewhere))
        assert float(found) == float(moved)
        assert float(found) != float(model.loss(Transitions(state, action, following + 3.0, terminal))[0])


def test_small_changes_are_learned_as_well_as_large_ones() -> None:
    """By plain mean squares M keeps 0.7 of the change here, because σ's gradient rules the layers they share."""
    model = GaussianSuccessor(jax.random.PRNGKey(0), 2, 2, (32, 32))

    def change(state: jax.Array, action: jax.Array) -> jax.Array:
        return 0.05 * jnp.sin(2.0 * state[:, ::-1]) + 0.05 * action

    def logged(key: jax.Array) -> Transitions:
        keys = jax.random.split(key, 3)
        state, action = jax.random.normal(keys[0], (256, 2)), jax.random.uniform(keys[1], (256, 2), minval=-1.0)
        moved = state + change(state, action) + 0.002 * jax.random.normal(keys[2], (256, 2))
        return Transitions(state, action, moved, jnp.zeros(256))

    model = trained(model, logged)
    batch = logged(jax.random.PRNGKey(9))
    truth = change(batch.state, batch.action)
    off = model.heads(batch.state, batch.action)[0] - truth
    assert float(jnp.sqrt(jnp.mean(off**2) / jnp.mean(truth**2))) < 0.3


def test_a_dimension_that_never_changes_has_a_finite_loss_and_gradient() -> None:
    model = GaussianSuccessor(jax.random.PRNGKey(0), 2, 1, (8,))
    layers = model.mlp.layers
    silent = eqx.tree_at(lambda m: (m.mlp.layers[-1].weight, m.mlp.layers[-1].bias), model, (
        0.0 * layers[-1].weight, 0.0 * layers[-1].bias,
    ))  # fmt: skip
    state = jnp.ones((4, 2))
    batch = Transitions(state, jnp.zeros((4, 1)), state, jnp.zeros(4))
    loss, gradient = jax.value_and_grad(lambda m: m.loss(batch)[0])(silent)
    assert np.isfinite(loss)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


def test_logged_successors_are_rows_that_did_not_end() -> None:
    model = LoggedSuccessor(jax.random.PRNGKey(0), 1, 1, (8,))
    following = jnp.arange(8.0)[:, None]
    logged = Transitions(following, following, following, (following[:, 0] < 4).astype(jnp.float32))
    found, _ = model.step(jnp.zeros((64, 1)), jnp.zeros((64, 1)), logged, jnp.float32(1.0), jax.random.PRNGKey(1))
    assert set(np.unique(found)) <= {4.0, 5.0, 6.0, 7.0}
