"""CQL(H)'s losses against brute force, its scales and its limits."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp import CQL, SappError
from sapp.algorithms.actor_critic import actor_loss, bootstrap_target, temperature_loss
from sapp.algorithms.cql import ALPHA_SCALES, _parts, critic_gradient, critic_loss, propose
from sapp.core.spec import Batch, Spec
from sapp.networks import ensemble

S, A, B, N = 5, 3, 16, 10
SPEC = Spec(S, A, jnp.zeros(S), jnp.ones(S))


@pytest.fixture(scope="module")
def batch() -> Batch:
    rng = np.random.default_rng(0)
    return Batch(
        *(
            jnp.asarray(x, jnp.float32)
            for x in (
                rng.normal(size=(B, S)), np.tanh(rng.normal(size=(B, A))), rng.normal(size=B), rng.normal(size=(B, S)),
                rng.random(B) < 0.3, rng.normal(size=(B, S)),
            )
        )
    )  # fmt: skip


def numpy_critic(state, index: int, observation: np.ndarray, action: np.ndarray) -> float:
    """Q_i(s, a) of one pair, layer by layer in float64."""
    x = np.concatenate([observation, action]).astype(np.float64)
    layers = state.critics.mlp.layers
    for layer in layers[:-1]:
        x = np.maximum(x @ np.asarray(layer.weight[index], np.float64) + np.asarray(layer.bias[index]), 0.0)
    return float((x @ np.asarray(layers[-1].weight[index], np.float64) + np.asarray(layers[-1].bias[index]))[0])


def numpy_gaussian(state, observation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x = observation.astype(np.float64)
    for layer in state.actor.trunk.layers:
        x = np.maximum(x @ np.asarray(layer.weight, np.float64) + np.asarray(layer.bias), 0.0)
    mean = x @ np.asarray(state.actor.mean.weight, np.float64) + np.asarray(state.actor.mean.bias)
    log_std = x @ np.asarray(state.actor.log_std.weight, np.float64) + np.asarray(state.actor.log_std.bias)
    return mean, np.clip(log_std, -20, 2)


def numpy_log_density(action: np.ndarray, mean: np.ndarray, log_std: np.ndarray) -> float:
    u = np.arctanh(action.astype(np.float64))
    normal = -0.5 * ((u - mean) / np.exp(log_std)) ** 2 - log_std - 0.5 * np.log(2 * np.pi)
    return float(np.sum(normal - np.log(1 - action.astype(np.float64) ** 2)))


def test_conservative_term_equals_brute_force(batch: Batch) -> None:
    """Thirty actions, each with the density of the distribution it was drawn from, one loop at a time in float64."""
    algorithm = CQL(hidden=(16, 16, 16))
    state = algorithm.init(jax.random.PRNGKey(1), SPEC)
    here_key, there_key, uniform_key = jax.random.split(jax.random.PRNGKey(2), 3)
    here = state.actor(batch.observation).sample_many(here_key, N)
    there = state.actor(batch.next_observation).sample_many(there_key, N)
    proposals = propose(here, there, uniform_key)
    weights = jnp.linspace(0.0, 2.0, B)
    target = jnp.linspace(-1.0, 1.0, B)
    loss, metrics = critic_loss(state.critics, batch, target, proposals, weights, jnp.float32(2.5))

    assert proposals[0].shape == (B, 3 * N, A)
    observation, following = np.asarray(batch.observation), np.asarray(batch.next_observation)
    actions = np.asarray(proposals[0], np.float64)
    expected, penalties = 0.0, []
    for i in range(2):
        squares, weighted = [], []
        for b in range(B):
            terms = []
            for k in range(3 * N):
                q = numpy_critic(state, i, observation[b], actions[b, k])
                if k < N:
                    density = numpy_log_density(actions[b, k], *numpy_gaussian(state, observation[b]))
                elif k < 2 * N:  # drawn at s', scored at s, corrected with its density at s'
                    density = numpy_log_density(actions[b, k], *numpy_gaussian(state, following[b]))
                else:
                    density = A * np.log(0.5)
                terms.append(q - density)
            q_data = numpy_critic(state, i, observation[b], np.asarray(batch.action[b]))
            penalties.append(np.log(np.sum(np.exp(terms))) - q_data)
            weighted.append(float(weights[b]) * penalties[-1])
            squares.append((q_data - float(target[b])) ** 2)
        expected += np.mean(squares) + 2.5 * np.mean(weighted)
    assert float(metrics["critic/penalty"]) == pytest.approx(np.mean(penalties), rel=1e-4)
    assert float(loss) == pytest.approx(expected, rel=1e-4)


def test_uniform_proposals_cover_the_whole_cube(batch: Batch) -> None:
    """Elsewhere they were once drawn from [0, 1]."""
    zero = (jnp.zeros((2000, N, A)), jnp.zeros((2000, N)))
    uniform = np.asarray(propose(zero, zero, jax.random.PRNGKey(0))[0][:, 2 * N :])
    assert uniform.min() < -0.99
    assert uniform.max() > 0.99
    assert abs(uniform.mean()) < 0.01


def test_proposals_carry_no_gradient(batch: Batch) -> None:
    state = CQL(hidden=(8, 8)).init(jax.random.PRNGKey(0), SPEC)

    def total(actor):
        drawn = actor(batch.observation).sample_many(jax.random.PRNGKey(1), N)
        actions, densities = propose(drawn, drawn, jax.random.PRNGKey(2))
        return actions.sum() + densities.sum()

    assert all(not np.any(np.asarray(leaf)) for leaf in jax.tree.leaves(jax.grad(total)(state.actor)))


def test_target_stops_at_terminals_only(batch: Batch) -> None:
    next_value = jnp.arange(B, dtype=jnp.float32)
    target = bootstrap_target(batch, next_value, 0.9)
    expected = np.asarray(batch.reward) + 0.9 * (1 - np.asarray(batch.terminal)) * np.arange(B)
    np.testing.assert_allclose(target, expected, rtol=1e-6)


def test_update_matches_its_parts_taken_one_by_one(batch: Batch) -> None:
    """One whole update equals the published order: temperature, critics, actor with the new critics, targets."""
    algorithm = CQL(hidden=(16, 16), alpha=3.0)
    state = algorithm.init(jax.random.PRNGKey(3), SPEC)
    key = jax.random.PRNGKey(4)
    new, metrics = algorithm.update(state, batch, jnp.ones(B), key)
    here_key, next_key, uniform_key, actor_key, _ = jax.random.split(key, 5)
    here, there = state.actor(batch.observation), state.actor(batch.next_observation)
    drawn = here.sample_many(here_key, N)
    gradient = jax.grad(temperature_loss)(state.log_temperature, drawn[1][:, 0], -float(A))
    # Adam's first step is lr·sign(gradient)
    assert float(new.log_temperature) == pytest.approx(-1e-4 * np.sign(float(gradient)), rel=1e-3)
    target = bootstrap_target(batch, ensemble(state.targets, batch.next_observation, jnp.tanh(there.mean)).min(0), 0.99)
    proposals = propose(drawn, there.sample_many(next_key, N), uniform_key)
    (loss, _), gradient = jax.value_and_grad(critic_loss, has_aux=True)(
        state.critics, batch, target, proposals, jnp.ones(B), jnp.float32(1.5)
    )
    assert float(metrics["critic/loss"]) == pytest.approx(float(loss), rel=1e-5)
    for before, after, slope in zip(*map(jax.tree.leaves, (state.critics, new.critics, gradient)), strict=True):
        large = np.abs(np.asarray(slope)) > 1e-5
        np.testing.assert_allclose((after - before)[large], -3e-4 * np.sign(slope)[large], rtol=1e-2)
    expected, _ = actor_loss(state.actor, new.critics, jnp.exp(new.log_temperature), batch, actor_key)
    assert float(metrics["actor/loss"]) == pytest.approx(float(expected), rel=1e-5)
    for old, online, target_leaf in zip(*map(jax.tree.leaves, (state.targets, new.critics, new.targets)), strict=True):
        np.testing.assert_allclose(target_leaf, 0.995 * old + 0.005 * online, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("scale", "factor"), ALPHA_SCALES.items())
def test_alpha_scales(batch: Batch, scale: str, factor: float) -> None:
    """Per critic: MSE + α/2 (d3rlpy v1), + α (original), + 2α (the printed ½TD)."""
    algorithm = CQL(hidden=(8, 8), alpha=4.0, alpha_scale=scale)
    state = algorithm.init(jax.random.PRNGKey(0), SPEC)
    _, metrics = algorithm.update(state, batch, jnp.ones(B), jax.random.PRNGKey(1))
    expected = 2 * metrics["critic/td"] + factor * 4.0 * 2 * metrics["critic/weighted_penalty"]
    assert float(metrics["critic/loss"]) == pytest.approx(float(expected), rel=1e-5)


def test_gradient_in_parts_is_the_gradient() -> None:
    """On processors the critics' gradient is the mean over parts of the batch: 96 states make three."""
    rng = np.random.default_rng(1)
    count = 96
    shapes = ((count, S), (count, A), (count,), (count, S), (count,), (count, S))
    large = Batch(*(jnp.asarray(np.tanh(rng.normal(size=shape)), jnp.float32) for shape in shapes))
    state = CQL(hidden=(16, 16)).init(jax.random.PRNGKey(0), SPEC)
    drawn = state.actor(large.observation).sample_many(jax.random.PRNGKey(1), N)
    proposals = propose(drawn, drawn, jax.random.PRNGKey(2))
    arguments = (state.critics, large, large.reward, proposals, jnp.linspace(0, 2, count), jnp.float32(2.5))
    assert _parts(count) == 3
    (loss, metrics), gradient = critic_gradient(*arguments)
    (whole_loss, whole_metrics), whole = jax.value_and_grad(critic_loss, has_aux=True)(*arguments)
    assert float(loss) == pytest.approx(float(whole_loss), rel=1e-5)
    for name, value in whole_metrics.items():
        assert float(metrics[name]) == pytest.approx(float(value), rel=1e-4), name
    for part, expected in zip(jax.tree.leaves(gradient), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-3, atol=1e-6)


