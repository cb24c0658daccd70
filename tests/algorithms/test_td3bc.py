"""TD3's target and schedule, and TD3+BC's actor loss, against NumPy."""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_reference import SPEC, B, close, f64, first_step, init, make_batch, mlp, pick, q, update

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
