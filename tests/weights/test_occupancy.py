"""The occupancy estimators against finite MDPs whose ratios are known exactly, and their pieces one by one."""

from __future__ import annotations

import json
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import LONG
from finite import FiniteProblem, TablePolicy, problem

from sapp import CQL, SappError
from sapp.algorithms.config import build, describe
from sapp.algorithms.registry import preset
from sapp.core.spec import Batch, Spec
from sapp.networks import TanhGaussian
from sapp.weights import DualDICE, FrozenWeights, LogMinMax, OccupancyInfoNCE, OccupancyModel, StateWeights
from sapp.weights.behaviour import TanhBehaviour
from sapp.weights.classifier import (
    log_ratio,
)
from sapp.weights.occupancy import Networks, OccupancyHealth, discounted
from sapp.weights.successor import Transitions

STATES, ROWS, BATCH = 5, 20_000, 256
SPEC = Spec(STATES, 1, jnp.zeros(STATES), jnp.ones(STATES))
EYE = np.eye(STATES, dtype=np.float32)
PROBLEMS = [problem(seed, terminals=terminals) for terminals in (False, True) for seed in (2, 3)]
FAST = {"hidden": (32, 32), "behaviour_lr": 1e-3, "classifier_lr": 1e-3}


def fit(weights: Any, problems: list[FiniteProblem], steps: int) -> tuple[Any, np.ndarray, dict]:
    """States after some steps, estimated ratios [problems, states], and the last step's metrics."""
    data = [each.data(ROWS, seed) for seed, each in enumerate(problems)]
    names = ("observation", "action", "reward", "next_observation", "terminal")
    arrays = tuple(jnp.stack([jnp.asarray(getattr(d, name), jnp.float32) for d in data]) for name in names)
    tables = tuple(jnp.stack([getattr(p.target, part) for p in problems]) for part in ("mean", "log_std"))
    start = jnp.log(jnp.asarray(np.stack([p.start for p in problems]), jnp.float32))
    discount = jnp.float32(problems[0].discount)

    def one(step: jax.Array, seed: jax.Array, state: Any, arrays: tuple, table: tuple, start: jax.Array) -> Any:
        row_key, start_key, key = jax.random.split(jax.random.fold_in(jax.random.PRNGKey(seed), step), 3)
        rows = jax.random.randint(row_key, (BATCH,), 0, ROWS)
        initial = jnp.asarray(EYE)[jax.random.categorical(start_key, start, shape=(BATCH,))]
        batch = Batch(*(array[rows] for array in arrays), initial)
        return weights.update(state, batch, TablePolicy(*table), discount, key)

    def every(step: jax.Array, states: Any) -> Any:
        return jax.vmap(lambda *each: one(step, *each))(jnp.arange(len(problems)), states, arrays, tables, start)

    @partial(jax.jit, compiler_options=LONG)
    def run(keys: jax.Array) -> Any:
        states = jax.vmap(lambda key: weights.init(key, SPEC))(keys)
        states = jax.lax.fori_loop(0, steps - 1, lambda step, states: every(step, states)[0], states)
        return every(jnp.int32(steps - 1), states)

    states, metrics = run(jax.random.split(jax.random.PRNGKey(0), len(problems)))
    zero = jnp.zeros(STATES)
    batch = Batch(jnp.asarray(EYE), zero[:, None], zero, jnp.asarray(EYE), zero, jnp.asarray(EYE))
    ratio = jax.vmap(lambda state: weights.ratio(state, batch, None))(states)
    return states, np.asarray(ratio), metrics


def errors(problems: list[FiniteProblem], ratio: np.ndarray) -> np.ndarray:
    """Root mean square error over the states, relative to the exact ratio's."""
    exact = np.stack([each.state_ratio() for each in problems])
    return np.sqrt(np.mean((ratio - exact) ** 2, 1) / np.mean(exact**2, 1))


