"""Networks that score all actions at once: heads, features, and what they refuse."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.core.spec import Spec
from sapp.networks import ConvScores
from sapp.networks.action_scores import IMPOSSIBLE, MLPScores, split_heads


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


@pytest.mark.parametrize("heads", [1, 4])
def test_what_a_mask_rules_out_has_no_score_whatever_the_head_unless_it_rules_out_all(heads: int) -> None:
    """The observation's last three numbers say which of three actions are possible."""
    spec = Spec(5, 3, jnp.zeros(5), jnp.ones(5), True, mask_at=2)
    network = MLPScores((8,)).build(jax.random.PRNGKey(0), spec, heads)
    possible = np.array([[1, 1, 1], [1, 0, 1], [0, 0, 1], [0, 0, 0]], np.float32)
    state = jnp.asarray(np.concatenate([np.random.default_rng(0).normal(size=(4, 2)), possible], 1), jnp.float32)
    many = np.asarray(network.many(state))
    assert many.shape == (4, 3, heads)
    kept = (possible > 0) | (possible.sum(1, keepdims=True) == 0)
    plain = np.asarray(split_heads(network.network(state), heads))
    np.testing.assert_array_equal(many, np.where(kept[..., None], plain, IMPOSSIBLE))
    np.testing.assert_array_equal(np.asarray(network(state)) < -1e8, ~kept)


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


def test_a_networks_structure_has_no_leaves_and_a_network_has_numbers_alone() -> None:
    assert jax.tree.leaves((MLPScores((8,)), ConvScores())) == []
    network = MLPScores((8,)).build(jax.random.PRNGKey(0), Spec(4, 3, jnp.zeros(4), jnp.ones(4), True, mask_at=1), 5)
    assert [leaf.shape for leaf in jax.tree.leaves(network)] == [(4, 8), (8,), (8, 15), (15,), (4,), (4,)]
