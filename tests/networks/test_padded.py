"""Tasks of different sizes in one population: padding changes nothing."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_sac import ACTIONS, OBSERVATIONS, ROWS, SETTINGS, batch, spec

from sapp.algorithms.sac import SAC
from sapp.core.spec import Batch
from sapp.networks.padded import PaddedActor, Padding


def test_padding_changes_nothing_for_the_task() -> None:
    """A padded member, given the same weights and noise, learns what an unpadded one learns; padding stays unused."""
    padded = SAC(**SETTINGS, hidden=(16, 16), padding=Padding.of(OBSERVATIONS, ACTIONS, 8, 5))
    state = padded.init(jax.random.PRNGKey(3), spec(8, 5))
    # first layers start within ±1/√(real inputs)
    assert float(jnp.abs(state.actor.trunk.layers[0].weight).max()) == pytest.approx(OBSERVATIONS**-0.5, rel=0.05)
    bound = (OBSERVATIONS + ACTIONS) ** -0.5
    assert float(jnp.abs(state.critics.mlp.layers[0].weight).max()) == pytest.approx(bound, rel=0.05)

    def widen(rows: Batch) -> Batch:
        observation, following = (jnp.pad(x, ((0, 0), (0, 3))) for x in (rows.observation, rows.next_observation))
        action = jnp.pad(rows.action, ((0, 0), (0, 2)))
        return replace(rows, observation=observation, action=action, next_observation=following)

    wide = [widen(batch(number)) for number in range(3)]
    after, update = state, jax.jit(lambda *arguments: padded.update(*arguments))
    for number, rows in enumerate(wide):
        after, _ = update(after, rows, jnp.ones(ROWS), jax.random.PRNGKey(100 + number))
    head = after.actor.mean.weight - state.actor.mean.weight
    assert float(jnp.abs(head[:, :ACTIONS]).max()) > 1e-3
    np.testing.assert_array_equal(head[:, ACTIONS:], 0.0)
    for old, new, real in (
        (state.actor.trunk.layers[0].weight, after.actor.trunk.layers[0].weight, OBSERVATIONS),
        (state.critics.mlp.layers[0].weight[0, 8:], after.critics.mlp.layers[0].weight[0, 8:], ACTIONS),
    ):
        assert float(jnp.abs(new - old)[:real].max()) > 1e-3
        np.testing.assert_array_equal((new - old)[real:], 0.0)


def test_a_padded_sample_is_the_plain_one_on_real_dimensions() -> None:
    sac = SAC(hidden=(16, 16))
    actor = sac.init(jax.random.PRNGKey(4), spec()).actor
    real = jnp.asarray([1.0, 1.0, 0.0])
    observation, key = batch().observation, jax.random.PRNGKey(5)
    action, log_prob = PaddedActor(actor, real)(observation).sample(key)
    full, _ = actor(observation).sample(key)
    np.testing.assert_allclose(action, full * real, rtol=1e-6)
    np.testing.assert_array_equal(action[:, 2], 0.0)
    # the density of the first two dimensions, by the plain distribution of the same mean and deviation
    distribution = actor(observation)
    cut = type(distribution)(distribution.mean[:, :2], distribution.log_std[:, :2])
    np.testing.assert_allclose(log_prob, cut.log_prob(full[:, :2]), rtol=1e-3, atol=1e-3)