@pytest.fixture(scope="module")
def fitted() -> tuple[Any, np.ndarray, dict]:
    return fit(OccupancyModel(successor="logged", paired=False, model_lr=2e-3, width=100.0, **FAST), PROBLEMS, 1500)


def test_the_exact_ratio_of_finite_problems_is_recovered_with_and_without_terminals(fitted: tuple) -> None:
    _, ratio, _ = fitted
    found = errors(PROBLEMS, ratio)
    print("\nrelative errors", found.round(3))
    assert found.max() < 0.15
    for each, row in zip(PROBLEMS, ratio, strict=True):
        assert list(np.argsort(row)[[0, -1]]) == list(np.argsort(each.state_ratio())[[0, -1]])


def test_the_mass_that_terminals_leave_is_estimated(fitted: tuple) -> None:
    states, _, _ = fitted
    exact = [each.occupancy(each.target).sum() for each in PROBLEMS]
    assert min(exact[2:]) < 0.7
    np.testing.assert_allclose(states.mass, exact, atol=0.08)


def test_a_fitted_estimator_is_healthy_and_says_so(fitted: tuple) -> None:
    states, _, metrics = fitted
    assert not np.any(states.unreliable)
    assert np.all(metrics["ratio/model_error"] < 0.95)
    assert np.all(metrics["ratio/left"] == 0.0)
    assert np.all((metrics["ratio/accuracy"] > 0.5) & (metrics["ratio/accuracy"] < 0.8))


def test_infonce_recovers_the_shape_of_the_ratio_and_roughly_its_mass() -> None:
    weights = OccupancyInfoNCE(critic_lr=1e-3, tau=0.02, width=100.0, **FAST)
    states, ratio, metrics = fit(weights, PROBLEMS, 1500)
    mass = np.array([each.occupancy(each.target).sum() for each in PROBLEMS])
    found = errors(PROBLEMS, ratio / np.asarray(states.mass)[:, None] * mass[:, None])  # at the right mass
    print("\nrelative errors", found.round(3), "masses", np.asarray(states.mass).round(3), mass.round(3))
    assert found.max() < 0.1
    assert errors(PROBLEMS, ratio).max() < 0.3
    assert not np.any(metrics["ratio/unreliable"])


# The pieces: particles, the classifier, the box, the model


class ExactStep(eqx.Module):
    """A finite problem's own dynamics in place of a model."""

    transition: jax.Array  # [S, 2, S + 1], the last column being the end

    def step(self, state: jax.Array, action: jax.Array, logged: Any, noise: Any, key: jax.Array) -> tuple:
        row = self.transition[jnp.argmax(state, axis=-1), (action[:, 0] > 0).astype(int)]
        following = jax.random.categorical(key, jnp.log(row))
        return jnp.asarray(EYE)[jnp.minimum(following, STATES - 1)], following == STATES


