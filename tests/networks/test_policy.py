"""Policies as all but their training sees them: noise around an action, normalisation, the best of many."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from sapp.core.spec import Spec
from sapp.networks import (
    BestOf,
    GaussianActor,
    NarrowGaussianActor,
    Normalised,
    Normaliser,
    best,
    make_critics,
)

S, A, B = 4, 2, 6
SPEC = Spec(S, A, jnp.arange(4.0), jnp.full(4, 2.0))
OBSERVATION = jnp.asarray(np.random.default_rng(0).normal(size=(B, S)), jnp.float32)


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
