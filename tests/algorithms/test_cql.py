"""CQL(H)'s losses against brute force, its scales and its limits."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp import CQL, SappError
from sapp.algorithms.actor_critic import SoftState, actor_loss, bootstrap_target, temperature_loss
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


@pytest.fixture(scope="module")
def apart() -> SoftState:
    """Critics whose values differ by units between actions, targets of their own, an actor that tells states apart."""
    state = CQL(hidden=(16, 16, 16)).init(jax.random.PRNGKey(1), SPEC)
    last = state.critics.mlp.layers[-1].weight
    state = eqx.tree_at(lambda s: s.critics.mlp.layers[-1].weight, state, 80.0 * last)
    state = eqx.tree_at(lambda s: s.targets.mlp.layers[-1].weight, state, 50.0 * last[::-1])
    heads = state.actor.mean.weight, state.actor.log_std.weight, state.actor.log_std.bias
    return eqx.tree_at(
        lambda s: (s.actor.mean.weight, s.actor.log_std.weight, s.actor.log_std.bias),
        state,
        (3.0 * heads[0], 8.0 * heads[1], heads[2] - 1.0),
    )


Layers = list[tuple[np.ndarray, np.ndarray]]


def layers_of(network: Any, index: int) -> Layers:
    """Weights and biases of one of a pair of networks, in float64."""
    return [tuple(np.asarray(x[index], np.float64) for x in (w.weight, w.bias)) for w in network.mlp.layers]


def numpy_value(layers: Layers, observation: np.ndarray, action: np.ndarray) -> float:
    """Q(s, a) of one pair, layer by layer."""
    x = np.concatenate([observation, action]).astype(np.float64)
    for weight, bias in layers[:-1]:
        x = np.maximum(x @ weight + bias, 0.0)
    return float((x @ layers[-1][0] + layers[-1][1])[0])


def numpy_gaussian(state: SoftState, observation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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


class BruteForce:
    """CQL(H)'s loss of the critics in float64, one state, one action and one critic at a time."""

    def __init__(self, state: SoftState, batch: Batch, actions: np.ndarray, weights: np.ndarray) -> None:
        self.batch, self.actions, self.weights = batch, actions.astype(np.float64), weights
        here, there = (np.asarray(x) for x in (batch.observation, batch.next_observation))
        self.log_density = np.full((B, 3 * N), A * np.log(0.5))
        targets = [layers_of(state.targets, i) for i in range(2)]
        following = np.zeros(B)
        for b in range(B):
            at, after = numpy_gaussian(state, here[b]), numpy_gaussian(state, there[b])
            for k in range(N):
                self.log_density[b, k] = numpy_log_density(self.actions[b, k], *at)
                # drawn at s', scored at s, corrected with its density at s'
                self.log_density[b, N + k] = numpy_log_density(self.actions[b, N + k], *after)
            following[b] = min(numpy_value(each, there[b], np.tanh(after[0])) for each in targets)
        self.target = np.asarray(batch.reward) + 0.99 * (1 - np.asarray(batch.terminal)) * following
        self.observation, self.logged = here, np.asarray(batch.action)

    def parts(self, critic: Layers) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Squared TD errors and penalties of the states [B], and the values of the proposed actions [B, 3N]."""
        squares, penalties, values = np.zeros(B), np.zeros(B), np.zeros((B, 3 * N))
        for b in range(B):
            for k in range(3 * N):
                values[b, k] = numpy_value(critic, self.observation[b], self.actions[b, k])
            logged = numpy_value(critic, self.observation[b], self.logged[b])
            penalties[b] = np.log(np.sum(np.exp(values[b] - self.log_density[b]))) - logged
            squares[b] = (logged - self.target[b]) ** 2
        return squares, penalties, values

    def loss(self, critics: list[Layers], coefficient: float) -> float:
        parts = [self.parts(critic) for critic in critics]
        return float(sum(np.mean(s) + coefficient * np.mean(self.weights * p) for s, p, _ in parts))


def test_update_equals_brute_force_in_value_and_slope(batch: Batch, apart: SoftState) -> None:
    """Thirty actions, each with the density of the distribution it was drawn from, and weights that are far from 1.

    The slope is read off Adam's first moment, a tenth of the gradient, along a direction drawn at random.
    """
    algorithm, key = CQL(hidden=(16, 16, 16), alpha=5.0), jax.random.PRNGKey(2)
    weights = jnp.linspace(0.1, 3.5, B) ** 2
    new, metrics = jax.jit(lambda state: algorithm.update(state, batch, weights, key))(apart)

    here_key, next_key, uniform_key, *_ = jax.random.split(key, 5)
    here = apart.actor(batch.observation).sample_many(here_key, N)
    there = apart.actor(batch.next_observation).sample_many(next_key, N)
    actions, _ = propose(here, there, uniform_key)
    assert actions.shape == (B, 3 * N, A)
    exact = BruteForce(apart, batch, np.asarray(actions), np.asarray(weights, np.float64))
    critics = [layers_of(apart.critics, i) for i in range(2)]
    parts = [exact.parts(critic) for critic in critics]
    # what would go unseen otherwise: actions worth the same, densities that are the same at s and s', weights around 1
    assert np.median(np.ptp(parts[0][2], axis=1)) > 2.0
    assert abs(float(weights.mean()) - 1.0) > 1.0
    assert float(metrics["critic/penalty"]) == pytest.approx(np.mean([p for _, p, _ in parts]), rel=1e-4)
    assert float(metrics["critic/td"]) == pytest.approx(np.mean([s for s, *_ in parts]), rel=1e-4)
    assert float(metrics["critic/loss"]) == pytest.approx(exact.loss(critics, 2.5), rel=1e-4)

    rng = np.random.default_rng(0)
    direction = [[tuple(rng.normal(size=x.shape) for x in layer) for layer in critic] for critic in critics]

    def moved(step: float) -> list[Layers]:
        return [
            [tuple(x + step * d for x, d in zip(*pair, strict=True)) for pair in zip(critic, own, strict=True)]
            for critic, own in zip(critics, direction, strict=True)
        ]

    slope = (exact.loss(moved(1e-6), 2.5) - exact.loss(moved(-1e-6), 2.5)) / 2e-6
    moments = [layers_of(new.critic_optimiser.mu, i) for i in range(2)]
    found = sum(
        10.0 * np.sum(m * d)
        for pair in zip(moments, direction, strict=True)
        for layer in zip(*pair, strict=True)
        for m, d in zip(*layer, strict=True)
    )
    assert found == pytest.approx(slope, rel=2e-3)


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
    assert float(new.temperature_optimiser.mu) == pytest.approx(0.1 * float(gradient), rel=1e-4)
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


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("backup", "max", "mode, sample or soft"),
        ("alpha_scale", "v3", "d3rlpy-v1"),
        ("precision", "fp8", "mixed"),
        ("batch_size", 0, "batch_size is 0; it must be 1 or more"),
        ("hidden", (), "at least one layer"),
    ],
)
def test_bad_settings_are_named(field: str, value: object, words: str) -> None:
    with pytest.raises(SappError, match=words):
        CQL(**{field: value})


def test_a_soft_backup_adds_the_entropys_share_to_the_largest_target() -> None:
    row = {"actor/temperature": 0.5, "actor/entropy": -3.0, "weights/max": 4.0}
    hard, soft = (CQL(alpha=5.0, backup=each).largest_target(1.0, 2, row) for each in ("sample", "soft"))
    assert hard == pytest.approx(1.0 + 0.5 * 5.0 * 4.0 / 2)
    assert soft == pytest.approx(hard + 0.5 * (3.0 + 2 * np.log(2)))


@pytest.mark.parametrize(
    ("settings", "cuda", "plain"),
    [
        ({"precision": "mixed"}, True, False),
        ({"precision": "mixed"}, False, True),
        ({"precision": "tf32"}, True, True),
        ({"precision": "float32"}, True, True),
        ({"precision": "mixed", "kernel": "xla"}, True, True),
        ({"precision": "mixed", "kernel": "fused"}, False, False),
        ({"precision": "mixed", "hidden": (48, 48)}, True, True),
    ],
)
def test_auto_takes_a_kernel_on_a_gpu_in_precision_mixed_alone(
    settings: dict[str, Any], cuda: bool, plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sapp.algorithms.cql.on_cuda", lambda: cuda)
    shapes = ((256, S), (256, A), (256,), (256, S), (256,), (256, S))
    rows = Batch(*(jnp.zeros(shape) for shape in shapes))
    algorithm = CQL(**{"hidden": (64, 64)} | settings)
    assert (algorithm._gradient_by(rows) is critic_gradient) == plain