@pytest.mark.parametrize(("number", "discount"), [(0, 0.99), (2, 0.9)], ids=["without terminals", "with terminals"])
def test_particles_in_an_exact_model_have_the_exact_occupancy(number: int, discount: float) -> None:
    each = PROBLEMS[number]
    each = FiniteProblem(**{**each.__dict__, "discount": discount})
    ends = np.maximum(0.0, 1.0 - each.transition.sum(-1, keepdims=True))
    model = ExactStep(jnp.asarray(np.concatenate([each.transition, ends], -1), jnp.float32))
    weights = OccupancyModel(hidden=(8,), particles=2048, slices=1, paired=False, width=1000.0)

    @partial(jax.jit, compiler_options=LONG)
    def distribution(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        state = weights.init(key, SPEC)
        inside = jnp.zeros(STATES), jnp.ones(STATES)
        state = eqx.tree_at(lambda s: (s.means.model, s.low, s.high), state, (model, *inside))
        logged = Transitions(jnp.asarray(EYE), jnp.zeros((STATES, 1)), jnp.asarray(EYE), jnp.zeros(STATES))

        def body(step: jax.Array, carry: tuple) -> tuple:
            state, total, restarted = carry
            start_key, key = jax.random.split(jax.random.fold_in(jax.random.PRNGKey(1), step))
            drawn = jax.random.categorical(start_key, jnp.log(jnp.asarray(each.start)), shape=(2048,))
            cloud, moved = weights.advance(state, logged, jnp.asarray(EYE)[drawn], each.target, discount, key)
            late = step >= 600  # several lives after the start
            total = total + late * jnp.mean(cloud.particles[0, 0], axis=0)
            return eqx.tree_at(lambda s: s.cloud, state, cloud), total, restarted + late * moved.restarted

        _, total, restarted = jax.lax.fori_loop(0, 1000, body, (state, jnp.zeros(STATES), jnp.float32(0.0)))
        return total / 400, restarted / 400

    found, restarted = distribution(jax.random.PRNGKey(0))
    exact = each.occupancy(each.target)
    np.testing.assert_allclose(found, exact / exact.sum(), atol=0.006)
    assert (1 - discount) / float(restarted) == pytest.approx(exact.sum(), rel=0.05)


def test_the_datas_own_discounted_occupancy_is_a_weighting_of_its_rows() -> None:
    """Two episodes: one of three rows that ends in a terminal, one of two that is cut off. Each would have mass
    Σγᵗ: 1 + γ + γ² for the first, 1/(1−γ) for the second."""
    elapsed, cut = jnp.asarray([0, 1, 2, 0, 1]), jnp.asarray([0.0, 0.0, 0.0, 0.0, 1.0])
    zero = jnp.zeros(5)
    batch = Batch(zero, zero, zero, zero, zero, zero, elapsed=elapsed, cut=cut)
    share = np.asarray(discounted(batch, jnp.float32(0.8)))
    weight = np.array([1.0, 0.8, 0.64, 1.0, 0.8 / 0.2])
    np.testing.assert_allclose(share, weight / weight.sum(), rtol=1e-5)
    assert weight[3:].sum() == pytest.approx(1 / 0.2)
    with pytest.raises(SappError, match="paired=False"):
        discounted(Batch(zero, zero, zero, zero, zero, zero), jnp.float32(0.8))


def behaviour_of(mean: tuple[float, ...], std: tuple[float, ...]) -> TanhBehaviour:
    """The same at every state of size 2."""
    behaviour = TanhBehaviour(jax.random.PRNGKey(0), 2, len(mean), (4,))
    last = behaviour.mlp.layers[-1]
    return eqx.tree_at(
        lambda b: (b.mlp.layers[-1].weight, b.mlp.layers[-1].bias),
        behaviour,
        (jnp.zeros_like(last.weight), jnp.asarray([*mean, *np.log(std)], jnp.float32)),
    )


# One step at a time


class Still(eqx.Module):
    """A policy of one action everywhere."""

    action: float = 0.0

    def __call__(self, observation: jax.Array) -> TanhGaussian:
        shape = (len(observation), 1)
        return TanhGaussian(jnp.full(shape, self.action), jnp.full(shape, -3.0))


def batch_of(seed: int, count: int = 64) -> Batch:
    rng = np.random.default_rng(seed)
    state = rng.normal(size=(count, 2)).astype(np.float32)
    action = np.clip(0.2 * rng.normal(size=(count, 1)), -1, 1).astype(np.float32)
    arrays = state, action, state[:, 0], state + 0.1 * action, np.zeros(count, np.float32), state[::-1].copy()
    elapsed = np.arange(count, dtype=np.int32) % 8
    return Batch(*map(jnp.asarray, arrays), elapsed=jnp.asarray(elapsed), cut=jnp.asarray(elapsed == 7, jnp.float32))


SMALL_SPEC = Spec(2, 1, jnp.zeros(2), jnp.ones(2))
SMALL = {
    "model": OccupancyModel(hidden=(8,), particles=32, slices=4, f=LogMinMax(0.25, 0.5), fallback=True),
    "infonce": OccupancyInfoNCE(hidden=(8,), features=8, f=LogMinMax(0.25, 0.5), fallback=True),
}


@pytest.fixture(scope="module")
def step() -> Any:
    @jax.jit
    def run(weights: Any, state: Any, batch: Batch, action: jax.Array, key: jax.Array) -> tuple:
        policy = Still(action)
        state, metrics = weights.update(state, batch, policy, jnp.float32(0.9), key)
        return state, metrics, weights.weights(state, batch, policy, key)[0]

    return run


@cache
def fresh(kind: type) -> Any:
    """The initial state of the small estimator of a class; its numbers do not matter to it."""
    weights = next(each for each in SMALL.values() if type(each) is kind)
    return jax.jit(lambda key: weights.init(key, SMALL_SPEC))(jax.random.PRNGKey(0))


def run_steps(step: Any, weights: StateWeights, steps: int, action: float = 0.0) -> tuple:
    out: tuple = (fresh(type(weights)), {}, None)
    for number in range(steps):
        out = step(weights, out[0], batch_of(number), jnp.float32(action), jax.random.PRNGKey(number))
    return out


def learned(state: Any) -> Any:
    """The networks that gradients move."""
    return state.networks if hasattr(state, "networks") else (state.behaviour, state.critic, state.classifier)


@pytest.mark.parametrize("name", SMALL)
def test_estimators_start_at_one_and_give_f_of_their_ratio(name: str, step: Any) -> None:
    state, metrics, weights = run_steps(step, SMALL[name], 1)
    assert float(metrics["ratio/unreliable"]) == 0.0
    np.testing.assert_allclose(jnp.exp(log_ratio(state.readout, batch_of(0).observation)), 1.0, atol=0.1)
    np.testing.assert_allclose(weights, SMALL[name].f(SMALL[name].ratio(state, batch_of(0), None))[0], atol=1e-4)
    assert weights.min() == pytest.approx(0.25, abs=1e-5)
    assert weights.max() == pytest.approx(0.75, abs=1e-5)


def test_particles_move_slice_by_slice_and_stay_in_range(step: Any) -> None:
    before, after = (run_steps(step, SMALL["model"], count)[0].cloud for count in (9, 10))
    assert int(after.moves) == 10
    for old, new in zip(before.particles, after.particles, strict=True):
        moved = np.any(np.asarray(old != new), axis=(1, 2))
        assert list(moved) == [False, True, False, False]  # the tenth step moves slice 9 % 4
    state = run_steps(step, SMALL["model"], 10)[0]
    reach = 0.1 * (state.high - state.low)
    for slices in after.particles:
        assert np.all((slices >= state.low - reach) & (slices <= state.high + reach))


def test_a_policy_that_is_the_behaviour_moves_the_same_particles(step: Any) -> None:
    """Driven by the same random numbers: the two kinds part only by what π does differently."""

    class Cloned(eqx.Module):
        state: Any

        def __call__(self, observation: jax.Array) -> TanhGaussian:
            return self.state.means.behaviour(self.state.standard(observation))

    weights = SMALL["model"]
    state = run_steps(step, weights, 5)[0]
    same = state.cloud.particles[0]
    state = eqx.tree_at(lambda s: s.cloud.particles, state, jnp.stack([same, same]))
    batch = batch_of(0)
    logged = Transitions(batch.observation, batch.action, batch.next_observation, batch.terminal)
    wide = eqx.tree_at(lambda w: w.width, weights, 9.0)
    cloud, moved = wide.advance(state, logged, logged.state, Cloned(state), jnp.float32(0.9), jax.random.PRNGKey(3))
    assert np.any(np.asarray(cloud.particles[0] != same))
    np.testing.assert_allclose(*cloud.particles, atol=1e-5)
    assert float(moved.clipped) == 0.0


def test_what_particles_follow_and_what_is_read_are_averaged_each_at_its_own_rate(step: Any) -> None:
    weights = eqx.tree_at(lambda w: (w.model_average, w.average), SMALL["model"], (1.0, 0.0))
    before, after = (run_steps(step, weights, count)[0] for count in (3, 4))
    for found, expected in (
        (after.means.model, after.networks.model),
        (after.means.behaviour, after.networks.behaviour),
    ):
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)
    share = 8.0 / 11.0  # while steps are few the mean is over an eighth of them
    for old, new, online in zip(
        *map(jax.tree.leaves, (before.readout, after.readout, after.networks.classifier)), strict=True
    ):
        np.testing.assert_allclose(new, old + share * (online - old), atol=1e-6)


