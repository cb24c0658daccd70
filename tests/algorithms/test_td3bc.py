"""TD3's target and schedule, and TD3+BC's actor loss, against NumPy."""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_reference import SPEC, A, B, S, close, f64, first_step, init, make_batch, mlp, pick, q, target_of, update

from sapp import TD3BC, SappError
from sapp.algorithms.td3 import TD3

ALGORITHM = TD3BC(hidden=(16, 16), alpha=2.5)
WEIGHTS = np.linspace(0.0, 2.0, B)


@pytest.fixture(scope="module")
def updated():
    batch, key = make_batch(), jax.random.PRNGKey(3)
    # targets apart from the networks, as they are in training
    state, other = (init(ALGORITHM, i) for i in (1, 2))
    state = type(state)(state.actor, state.critics, other.target_actor, other.target_critics, state.normaliser)
    step = functools.partial(update, ALGORITHM)
    weights = jnp.asarray(WEIGHTS, jnp.float32)
    return batch, key, state, step(state, batch, weights, key, 0), step(state, batch, weights, key, 1)


def normal(observation) -> np.ndarray:
    return (f64(observation) - f64(SPEC.observation_mean)) / (f64(SPEC.observation_std) + 1e-3)


def actor(network, observation) -> np.ndarray:
    return np.tanh(mlp(network.mlp, normal(observation)))


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
    assert float(loud["actor/loss"]) != 0.0
    for name, online in (("target_actor", second.actor.network), ("target_critics", second.critics.network)):
        trees = getattr(state, name), online, getattr(second, name)
        for old, fresh, moved in zip(*map(jax.tree.leaves, trees), strict=True):
            np.testing.assert_allclose(moved, 0.995 * old + 0.005 * fresh, rtol=1e-5, atol=1e-7)


def test_actor_loss_is_the_weighted_penalty_minus_scaled_value(updated) -> None:
    batch, _, state, _, (second, metrics) = updated
    action = actor(state.actor.network, batch.observation)
    value = q(second.critics.network, normal(batch.observation), action)[0]  # Q₁ alone, after the critics' step
    scale = 2.5 / np.abs(value).mean()
    penalty = np.mean((action - f64(batch.action)) ** 2, -1)
    # what is logged is twice the loss at every second step, so that means over steps are right
    close(metrics["actor/loss"] / 2, np.mean(WEIGHTS * penalty) - scale * value.mean())
    close(metrics["actor/penalty"] / 2, penalty.mean())

    def loss(network):
        moved = jnp.tanh(network.mlp(jnp.asarray(normal(batch.observation), jnp.float32)))
        first = pick(second.critics.network, 0)
        score = first(jnp.asarray(normal(batch.observation), jnp.float32), moved)
        distance = jnp.mean((moved - batch.action) ** 2, -1)
        return jnp.mean(jnp.asarray(WEIGHTS, jnp.float32) * distance) - jnp.float32(scale) * jnp.mean(score)

    first_step(state.actor.network, second.actor.network, jax.grad(loss)(state.actor.network), 3e-4)


def test_the_scale_is_the_mean_size_of_values_not_the_size_of_their_mean(updated) -> None:
    """Values of either sign, whose mean is 0."""
    batch, _, state, *_ = updated
    network, critics = state.actor.network, state.critics.network
    value = q(critics, normal(batch.observation), actor(network, batch.observation))[0]
    shift = jnp.array([[value.mean()], [0.0]], jnp.float32)
    centred = eqx.tree_at(lambda c: c.mlp.layers[-1].bias, critics, critics.mlp.layers[-1].bias - shift)
    ones = jnp.ones(len(value))
    _, metrics = ALGORITHM.actor_loss(network, centred, state.normaliser.batch(batch), ones)
    close(metrics["actor/scale"], 2.5 / np.abs(value - value.mean()).mean())


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


def test_bad_settings_are_named() -> None:
    for change, words in (
        ({"alpha": -1.0}, "TD3BC: alpha is -1"),
        ({"period": 0}, "period is 0"),
        ({"hidden": ()}, "hidden"),
    ):
        with pytest.raises(SappError, match=words):
            TD3BC(**change)
    with pytest.raises(TypeError, match="must define actor_loss"):
        TD3().actor_loss(None, None, None, None)
