"""Networks that score all actions at once: heads, features, and what they refuse."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.core.spec import Spec
from sapp.networks.action_scores import MLPScores, split_heads


def test_heads_of_an_action_lie_side_by_side() -> None:
    np.testing.assert_array_equal(split_heads(jnp.arange(6.0)[None], 2), [[[0, 1], [2, 3], [4, 5]]])


def test_scores_are_the_mean_over_heads_of_standardised_states() -> None:
    spec = Spec(4, 3, jnp.full(4, 2.0), jnp.full(4, 0.5), True)
    network = MLPScores((8,)).build(jax.random.PRNGKey(0), spec, heads=5)
    state = jnp.asarray(np.random.default_rng(0).normal(size=(7, 4)), jnp.float32)
    many = network.many(state)
    assert many.shape == (7, 3, 5)
    np.testing.assert_allclose(network(state), many.mean(-1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(many.reshape(7, 15), network.network((state - 2.0) / 0.5), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(network.head(network.features(state)), network(state))


def test_statistics_take_no_gradient() -> None:
    network = MLPScores((8,)).build(jax.random.PRNGKey(0), Spec(2, 2, jnp.ones(2), jnp.ones(2), True))
    gradient = jax.grad(lambda n: jnp.sum(n(jnp.ones((3, 2)))))(network)
    assert not np.any(gradient.mean)
    assert not np.any(gradient.std)


def test_frames_and_empty_networks_are_refused() -> None:
    with pytest.raises(SappError, match=r"the observations are frames; use network=ConvScores\(\)"):
        MLPScores().build(jax.random.PRNGKey(0), Spec.of_frames((4, 8, 8), 3))
    with pytest.raises(SappError, match="name at least one layer"):
        MLPScores(())
