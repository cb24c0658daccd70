"""The tanh-Gaussian and the behaviour mixture against SciPy in float64."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

from sapp.networks import BehaviourDensity, GaussianActor, TanhGaussian
from sapp.networks.gaussian import ACTION_LIMIT, LOG_STD_MAX, LOG_STD_MIN, log_tanh_derivative, unsquash


@eqx.filter_jit
def build(kind: type, *arguments: object, **options: object) -> object:
    """A network, made in one compiled program (eager JAX compiles every draw of every shape apart)."""
    return kind(*arguments, **options)


@jax.jit
def log_prob(distribution: TanhGaussian | BehaviourDensity, *arguments: jax.Array) -> jax.Array:
    return distribution.log_prob(*arguments)


def scipy_log_density(u: np.ndarray, mean: np.ndarray, log_std: np.ndarray) -> np.ndarray:
    """Elementwise log-density of tanh(u): the normal's, minus log(1 − tanh²u) = −2 log cosh u, in float64."""
    u = np.asarray(u, np.float64)
    log_cosh = np.logaddexp(u, -u) - np.log(2.0)
    return norm.logpdf(u, np.asarray(mean, np.float64), np.exp(np.asarray(log_std, np.float64))) + 2.0 * log_cosh


@pytest.fixture(scope="module")
def distribution() -> TanhGaussian:
    rng = np.random.default_rng(0)
    mean, log_std = rng.normal(0, 0.6, (200, 3)), rng.uniform(-2.0, 0.0, (200, 3))
    return TanhGaussian(jnp.asarray(mean, jnp.float32), jnp.asarray(log_std, jnp.float32))


@pytest.mark.parametrize("u", [-80.0, -20.0, -9.0, -1.0, -1e-4, 0.0, 0.3, 5.0, 20.0, 80.0])
def test_log_tanh_derivative_is_stable_at_extreme_values(u: float) -> None:
    exact = -2.0 * (np.logaddexp(u, -u) - np.log(2.0))
    assert float(log_tanh_derivative(jnp.float32(u))) == pytest.approx(exact, rel=1e-6, abs=1e-6)


def test_log_prob_matches_scipy_with_change_of_variables(distribution: TanhGaussian) -> None:
    rng = np.random.default_rng(1)
    action = np.tanh(rng.normal(0, 1.2, (200, 3))).astype(np.float32)
    expected = scipy_log_density(np.arctanh(action.astype(np.float64)), distribution.mean, distribution.log_std).sum(-1)
    np.testing.assert_allclose(log_prob(distribution, jnp.asarray(action)), expected, rtol=2e-4, atol=2e-4)


def test_log_prob_of_actions_on_the_bounds_is_finite_and_that_of_the_limit() -> None:
    distribution = TanhGaussian(jnp.zeros((2, 1)), jnp.zeros((2, 1)))
    edge = log_prob(distribution, jnp.asarray([[1.0], [-1.0]]))
    limit = np.arctanh(float(np.float32(ACTION_LIMIT)))
    np.testing.assert_allclose(edge, scipy_log_density(np.array([limit, -limit]), 0.0, 0.0), rtol=5e-3)


@pytest.mark.parametrize(("mean", "log_std"), [(8.0, -1.0), (-8.0, 1.5), (0.0, 2.0), (0.5, -5.0)])
def test_sampled_log_density_matches_scipy_at_extreme_u(mean: float, log_std: float) -> None:
    """Where tanh saturates in float32 the sampled action no longer tells u; the density must come from u itself."""
    distribution = TanhGaussian(jnp.full((500, 1), mean), jnp.full((500, 1), log_std))
    key = jax.random.PRNGKey(3)
    _, density = jax.jit(TanhGaussian.sample)(distribution, key)
    u = mean + np.exp(log_std) * np.asarray(jax.random.normal(key, (500, 1)), np.float64)
    np.testing.assert_allclose(density, scipy_log_density(u, mean, log_std)[:, 0], rtol=1e-4, atol=1e-4)


def test_sample_log_prob_equals_log_prob_of_the_action(distribution: TanhGaussian) -> None:
    action, density = distribution.sample(jax.random.PRNGKey(0))
    near = np.abs(np.asarray(action)).max(-1) < 0.999
    assert near.mean() > 0.9
    np.testing.assert_allclose(density[near], log_prob(distribution, action)[near], atol=2e-3)


