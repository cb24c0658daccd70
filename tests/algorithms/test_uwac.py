"""UWAC: dropout moments and trust."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy_reference import A, B, close, f64, gaussian, init, make_batch, pick, target_of, update

from sapp import UWAC
from sapp.algorithms.uwac import dropout_moments

SMALL = {"hidden": (16, 16), "vae_hidden": (16,), "next_actions": 3, "warm_steps": 5.0}


def raw_draws(actor, state, key, count: int) -> np.ndarray:
    mean, log_std = gaussian(actor, state)
    return mean[:, None] + np.exp(log_std)[:, None] * f64(jax.random.normal(key, (B, count, A)))


@pytest.mark.parametrize("passes", [6, 11, 22])
def test_dropout_moments_are_the_samples_mean_and_variance(passes: int) -> None:
    """In one group, in groups of one, in several groups of two."""
    algorithm = UWAC(**SMALL, passes=5)
    state = init(algorithm, 1)
    batch, key = make_batch(), jax.random.PRNGKey(7)
    mean, variance = dropout_moments(state.critics.network, batch.observation, batch.action, key, passes)
    samples = []
    for number in range(passes):
        keys = jax.random.split(jax.random.fold_in(key, number))
        samples.append(
            [pick(state.critics.network, i).dropout_sample(batch.observation, batch.action, keys[i]) for i in range(2)]
        )
    close(mean, np.mean(f64(samples), 0), 1e-4)
    close(variance, np.var(f64(samples), 0, ddof=1), 1e-4)
    assert np.all(np.asarray(variance) > 0)


def test_uwac_trusts_by_the_variance_inside_the_square() -> None:
    """One update with its target, weights and loss put together again from dropout samples."""
    algorithm = UWAC(**SMALL, passes=5, beta=4.0)
    batch, key = make_batch(), jax.random.PRNGKey(3)
    state = init(algorithm, 1)
    new, metrics = update(algorithm, state, batch, jnp.ones(B), key, 5)
    _, next_key, judge_key, critic_key, _ = jax.random.split(key, 5)
    # the online critics' power iteration moves first, the target's does not
    critics = jax.vmap(lambda critic: critic.iterate())(state.critics.network)
    next_action = jnp.tanh(
        jnp.asarray(raw_draws(state.actor.network, batch.next_observation, next_key, 3), jnp.float32)
    )
    mean, variance = dropout_moments(state.target_critics, batch.next_observation, next_action, judge_key, 5)
    following = np.max(0.75 * f64(mean).min(0) + 0.25 * f64(mean).max(0), -1)
    target = target_of(batch, following, 0.99)
    trust = np.clip(np.exp(-4.0 * f64(variance).sum(0).max(-1)), 0, 1)
    assert 0.0 < trust.min() < trust.max() < 1.0
    keys = jax.random.split(critic_key)
    values = f64([pick(critics, i)(batch.observation, batch.action, keys[i]) for i in range(2)])
    close(metrics["critic/trust"], trust.mean())
    close(metrics["critic/td"], np.mean((trust * (values - target)) ** 2))
    vae = f64(metrics["vae/error"]) + 0.5 * f64(metrics["vae/kl"])
    close(metrics["loss"], vae + 2 * f64(metrics["critic/td"]) + f64(metrics["actor/loss"]))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(new))


def test_uwac_acts_without_dropout() -> None:
    algorithm = UWAC(**SMALL, passes=5)
    state = init(algorithm, 1)
    observation = make_batch().observation
    first = np.asarray(algorithm.policy(state)(observation).mode())
    np.testing.assert_array_equal(first, algorithm.policy(state)(observation).mode())


def test_one_dropout_sample_varies_by_nothing() -> None:
    state, batch = init(UWAC(**SMALL, passes=5), 1), make_batch()
    _, variance = dropout_moments(state.critics.network, batch.observation, batch.action, jax.random.PRNGKey(7), 1)
    np.testing.assert_array_equal(variance, np.zeros((2, B)))


def test_the_actor_seeks_values_as_far_as_they_are_trusted_and_not_trust_itself() -> None:
    """Its gradient is that with the trust as given numbers."""
    algorithm = UWAC(**SMALL, passes=5, beta=4.0)
    state, batch, key = init(algorithm, 1), make_batch(), jax.random.PRNGKey(3)
    own_key, _, judge_key = jax.random.split(key, 3)
    critics, one = state.critics.network, jnp.float32(1.0)
    action = jnp.tanh(state.actor.network(batch.observation).draw_raw(own_key, algorithm.mmd_samples)[:, 0])
    values, trust = algorithm.judge(critics, batch.observation, action, judge_key)
    assert float(trust.max() - trust.min()) > 0.1

    class Given(UWAC):
        def judge(self, critics, state, action, key):
            return super().judge(critics, state, action, key)[0], trust

    def slope(algorithm: UWAC):
        def loss(actor):
            arguments = critics, state.vae.network, one, batch, jnp.zeros(B), one, key  # without the constraint
            return algorithm.actor_loss(actor, *arguments)

        return jax.jit(jax.grad(loss, has_aux=True))(state.actor.network)

    (found, metrics), (expected, _) = slope(algorithm), slope(Given(**SMALL, passes=5, beta=4.0))
    close(metrics["actor/value"], np.mean(f64(trust) * f64(values).min(0)))
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        close(mine, theirs)
    assert max(float(jnp.max(jnp.abs(leaf))) for leaf in jax.tree.leaves(found)) > 0.01
