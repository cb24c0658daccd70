from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from sapp.networks.categorical import Categorical, CategoricalActor, one_hot


def test_probabilities_modes_and_draws() -> None:
    logits = jnp.log(jnp.array([[0.2, 0.5, 0.3], [0.7, 0.2, 0.1]])) + jnp.array([[3.0], [-2.0]])
    distribution = Categorical(logits)
    np.testing.assert_allclose(distribution.probs, [[0.2, 0.5, 0.3], [0.7, 0.2, 0.1]], rtol=1e-5)
    assert distribution.mode().tolist() == [1, 0]
    np.testing.assert_allclose(distribution.log_prob(jnp.array([2, 1])), np.log([0.3, 0.2]), rtol=1e-5)
    action, log_prob = distribution.sample_many(jax.random.PRNGKey(0), 20_000)
    assert action.dtype == jnp.int32
    np.testing.assert_allclose(jnp.mean(one_hot(action, 3), 1), distribution.probs, atol=0.02)
    np.testing.assert_allclose(log_prob[0, :5], np.log([0.2, 0.5, 0.3])[np.asarray(action[0, :5])], rtol=1e-5)
    drawn, density = distribution.sample(jax.random.PRNGKey(1))
    np.testing.assert_allclose(density, distribution.log_prob(drawn))


def test_any_callable_makes_a_policy() -> None:
    actor = CategoricalActor(lambda state: state * 2.0, temperature=0.5)
    np.testing.assert_allclose(actor(jnp.array([[1.0, 0.0]])).logits, [[4.0, 0.0]])
    np.testing.assert_allclose(
        actor.log_prob(jnp.array([[1.0, 0.0]]), jnp.array([1])), [-np.log1p(np.exp(4.0))], rtol=1e-5
    )