def test_sample_many_has_the_distribution_of_sample(distribution: TanhGaussian) -> None:
    actions, densities = distribution.sample_many(jax.random.PRNGKey(5), 4)
    assert actions.shape == (200, 4, 3)
    assert densities.shape == (200, 4)
    for k in range(4):
        near = np.abs(np.asarray(actions[:, k])).max(-1) < 0.999
        np.testing.assert_allclose(densities[near, k], log_prob(distribution, actions[:, k])[near], atol=2e-3)
    # u standardised by the distribution's own mean and std is standard normal: moments over 2400 draws
    u = np.arctanh(np.clip(np.asarray(actions, np.float64), -0.9999, 0.9999))
    z = (u - np.asarray(distribution.mean)[:, None]) / np.exp(np.asarray(distribution.log_std)[:, None])
    assert abs(np.mean(z)) < 4 / np.sqrt(z.size)
    assert np.std(z) == pytest.approx(1.0, abs=0.06)
    assert abs(np.corrcoef(z[:, 0].ravel(), z[:, 1].ravel())[0, 1]) < 0.15  # the K draws differ


@pytest.mark.parametrize(("mean", "log_std"), [(0.0, 0.0), (0.7, -1.0), (-1.0, 0.3), (0.0, -2.5)])
def test_density_integrates_to_one(mean: float, log_std: float) -> None:
    """Quadrature over a = tanh(u) with nodes equidistant in u, so that mass near ±1 is resolved."""
    u = np.linspace(-6.5, 6.5, 40_001)
    action = np.tanh(u)
    distribution = TanhGaussian(jnp.full((len(u), 1), mean), jnp.full((len(u), 1), log_std))
    density = np.exp(np.asarray(log_prob(distribution, jnp.asarray(action[:, None], jnp.float32)), np.float64))
    assert np.trapezoid(density, action) == pytest.approx(1.0, abs=2e-3)


def test_mode_is_tanh_of_the_mean(distribution: TanhGaussian) -> None:
    np.testing.assert_allclose(distribution.mode(), np.tanh(np.asarray(distribution.mean, np.float64)), rtol=1e-6)


def test_unsquash_inverts_tanh() -> None:
    u = np.linspace(-4, 4, 81)
    np.testing.assert_allclose(unsquash(jnp.asarray(np.tanh(u), jnp.float32)), u, rtol=1e-3, atol=1e-5)


def test_actor_heads_against_numpy_and_log_std_bounds() -> None:
    actor = build(GaussianActor, jax.random.PRNGKey(1), 4, 2, (16, 8))
    state = np.random.default_rng(0).normal(size=(32, 4))
    x = state
    for layer in actor.trunk.layers:
        x = np.maximum(x @ np.asarray(layer.weight, np.float64) + np.asarray(layer.bias, np.float64), 0.0)
    mean = x @ np.asarray(actor.mean.weight, np.float64) + np.asarray(actor.mean.bias, np.float64)
    log_std = x @ np.asarray(actor.log_std.weight, np.float64) + np.asarray(actor.log_std.bias, np.float64)
    distribution = actor(jnp.asarray(state, jnp.float32))
    np.testing.assert_allclose(distribution.mean, mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(distribution.log_std, log_std, rtol=1e-5, atol=1e-6)
    for bias, bound in ((100.0, LOG_STD_MAX), (-100.0, LOG_STD_MIN)):
        pushed = eqx.tree_at(lambda a: a.log_std.bias, actor, jnp.full(2, bias))
        assert np.all(np.asarray(pushed(jnp.asarray(state, jnp.float32)).log_std) == bound)


def test_reparameterised_gradient_reaches_mean_and_std() -> None:
    def total(distribution: TanhGaussian) -> jax.Array:
        return jnp.sum(distribution.sample(jax.random.PRNGKey(0))[0])

    gradient = jax.grad(total)(TanhGaussian(jnp.zeros((8, 1)), jnp.zeros((8, 1))))
    noise = np.asarray(jax.random.normal(jax.random.PRNGKey(0), (8, 1)), np.float64)
    slope = 1 - np.tanh(noise) ** 2  # d tanh(m + σε)/dm, and times ε for d/d log σ at σ = 1
    np.testing.assert_allclose(gradient.mean, slope, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(gradient.log_std, slope * noise, rtol=1e-4, atol=1e-6)
