"""IQL's expectile, advantage weights, schedule and whole update, against NumPy and SciPy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_reference import B, close, f64, init, make_batch, mlp, q, target_of, update
from scipy import stats

from sapp import IQL, ConstantWeights, SappError
from sapp.algorithms.iql import cosine_decay, expectile_loss


class Constant:
    """A value network whose only parameter is its value everywhere."""

    def __init__(self, value):
        self.value = value

    def __call__(self, observation):
        return jnp.full((observation.shape[0], 1), self.value)


@pytest.mark.parametrize("tau", [0.5, 0.7, 0.9])
def test_the_minimiser_is_the_expectile(tau: float) -> None:
    """SciPy's expectile of the same numbers is where the loss has no slope."""
    targets = np.random.default_rng(0).normal(size=400)
    batch = make_batch()
    batch = type(batch)(jnp.zeros((400, 1)), *jax.tree.leaves(batch)[1:])

    def loss(value):
        return expectile_loss(Constant(value), batch, jnp.asarray(targets, jnp.float32), tau)[0]

    expected = stats.expectile(targets, tau)
    assert float(jax.grad(loss)(jnp.float32(expected))) == pytest.approx(0.0, abs=1e-4)
    assert float(loss(expected)) < min(float(loss(expected - 0.1)), float(loss(expected + 0.1)))


def test_one_update_against_numpy() -> None:
    # V moves far in one step, so that it shows which one is used, the old or the new
    algorithm = IQL(hidden=(16, 16), beta=3.0, value_lr=0.03, decay_steps=1000.0, reward_shift=-0.5)
    batch = make_batch()
    state, other = (init(algorithm, i) for i in (1, 2))
    state = type(state)(
        state.actor, state.critics, other.target_critics, state.value, state.normaliser, state.reward_scale
    )
    new, metrics = update(algorithm, state, batch, jnp.ones(B), jax.random.PRNGKey(0), 250)
    assert float(state.reward_scale) == pytest.approx(1000.0 / 250.0)
    logged = q(state.target_critics, batch.observation, batch.action).min(0)
    error = logged - mlp(state.value.network, f64(batch.observation))[:, 0]
    close(metrics["value/loss"], np.mean(np.where(error < 0, 0.3, 0.7) * error**2))

    advantage = logged - mlp(new.value.network, f64(batch.observation))[:, 0]  # the new V
    weight = np.minimum(np.exp(3.0 * advantage), 100.0)
    mean = np.tanh(mlp(state.actor.network.actor.mlp, f64(batch.observation)))
    density = stats.norm.logpdf(f64(batch.action), mean, np.exp(f64(state.actor.network.log_std))).sum(-1)
    close(metrics["actor/weight"], weight.mean())
    close(metrics["actor/loss"], -np.mean(weight * density))

    scaled = type(batch)(batch.observation, batch.action, 4.0 * batch.reward - 0.5, *jax.tree.leaves(batch)[3:])
    target = target_of(scaled, mlp(new.value.network, f64(batch.next_observation))[:, 0], 0.99)
    close(metrics["critic/td"], np.mean((q(state.critics.network, batch.observation, batch.action) - target) ** 2))
    close(metrics["loss"], sum(f64(metrics[name]) for name in ("value/loss", "actor/loss")) + 2 * metrics["critic/td"])
    # Adam's first step has the length of the learning rate: 3e-4·½(1 + cos(π/4))
    step = np.abs(np.asarray(new.actor.network.log_std - state.actor.network.log_std))
    np.testing.assert_allclose(step, 3e-4 * 0.5 * (1 + np.cos(np.pi / 4)), rtol=1e-3)


def test_the_learning_rate_falls_along_a_cosine_and_stays_at_zero() -> None:
    np.testing.assert_allclose([cosine_decay(s, 100.0) for s in (0, 50, 100, 300)], [1.0, 0.5, 0.0, 0.0], atol=1e-6)


def test_advantage_weights_are_capped() -> None:
    algorithm = IQL(hidden=(16, 16), beta=1e4)
    state = init(algorithm, 0)
    _, metrics = update(algorithm, state, make_batch(), jnp.ones(B), jax.random.PRNGKey(0), 0)
    assert 0.0 <= float(metrics["actor/weight"]) <= 100.0


def test_state_weights_are_refused() -> None:
    with pytest.raises(SappError, match="IQL takes no state weights"):
        IQL(weights=ConstantWeights(0.5))


@pytest.mark.parametrize("shift", [-1.0, 0.5])
def test_a_step_adds_at_most_the_reward_scaled_and_the_size_of_its_shift(shift: float) -> None:
    found = IQL(reward_shift=shift).largest_target(2.0, 3, {"critic/reward_scale": 10.0})
    assert found == max(abs(10.0 * reward + sign * shift) for reward in (-2.0, 2.0) for sign in (-1, 1))
    assert IQL(reward_shift=0.0).largest_target(2.0, 3, {}) == 2.0