def test_soft_backup_without_penalty_is_sac(batch: Batch) -> None:
    """α = 0, backup soft: the critic's loss is SAC's, computed here from scratch."""
    algorithm = CQL(hidden=(8, 8), alpha=0.0, backup="soft", initial_temperature=0.3)
    state = algorithm.init(jax.random.PRNGKey(0), SPEC)
    key = jax.random.PRNGKey(9)
    new, metrics = algorithm.update(state, batch, jnp.ones(B), key)
    action, log_prob = state.actor(batch.next_observation).sample(jax.random.split(key, 5)[4])
    value = np.min(ensemble(state.targets, batch.next_observation, action), 0) - np.exp(new.log_temperature) * log_prob
    target = batch.reward + 0.99 * (1 - batch.terminal) * value
    q = ensemble(state.critics, batch.observation, batch.action)
    assert float(metrics["critic/loss"]) == pytest.approx(float(np.sum(np.mean((q - target) ** 2, -1))), rel=1e-5)


def test_a_gradient_that_is_not_finite_counts_as_zero(batch: Batch) -> None:
    algorithm = CQL(hidden=(8, 8))
    state = algorithm.init(jax.random.PRNGKey(0), SPEC)
    broken = Batch(batch.observation, batch.action, batch.reward.at[3].set(jnp.inf), *jax.tree.leaves(batch)[3:])
    new, metrics = algorithm.update(state, broken, jnp.ones(B), jax.random.PRNGKey(1))
    assert not np.isfinite(metrics["loss"])
    old, kept = state.critics.mlp.layers[-1], new.critics.mlp.layers[-1]
    np.testing.assert_array_equal(old.bias, kept.bias)  # its gradient is a sum over the whole batch
    for leaf in jax.tree.leaves((new.critics, new.critic_optimiser)):
        assert np.all(np.isfinite(leaf))
    for before, after in zip(jax.tree.leaves(state.critics), jax.tree.leaves(new.critics), strict=True):
        assert np.max(np.abs(before - after)) < 1.01 * algorithm.critic_lr


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("backup", "max", "mode, sample or soft"),
        ("alpha_scale", "v3", "d3rlpy-v1"),
        ("precision", "fp8", "mixed"),
        ("batch_size", 0, "at least 1"),
        ("hidden", (), "at least one layer"),
    ],
)
def test_bad_settings_are_named(field: str, value: object, words: str) -> None:
    with pytest.raises(SappError, match=words):
        CQL(**{field: value})