class Carried(eqx.Module):
    """In place of a model: a state becomes the action taken there, in either dimension."""

    def step(self, state: jax.Array, action: jax.Array, logged: Any, noise: Any, key: jax.Array) -> tuple:
        return jnp.broadcast_to(action, state.shape), jnp.zeros(len(state), bool)


def test_particles_act_within_the_behaviours_box() -> None:
    """A policy at 0.995 in a world where particles are moved to their action: they show which one was taken."""
    weights, zero = OccupancyModel(hidden=(4,), particles=256, slices=1, width=2.0), jnp.zeros((8, 2))
    state = weights.init(jax.random.PRNGKey(0), SMALL_SPEC)
    world = Networks(behaviour_of((0.1,), (0.2,)), Carried(), state.means.classifier)
    state = eqx.tree_at(lambda s: (s.means, s.low, s.high), state, (world, jnp.full(2, -5.0), jnp.full(2, 5.0)))
    logged = Transitions(zero, zero[:, :1], zero, zero[:, 0])
    cloud, moved = weights.advance(state, logged, zero, Still(3.0), jnp.float32(1.0), jax.random.PRNGKey(0))
    ours, theirs = np.asarray(cloud.particles[:, 0, :, 0])
    np.testing.assert_allclose(ours, np.tanh(0.1 + 2.0 * 0.2), atol=1e-6)
    assert float(moved.clipped) == 1.0
    assert theirs.std() > 0.1  # β̂ itself goes on as it is
    assert np.arctanh(theirs).mean() == pytest.approx(0.1, abs=0.05)


