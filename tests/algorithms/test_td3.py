"""TD3 on logged data: smoothed double targets, delayed actor."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_reference import A, B, S, close, f64, first_step, init, mlp, q, target_of
from test_td3bc import ALGORITHM, actor, normal
from test_td3bc import updated as updated

from sapp import TD3BC


def test_critics_learn_the_smoothed_clipped_double_target(updated) -> None:
    batch, key, state, (new, metrics), _ = updated
    noise = np.clip(0.2 * f64(jax.random.normal(key, (B, A))), -0.5, 0.5)
    next_action = np.clip(actor(state.target_actor, batch.next_observation) + noise, -1, 1)
    following = q(state.target_critics, normal(batch.next_observation), next_action).min(0)
    target = target_of(batch, following, 0.99)
    values = q(state.critics.network, normal(batch.observation), batch.action)
    close(metrics["critic/td"], np.mean((values - target) ** 2))
    close(metrics["critic/target"], target.mean())

    def loss(critics):
        scores = jax.vmap(lambda c: c(jnp.asarray(normal(batch.observation), jnp.float32), batch.action))(critics)
        return jnp.sum(jnp.mean((scores - jnp.asarray(target, jnp.float32)) ** 2, -1))

    first_step(state.critics.network, new.critics.network, jax.grad(loss)(state.critics.network), 3e-4)


def test_actor_and_targets_move_at_every_second_step_only(updated) -> None:
    _, _, state, (first, quiet), (second, loud) = updated
    for name in ("actor", "target_actor", "target_critics"):
        for old, same in zip(*(jax.tree.leaves(getattr(x, name)) for x in (state, first)), strict=True):
            np.testing.assert_array_equal(old, same)
    assert float(quiet["actor/loss"]) == 0.0
    assert abs(float(loud["actor/loss"])) > 0.1
    for logged in (quiet, loud):  # of both critics, and of the actor
        close(logged["loss"], 2 * logged["critic/td"] + logged["actor/loss"])
    for name, online in (("target_actor", second.actor.network), ("target_critics", second.critics.network)):
        trees = getattr(state, name), online, getattr(second, name)
        for old, fresh, moved in zip(*map(jax.tree.leaves, trees), strict=True):
            np.testing.assert_allclose(moved, 0.995 * old + 0.005 * fresh, rtol=1e-5, atol=1e-7)


def test_policy_normalises_by_itself_and_draws_what_the_target_draws(updated) -> None:
    batch, _, state, *_ = updated
    distribution = ALGORITHM.policy(state)(batch.observation)
    close(distribution.mode(), actor(state.actor.network, batch.observation))
    draws = f64(distribution.sample_many(jax.random.PRNGKey(0), 2000)[0])
    away = draws - f64(distribution.mode())[:, None]
    assert np.abs(draws).max() <= 1.0
    assert np.abs(away).max() <= 0.5 + 1e-6
    inside = np.broadcast_to(np.abs(f64(distribution.mode()))[:, None] < 0.4, away.shape)
    assert np.std(away[inside]) == pytest.approx(0.2, abs=0.01)


def test_without_normalisation_observations_are_taken_as_they_are() -> None:
    plain = TD3BC(hidden=(16, 16), normalise=False)
    state = init(plain, 0)
    observation = jnp.ones((2, S))
    close(plain.policy(state)(observation).mode(), np.tanh(mlp(state.actor.network.mlp, np.ones((2, S)))))
