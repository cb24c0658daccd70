"""Mixtures of tanh-Gaussians against SciPy."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import log_softmax, logsumexp
from test_gaussian import build, log_prob, scipy_log_density

from sapp.networks import (
    TanhGaussian,
)
from sapp.networks.gaussian import LOG_STD_MAX
from sapp.networks.mixture import BEHAVIOUR_LOG_STD_MIN, BehaviourDensity


@pytest.fixture(scope="module")
def behaviour() -> BehaviourDensity:
    """A mixture whose components lie apart: the output layer is scaled up."""
    network = build(BehaviourDensity, jax.random.PRNGKey(2), 3, 2, (16,), components=4)
    return eqx.tree_at(lambda b: b.mlp.layers[-1].weight, network, network.mlp.layers[-1].weight * 4.0)


def mixture_parts(network: BehaviourDensity, state: np.ndarray) -> list[np.ndarray]:
    hidden, last = network.mlp.layers
    x = np.maximum(state @ np.asarray(hidden.weight, np.float64) + np.asarray(hidden.bias, np.float64), 0.0)
    out = x @ np.asarray(last.weight, np.float64) + np.asarray(last.bias, np.float64)
    return [part.reshape(len(state), network.action_size, network.components) for part in np.split(out, 3, axis=-1)]


def test_mixture_log_prob_matches_scipy(behaviour: BehaviourDensity) -> None:
    rng = np.random.default_rng(4)
    state, action = rng.normal(size=(64, 3)), np.tanh(rng.normal(size=(64, 2))).astype(np.float32)
    logits, mean, log_std = mixture_parts(behaviour, state)
    parts = log_softmax(logits, axis=-1) + scipy_log_density(
        np.arctanh(action.astype(np.float64))[..., None], mean, np.clip(log_std, BEHAVIOUR_LOG_STD_MIN, LOG_STD_MAX)
    )
    expected = logsumexp(parts, axis=-1).sum(-1)
    actual = log_prob(behaviour, jnp.asarray(state, jnp.float32), jnp.asarray(action))
    np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-3)


def test_mixture_density_integrates_to_one_in_each_dimension() -> None:
    network = build(BehaviourDensity, jax.random.PRNGKey(7), 3, 1, (16,), components=3)
    u = np.linspace(-6.5, 6.5, 20_001)
    action = jnp.asarray(np.tanh(u)[:, None], jnp.float32)
    for state in np.random.default_rng(0).normal(size=(3, 3)):
        rows = jnp.broadcast_to(jnp.asarray(state, jnp.float32), (len(u), 3))
        density = np.exp(np.asarray(log_prob(network, rows, action), np.float64))
        assert np.trapezoid(density, np.tanh(u)) == pytest.approx(1.0, abs=2e-3)


def test_mixture_of_one_component_is_the_tanh_gaussian() -> None:
    network = build(BehaviourDensity, jax.random.PRNGKey(8), 3, 2, (16,), components=1)
    rng = np.random.default_rng(5)
    state, action = rng.normal(size=(16, 3)), np.tanh(rng.normal(size=(16, 2))).astype(np.float32)
    _, mean, log_std = (jnp.asarray(part[..., 0], jnp.float32) for part in mixture_parts(network, state))
    expected = log_prob(TanhGaussian(mean, log_std), jnp.asarray(action))
    actual = log_prob(network, jnp.asarray(state, jnp.float32), jnp.asarray(action))
    np.testing.assert_allclose(actual, expected, rtol=1e-4)


def test_mixture_likelihood_of_a_repeated_action_is_bounded() -> None:
    """The floor of the log standard deviation keeps the likelihood of an action logged again and again finite."""
    network = build(BehaviourDensity, jax.random.PRNGKey(9), 1, 1, (4,), components=1)
    last = network.mlp.layers[-1]
    peaked = eqx.tree_at(
        lambda b: (b.mlp.layers[-1].weight, b.mlp.layers[-1].bias),
        network, (jnp.zeros_like(last.weight), jnp.asarray([0.0, 0.0, -50.0])),
    )  # fmt: skip
    value = float(log_prob(peaked, jnp.zeros((1, 1)), jnp.zeros((1, 1)))[0])
    assert value == pytest.approx(-BEHAVIOUR_LOG_STD_MIN - 0.5 * np.log(2 * np.pi), rel=1e-5)


S, A, B = 4, 2, 6
OBSERVATION = jnp.asarray(np.random.default_rng(0).normal(size=(B, S)), jnp.float32)


def test_mixture_density_and_entropy_against_scipy() -> None:
    """The density integrates to one and the estimate of the entropy has the right mean, by quadrature."""
    density = BehaviourDensity(jax.random.PRNGKey(0), S, 1, (8, 8), 3)
    state = OBSERVATION[:1]
    logits, mean, log_std = (np.asarray(x, np.float64)[0, 0] for x in density.parameters(state))
    share = np.exp(logits) / np.exp(logits).sum()

    u = np.linspace(-8, 8, 8001)
    components = share * stats.norm.pdf(u[:, None], mean, np.exp(log_std))
    action = np.tanh(u)
    expected = components.sum(-1) / (1 - action**2)
    inside = np.abs(action) < 0.999
    found = jax.vmap(lambda a: density.log_prob(state, a[None, None])[0])(jnp.asarray(action[inside], jnp.float32))
    np.testing.assert_allclose(found, np.log(expected[inside]), atol=2e-2)
    exact = -np.trapezoid(components.sum(-1) * np.log(expected), u)
    draws = jax.vmap(lambda k: density.entropy(state, k)[0])(jax.random.split(jax.random.PRNGKey(1), 4000))
    assert float(draws.mean()) == pytest.approx(exact, abs=5 * float(draws.std()) / 4000**0.5)
