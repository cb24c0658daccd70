"""Policies as all but their training sees them: noise around an action, normalisation, the best of many."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from sapp.core.spec import Spec
from sapp.networks import (
    BestOf,
    ClippedGaussian,
    GaussianActor,
    MeanActor,
    NarrowGaussianActor,
    Normalised,
    Normaliser,
    best,
    make_critics,
)
from sapp.networks.mixture import BehaviourDensity

S, A, B = 4, 2, 6
SPEC = Spec(S, A, jnp.arange(4.0), jnp.full(4, 2.0))
OBSERVATION = jnp.asarray(np.random.default_rng(0).normal(size=(B, S)), jnp.float32)


def test_clipped_gaussian_against_scipy() -> None:
    mean = jnp.asarray([[0.0, 0.9]])
    distribution = ClippedGaussian(mean, jnp.float32(0.2), jnp.float32(0.5))
    action = jnp.asarray([[0.3, 0.7]])
    expected = stats.norm.logpdf(np.asarray(action), np.asarray(mean), 0.2).sum()
    assert float(distribution.log_prob(action)[0]) == pytest.approx(expected, rel=1e-5)
    draws, density = distribution.sample_many(jax.random.PRNGKey(0), 20000)
    draws = np.asarray(draws[0])
    np.testing.assert_allclose(
        density[0, :5], [float(distribution.log_prob(a[None])[0]) for a in jnp.asarray(draws[:5])], rtol=1e-4
    )
    assert draws.max() == 1.0
    assert np.mean(draws[:, 1] == 1.0) == pytest.approx(stats.norm.sf(0.5), abs=0.01)
    assert np.mean(draws[:, 0] == 0.5) == pytest.approx(stats.norm.sf(2.5), abs=0.003)
    one, _ = distribution.sample(jax.random.PRNGKey(1))
    assert one.shape == (1, A)
    np.testing.assert_array_equal(distribution.mode(), mean)


def test_mean_actor_has_one_deviation_for_all_states_within_its_bounds() -> None:
    import equinox as eqx

    actor = eqx.tree_at(lambda a: a.log_std, MeanActor(jax.random.PRNGKey(0), S, A, (8, 8)), jnp.asarray([-9.0, 0.5]))
    distribution = actor(OBSERVATION)
    np.testing.assert_allclose(distribution.std, np.exp([-5.0, 0.5]), rtol=1e-6)
    assert np.all(np.abs(distribution.mode()) < 1.0)


def test_narrow_actor_keeps_log_std_between_minus_five_and_zero() -> None:
    actor = NarrowGaussianActor(jax.random.PRNGKey(0), S, A, (8, 8))
    mean, raw = actor.actor.heads(100.0 * OBSERVATION)
    distribution = actor(100.0 * OBSERVATION)
    np.testing.assert_allclose(distribution.log_std, -5.0 + 2.5 * (np.tanh(raw) + 1.0), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(distribution.mean, mean)
    assert np.all((np.asarray(distribution.log_std) >= -5) & (np.asarray(distribution.log_std) <= 0))


def test_normalised_policy_takes_raw_observations() -> None:
    actor = GaussianActor(jax.random.PRNGKey(0), S, A, (8, 8))
    policy = Normalised(Normaliser.of(SPEC), actor)
    expected = actor((OBSERVATION - jnp.arange(4.0)) / 2.001).mode()
    np.testing.assert_allclose(policy(OBSERVATION).mode(), expected, rtol=1e-5, atol=1e-6)
    identity = Normalised(Normaliser.of(SPEC, on=False), actor)
    np.testing.assert_allclose(identity(OBSERVATION).mode(), actor(OBSERVATION).mode(), rtol=1e-6)


def test_best_of_plays_the_candidate_of_highest_first_value_whatever_the_batch() -> None:
    actor = GaussianActor(jax.random.PRNGKey(0), S, A, (8, 8))
    critics = make_critics(jax.random.PRNGKey(1), SPEC, 2, (8, 8), "float32")
    policy = BestOf(actor, critics, 20)
    mode = np.asarray(policy(OBSERVATION).mode())
    candidates = np.asarray(actor(OBSERVATION).candidates(20))
    first = jax.tree.map(lambda leaf: leaf[0], critics)
    for b in range(B):
        values = [float(first(OBSERVATION[b : b + 1], jnp.asarray(c)[None])[0]) for c in candidates[b]]
        np.testing.assert_allclose(mode[b], candidates[b][int(np.argmax(values))], rtol=1e-6)
    np.testing.assert_allclose(policy(OBSERVATION[2:3]).mode()[0], mode[2], rtol=1e-5)
    distribution = policy(OBSERVATION)
    np.testing.assert_array_equal(
        distribution.sample(jax.random.PRNGKey(0))[0], actor(OBSERVATION).sample(jax.random.PRNGKey(0))[0]
    )
    mode = distribution.mode()
    np.testing.assert_array_equal(distribution.log_prob(mode), actor(OBSERVATION).log_prob(mode))
    actions = jnp.arange(6.0).reshape(1, 3, 2)
    np.testing.assert_array_equal(best(actions, jnp.asarray([[0.0, 5.0, 1.0]])), [[2.0, 3.0]])


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