def test_clipping_says_how_far_the_policy_has_left_the_data(step: Any) -> None:
    near, far = (run_steps(step, SMALL["model"], 60, action)[0].health.clipped for action in (0.0, 3.0))
    assert float(far) > float(near) + 0.05


@pytest.mark.parametrize("name", SMALL)
def test_an_unreliable_estimator_falls_back_to_one_where_that_is_asked(name: str, step: Any) -> None:
    weights = eqx.tree_at(lambda w: w.max_accuracy, SMALL[name], 0.0)
    _, metrics, found = run_steps(step, weights, 2)
    assert float(metrics["ratio/unreliable"]) == 1.0
    np.testing.assert_array_equal(found, 1.0)
    _, _, found = run_steps(step, eqx.tree_at(lambda w: w.fallback, weights, False), 2)
    assert float(found.max()) < 0.8


@pytest.mark.parametrize(
    ("change", "unreliable"),
    [
        ({}, False), ({"error": 1.88}, False), ({"error": 1.92}, True), ({"left": 0.19}, False), ({"left": 0.21}, True),
        ({"accuracy": 0.994}, False), ({"accuracy": 0.996}, True), ({"clipped": 1.0}, False),
        ({"restarted": 0.9}, False),
    ],
)  # fmt: skip
def test_each_limit_of_health_makes_it_unreliable(step: Any, change: dict[str, float], unreliable: bool) -> None:
    """The model's error is compared with a constant model's, here 2; the mass is the share of restarts by chance."""
    weights = eqx.tree_at(lambda w: w.health_rate, SMALL["model"], 0.0)
    health = {"error": 1.0, "constant": 2.0, "restarted": 0.2, "left": 0.0, "clipped": 0.0, "accuracy": 0.5} | change
    given = OccupancyHealth(**{name: jnp.float32(value) for name, value in health.items()})
    state = eqx.tree_at(lambda s: s.health, fresh(OccupancyModel), given)
    new, metrics, _ = step(weights, state, batch_of(0), jnp.float32(0.0), jax.random.PRNGKey(0))
    assert bool(new.unreliable) == unreliable == bool(metrics["ratio/unreliable"])
    assert float(metrics["ratio/model_error"]) == pytest.approx(health["error"] / 2)
    assert float(metrics["ratio/mass"]) == pytest.approx(0.1 / health["restarted"], rel=1e-5)
    assert float(new.mass) == float(metrics["ratio/mass"])


@pytest.mark.parametrize("name", SMALL)
def test_a_broken_batch_is_survived(name: str, step: Any) -> None:
    state, _, _ = run_steps(step, SMALL[name], 3)
    broken = eqx.tree_at(lambda b: b.action, batch_of(0), jnp.full((64, 1), jnp.nan))
    after, metrics, weights = step(SMALL[name], state, broken, jnp.float32(0.0), jax.random.PRNGKey(5))
    assert float(metrics["ratio/unreliable"]) == 1.0
    np.testing.assert_array_equal(weights, 1.0)
    for old, new in zip(*(jax.tree.leaves(learned(each)) for each in (state, after)), strict=True):
        np.testing.assert_array_equal(old, new)
    healed, metrics, _ = step(SMALL[name], after, batch_of(1), jnp.float32(0.0), jax.random.PRNGKey(6))
    assert float(metrics["ratio/unreliable"]) == 0.0
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(healed))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: OccupancyModel(successor="mean"), "gaussian or logged"),
        (lambda: OccupancyModel(particles=0), "particles"),
        (lambda: OccupancyModel(average=2.0), "average"),
        (lambda: OccupancyModel(hidden=()), "hidden"),
        (lambda: OccupancyInfoNCE(tau=-1.0), "tau"),
        (lambda: OccupancyInfoNCE(precision="fp8"), "precision"),
    ],
)
def test_unusable_settings_are_refused_by_name(make: Any, words: str) -> None:
    with pytest.raises(SappError, match=words):
        make()


@pytest.mark.parametrize(
    "weights",
    [
        OccupancyModel(successor="logged", average=0.25, paired=False, hidden=(8,)),
        OccupancyInfoNCE(features=8, tau=0.1),
        FrozenWeights(OccupancyModel(noise=0.0), 7),
    ],
)
def test_estimators_survive_config_json(weights: StateWeights) -> None:
    algorithm = CQL(weights=weights)
    assert eqx.tree_equal(build(json.loads(json.dumps(describe(algorithm)))), algorithm)


def test_presets_by_name_take_the_datasets_range() -> None:
    for name, kind in (("occupancy", OccupancyModel), ("infonce", OccupancyInfoNCE)):
        weights = preset("cql", "walker2d-medium-v2", name).weights
        assert isinstance(weights, kind)
        assert (weights.f.b0, weights.f.b1) == (0.5, 1.0)


@pytest.mark.parametrize("weights", [OccupancyModel(), OccupancyInfoNCE()])
def test_discrete_actions_are_refused(weights: StateWeights) -> None:
    with pytest.raises(SappError, match="DualDICE"):
        weights.init(jax.random.PRNGKey(0), Spec(2, 3, jnp.zeros(2), jnp.ones(2), True))
    DualDICE(hidden=(4,)).init(jax.random.PRNGKey(0), Spec(2, 3, jnp.zeros(2), jnp.ones(2), True))
