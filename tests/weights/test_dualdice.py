"""DualDICE with networks against finite MDPs whose ratios are known exactly, and the rule that distrusts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from compiling import LONG
from finite import FiniteProblem, TablePolicy, problem

from sapp import SappError
from sapp.core.spec import Batch, Spec
from sapp.data import Dataset
from sapp.networks import MLP
from sapp.weights import DualDICE, LogMinMax
from sapp.weights.dualdice import LOG_DENSITY_CLIP, Health, log_ratio, regression_loss

STATES, ROWS, BATCH = 5, 20_000, 128
SPEC = Spec(STATES, 1, jnp.zeros(STATES), jnp.ones(STATES))
FAST = {"nu_lr": 3e-4, "zeta_lr": 1e-3, "ratio_lr": 1e-3, "behaviour_lr": 1e-3}
EYE = np.eye(STATES, dtype=np.float32)


@dataclass
class Snapshot:
    """After some steps: how far ζ and ω are from the exact ratios, and what ζ says the target earns."""

    steps: int
    zeta_error: float  # root mean square over the data, relative to that of ζ
    ratio_error: float  # the same for ω over states
    zeta_mean: float
    value: float  # E_D[ζ·r]


class Fit:
    """DualDICE fitted to several problems by one program; learning rates fall to a tenth after half of the steps."""

    def __init__(self, problems: list[FiniteProblem], dice: DualDICE, report: tuple[int, ...]) -> None:
        self.problems, self.dice = problems, dice
        self.data = [each.data(ROWS, seed) for seed, each in enumerate(problems)]
        names = ("observation", "action", "reward", "next_observation", "terminal")
        self._arrays = tuple(
            jnp.stack([jnp.asarray(getattr(data, name), jnp.float32) for data in self.data]) for name in names
        )
        self._policies = tuple(jnp.stack([getattr(p.target, part) for p in problems]) for part in ("mean", "log_std"))
        self._starts = jnp.log(jnp.asarray(np.stack([p.start for p in problems]), jnp.float32))
        self._run = jax.jit(self._steps, compiler_options=LONG)
        keys = jax.random.split(jax.random.PRNGKey(0), len(problems))
        self.state = jax.jit(jax.vmap(lambda key: dice.init(key, SPEC)))(keys)
        slow = eqx.tree_at(
            lambda d: (d.nu_lr, d.zeta_lr, d.ratio_lr, d.behaviour_lr),
            dice, tuple(0.1 * getattr(dice, name) for name in ("nu_lr", "zeta_lr", "ratio_lr", "behaviour_lr")),
        )  # fmt: skip
        look = jax.jit(jax.vmap(self._look))
        self.history: list[list[Snapshot]] = []
        done = 0
        for steps in report:
            self.state = self._run(dice if steps <= report[-1] // 2 else slow, self.state, done, steps)
            done = steps
            zeta, ratio = look(self.state, *self._arrays[:2], *self._policies)
            together = zip(problems, self.data, zeta, ratio, strict=True)
            self.history.append([self._snapshot(steps, *each) for each in together])

    def _steps(self, dice: DualDICE, state: Any, first: int, last: int) -> Any:
        discount = jnp.float32(self.problems[0].discount)

        def one(step: jax.Array, seed: jax.Array, state: Any, arrays: tuple, policy: tuple, start: jax.Array) -> Any:
            key = jax.random.fold_in(jax.random.PRNGKey(seed), step)
            row_key, start_key, key = jax.random.split(key, 3)
            rows = jax.random.randint(row_key, (BATCH,), 0, ROWS)
            initial = jnp.asarray(EYE)[jax.random.categorical(start_key, start, shape=(BATCH,))]
            batch = Batch(*(array[rows] for array in arrays), initial)
            return dice.update(state, batch, TablePolicy(*policy), discount, key)[0]

        def body(step: jax.Array, state: Any) -> Any:
            seeds = jnp.arange(len(self.problems))
            return jax.vmap(lambda *each: one(step, *each))(seeds, state, self._arrays, self._policies, self._starts)

        return jax.lax.fori_loop(first, last, body, state)

    def _look(self, state: Any, observation: jax.Array, action: jax.Array, *policy: jax.Array) -> tuple:
        zero = jnp.zeros(ROWS)
        batch = Batch(observation, action, zero, observation, zero, observation)
        return self.dice.zeta(state, observation, action), self.dice.ratio(state, batch, TablePolicy(*policy))

    def _snapshot(self, steps: int, problem: FiniteProblem, data: Dataset, zeta: Any, ratio: Any) -> Snapshot:
        zeta, exact = np.asarray(zeta), problem.zeta(data)
        state = data.observation.argmax(1)
        # ζ·β̂/π has heavy tails, at actions that π hardly takes: any small error of ζ there is blown up
        centre = np.median if self.dice.route == "density" else np.mean
        per_state = np.array([centre(np.asarray(ratio)[state == s]) for s in range(STATES)])
        return Snapshot(
            steps,
            float(np.sqrt(np.mean((zeta - exact) ** 2) / np.mean(exact**2))),
            float(np.sqrt(np.mean((per_state - problem.state_ratio()) ** 2) / np.mean(problem.state_ratio() ** 2))),
            float(zeta.mean()),
            float(np.mean(zeta * data.reward)),
        )


PROBLEMS = [problem(seed, terminals=terminals) for terminals in (False, True) for seed in (2, 3, 5)]
REPORT = (0, 500, 1000, 2000, 4000)


@pytest.fixture(scope="module")
def fit() -> Fit:
    return Fit(PROBLEMS, DualDICE(hidden=(32, 32), **FAST), REPORT)


def test_zeta_agrees_with_the_exact_ratio(fit: Fit) -> None:
    """Error at 0 and 4000 steps: 0.68–1.17 and 0.11–0.15, with and without terminals."""
    for first, last in zip(fit.history[0], fit.history[-1], strict=True):
        assert first.zeta_error > 0.6
        assert last.zeta_error < 0.2


def test_state_ratio_agrees_with_the_exact_one(fit: Fit) -> None:
    """Error at 0 and 4000 steps: 0.36–1.05 and 0.03–0.07."""
    for first, last in zip(fit.history[0], fit.history[-1], strict=True):
        assert first.ratio_error > 0.3
        assert last.ratio_error < 0.1


def test_errors_fall_with_steps(fit: Fit) -> None:
    print("\nsteps  ζ error (mean, max)  ω error (mean, max)  share of the value gap (mean)")
    zeta, ratio = [], []
    for row in fit.history:
        zeta.append([each.zeta_error for each in row])
        ratio.append([each.ratio_error for each in row])
        gap = np.mean([share(each, number, fit) for number, each in enumerate(row)])
        print(
            f"{row[0].steps:5d}  {np.mean(zeta[-1]):.3f} {np.max(zeta[-1]):.3f}          "
            f"{np.mean(ratio[-1]):.3f} {np.max(ratio[-1]):.3f}          {gap:.2f}"
        )
    assert np.all(np.diff(np.mean(zeta, 1)) < 0)
    assert np.all(np.diff(np.mean(ratio, 1)[1:]) < 0)  # ω first follows ζ's transient


def share(snapshot: Snapshot, number: int, fit: Fit) -> float:
    """How much of the way from the data's mean reward to the target policy's value E_D[ζr] covers."""
    target, mean = fit.problems[number].value(fit.problems[number].target), float(np.mean(fit.data[number].reward))
    return (snapshot.value - mean) / (target - mean)


def test_weighted_reward_moves_from_the_data_to_the_target(fit: Fit) -> None:
    """Guards the collapse to ζ ≈ 1, which leaves E[ζr] at the data's mean: the gap must be covered."""
    for number, (first, last) in enumerate(zip(fit.history[0], fit.history[-1], strict=True)):
        gap = fit.problems[number].value(fit.problems[number].target) - np.mean(fit.data[number].reward)
        assert abs(gap) > 0.08
        assert abs(share(first, number, fit)) < 0.1
        assert 0.85 < share(last, number, fit) < 1.15


def test_mean_zeta_is_one_without_terminals_and_what_terminals_leave_otherwise(fit: Fit) -> None:
    for each, last in zip(PROBLEMS, fit.history[-1], strict=True):
        mass = each.occupancy(each.target).sum()
        assert mass == pytest.approx(1.0) or mass < 0.7
        assert last.zeta_mean == pytest.approx(mass, abs=0.06)


def test_a_fitted_estimator_is_healthy(fit: Fit) -> None:
    assert not np.any(np.asarray(fit.state.health.unreliable))


def test_softplus_and_the_density_route_agree_with_the_exact_ratios() -> None:
    dice = DualDICE(hidden=(32, 32), positivity="softplus", route="density", components=1, next_actions=4, **FAST)
    fit = Fit([PROBLEMS[0], PROBLEMS[5]], dice, (0, 1500, 3000))
    for first, last in zip(fit.history[0], fit.history[-1], strict=True):
        assert last.zeta_error < 0.25 < 0.6 < first.zeta_error
        assert last.ratio_error < 0.2


@pytest.mark.parametrize(("unit_mean", "low", "high"), [(False, 0.0, 0.3), (True, 0.85, 1.1)])
def test_unit_mean_drives_the_mean_of_zeta_to_one(unit_mean: bool, low: float, high: float) -> None:
    """With a discount near 1 the starts hardly fix the scale of ζ: without the constraint it stays near zero."""
    problems = [problem(seed, discount=0.9999) for seed in (2, 3)]
    fit = Fit(problems, DualDICE(hidden=(16, 16), unit_mean=unit_mean, nu_lr=2e-3, zeta_lr=5e-3), (2000, 4000))
    for last in fit.history[-1]:
        assert low < last.zeta_mean < high


# The three routes from an exact ζ to the state ratio


class ExactZeta(eqx.Module):
    """√ζ of a problem, in place of the ζ network (whose output is squared)."""

    state_ratio: jax.Array
    target: jax.Array
    behaviour: jax.Array

    def __call__(self, state: jax.Array, action: jax.Array) -> jax.Array:
        target, behaviour = TablePolicy(*self.target)(state), TablePolicy(*self.behaviour)(state)
        return jnp.sqrt((state @ self.state_ratio) * jnp.exp(target.log_prob(action) - behaviour.log_prob(action)))


class ExactBehaviour(eqx.Module):
    table: jax.Array

    def log_prob(self, state: jax.Array, action: jax.Array) -> jax.Array:
        return TablePolicy(*self.table)(state).log_prob(action)


@pytest.fixture(scope="module", params=[0, 4], ids=["without terminals", "with terminals"])
def exact(request: pytest.FixtureRequest) -> tuple[FiniteProblem, Dataset, Batch, Any]:
    """A problem, its data, all of it as one batch, and a DualDICE state that holds the exact ζ and β."""
    each = PROBLEMS[request.param]
    data = each.data(ROWS, 7)
    tables = (jnp.stack([p.mean, p.log_std]) for p in (each.target, each.behaviour))
    target, behaviour = tables
    state = DualDICE(hidden=(8,), route="density").init(jax.random.PRNGKey(0), SPEC)
    zeta = ExactZeta(jnp.asarray(each.state_ratio(), jnp.float32), target, behaviour)
    state = eqx.tree_at(lambda s: (s.zeta, s.behaviour), state, (zeta, ExactBehaviour(behaviour)))
    zero = jnp.zeros(ROWS)
    observation = jnp.asarray(data.observation)
    return each, data, Batch(observation, jnp.asarray(data.action), zero, observation, zero, observation), state


def test_density_route_of_exact_zeta_is_the_state_ratio_at_every_row(exact: tuple) -> None:
    each, data, batch, state = exact
    ratio = np.asarray(DualDICE(route="density").ratio(state, batch, each.target))
    truth = each.state_ratio()[data.observation.argmax(1)]
    within = truth / each.zeta(data) < np.exp(LOG_DENSITY_CLIP)  # β/π at the logged action
    assert within.mean() > 0.98
    np.testing.assert_allclose(ratio[within], truth[within], rtol=2e-3)
    clipped = each.zeta(data)[~within] * np.exp(LOG_DENSITY_CLIP)
    np.testing.assert_allclose(ratio[~within], clipped, rtol=5e-3)


def test_zeta_route_of_exact_zeta_averages_to_the_state_ratio(exact: tuple) -> None:
    each, data, batch, state = exact
    zeta = np.asarray(DualDICE(route="zeta").ratio(eqx.tree_at(lambda s: s.behaviour, state, None), batch, each.target))
    np.testing.assert_allclose(zeta, each.zeta(data), rtol=2e-3)
    for s, truth in enumerate(each.state_ratio()):
        here = zeta[data.observation.argmax(1) == s]
        assert abs(here.mean() - truth) < 4 * here.std() / np.sqrt(len(here))
        assert here.std() > 0.1 * truth  # ζ itself does vary with the action


def test_regression_route_of_exact_zeta_is_the_state_ratio(exact: tuple) -> None:
    each, data, batch, _ = exact
    zeta = jnp.asarray(each.zeta(data), jnp.float32)
    network = MLP(jax.random.PRNGKey(0), STATES, (16,), 1)
    adam = optax.adam(1e-2)

    def step(_: int, carry: tuple) -> tuple:
        network, optimiser = carry
        updates, optimiser = adam.update(jax.grad(regression_loss)(network, batch.observation, zeta), optimiser)
        return optax.apply_updates(network, updates), optimiser

    network, _ = jax.jit(lambda carry: jax.lax.fori_loop(0, 400, step, carry))((network, adam.init(network)))
    found = np.exp(np.asarray(log_ratio(network, jnp.asarray(EYE))))
    state = data.observation.argmax(1)
    mean = [float(zeta[state == s].mean()) for s in range(STATES)]
    np.testing.assert_allclose(found, mean, rtol=5e-3)  # the conditional mean over the data: the loss's minimiser
    np.testing.assert_allclose(found, each.state_ratio(), rtol=0.06)  # and the ratio, up to the draw of the data


# One step at a time: initial values, health, broken batches


@pytest.fixture(scope="module")
def step():
    """One compiled update and its weights; numbers of the estimator may differ from call to call."""

    @jax.jit
    def run(dice: DualDICE, state: Any, batch: Batch, key: jax.Array) -> tuple:
        state, metrics = dice.update(state, batch, PROBLEMS[0].target, jnp.float32(0.9), key)
        return state, metrics, dice.weights(state, batch, PROBLEMS[0].target, key)[0]

    return run


@pytest.fixture(scope="module")
def batch() -> Batch:
    data = PROBLEMS[0].data(64, 0)
    names = ("observation", "action", "reward", "next_observation", "terminal", "observation")
    return Batch(*(jnp.asarray(getattr(data, name), jnp.float32) for name in names))


@pytest.fixture(scope="module")
def fresh() -> Any:
    return jax.jit(lambda key: SMALL.init(key, SPEC))(jax.random.PRNGKey(0))


SMALL = DualDICE(hidden=(8, 8), f=LogMinMax(0.25, 0.5), fallback=True)
KEY = jax.random.PRNGKey(1)


@pytest.mark.parametrize("positivity", ["square", "softplus", "identity"])
def test_estimators_start_at_one(positivity: str, batch: Batch) -> None:
    dice = DualDICE(hidden=(16, 16), positivity=positivity)
    state = jax.jit(lambda key: dice.init(key, SPEC))(jax.random.PRNGKey(0))
    np.testing.assert_allclose(dice.zeta(state, batch.observation, batch.action), 1.0, atol=0.05)
    np.testing.assert_allclose(dice.ratio(state, batch, PROBLEMS[0].target), 1.0, atol=0.05)


def test_observations_are_standardised_with_the_datasets_statistics(fresh: Any, batch: Batch) -> None:
    moved = eqx.tree_at(lambda s: (s.mean, s.std), fresh, (jnp.full(STATES, 3.0), jnp.full(STATES, 10.0)))
    observation = 3.0 + 10.0 * batch.observation
    there = Batch(observation, batch.action, batch.reward, observation, batch.terminal, observation)
    expected, found = (SMALL.zeta(s, o, batch.action) for s, o in ((fresh, batch.observation), (moved, observation)))
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    ratios = SMALL.ratio(fresh, batch, None), SMALL.ratio(moved, there, None)
    np.testing.assert_allclose(ratios[0], ratios[1], rtol=1e-4)
    assert np.ptp(ratios[0]) > 0


def test_a_healthy_estimator_gives_f_of_its_ratios(step: Any, fresh: Any, batch: Batch) -> None:
    state, metrics, weights = step(SMALL, fresh, batch, KEY)
    assert float(metrics["ratio/unreliable"]) == 0.0
    np.testing.assert_allclose(weights, SMALL.f(SMALL.ratio(state, batch, None))[0], atol=1e-5)
    assert weights.min() == pytest.approx(0.25)
    assert weights.max() == pytest.approx(0.75)


UNRELIABLE = {
    "mean zeta too large": Health(*map(jnp.float32, (2.5, 7.0, 0.0)), jnp.bool_(False)),
    "mean zeta too small": Health(*map(jnp.float32, (0.05, 0.05, 0.0)), jnp.bool_(False)),
    "effective sample size": Health(*map(jnp.float32, (1.0, 150.0, 0.0)), jnp.bool_(False)),
    "nu beyond its natural size": Health(*map(jnp.float32, (1.0, 1.0, 150.0)), jnp.bool_(False)),
}


@pytest.mark.parametrize("name", UNRELIABLE)
def test_an_unreliable_estimator_falls_back_to_weights_of_exactly_one_and_recovers(
    step: Any, fresh: Any, batch: Batch, name: str
) -> None:
    ill = eqx.tree_at(lambda s: s.health, fresh, UNRELIABLE[name])
    state, metrics, weights = step(SMALL, ill, batch, KEY)
    assert bool(state.health.unreliable)
    assert float(metrics["ratio/unreliable"]) == 1.0
    np.testing.assert_array_equal(weights, 1.0)
    # fallback off: the paper's way, weights whatever the health
    _, metrics, weights = step(eqx.tree_at(lambda d: d.fallback, SMALL, False), ill, batch, KEY)
    assert float(metrics["ratio/unreliable"]) == 1.0
    assert weights.min() == pytest.approx(0.25)
    assert weights.max() == pytest.approx(0.75)
    # the networks themselves are near ζ = 1: once the running means see that, the weights are back
    attempts = 0
    while state.health.unreliable and attempts < 60:
        state, _, weights = step(eqx.tree_at(lambda d: d.health_rate, SMALL, 0.1), state, batch, KEY)
        attempts += 1
    assert not bool(state.health.unreliable)
    assert np.ptp(weights) == pytest.approx(0.5)


@pytest.mark.parametrize("means", [(1.9, 5.0, 40.0), (0.12, 0.4, 5.0), (1.0, 1.0, 60.0)])
def test_health_within_the_limits_is_reliable(step: Any, fresh: Any, batch: Batch, means: tuple) -> None:
    health = Health(*map(jnp.float32, means), jnp.bool_(True))
    state, _, weights = step(SMALL, eqx.tree_at(lambda s: s.health, fresh, health), batch, KEY)
    assert not bool(state.health.unreliable)
    assert np.ptp(weights) > 0


def test_an_effective_sample_below_a_hundredth_is_unreliable(step: Any, fresh: Any, batch: Batch) -> None:
    """(Eζ)²/E[ζ²] is 0.0045 here, where Eζ/E[ζ²] is 0.03."""
    health = Health(*map(jnp.float32, (0.15, 5.0, 5.0)), jnp.bool_(False))
    state, metrics, _ = step(SMALL, eqx.tree_at(lambda s: s.health, fresh, health), batch, KEY)
    assert bool(state.health.unreliable)
    assert float(metrics["ratio/ess"]) == pytest.approx(0.0051, abs=2e-4)  # the means have moved by a hundredth


def test_running_means_of_health_follow_their_rate(step: Any, fresh: Any, batch: Batch) -> None:
    state, metrics, _ = step(SMALL, fresh, batch, KEY)
    zeta = np.asarray(SMALL.zeta(fresh, batch.observation, batch.action), np.float64)
    assert float(metrics["ratio/zeta_mean"]) == pytest.approx(zeta.mean(), rel=1e-5)
    assert float(state.health.zeta) == pytest.approx(0.99 + 0.01 * zeta.mean(), rel=1e-5)
    assert float(state.health.zeta_squared) == pytest.approx(0.99 + 0.01 * (zeta**2).mean(), rel=1e-5)
    nu = np.abs(np.asarray(fresh.nu(batch.observation, batch.action)))
    assert float(state.health.nu) == pytest.approx(0.01 * nu.mean(), rel=1e-4)


def test_a_step_that_is_not_finite_is_not_taken(step: Any, fresh: Any, batch: Batch) -> None:
    broken = eqx.tree_at(lambda b: b.next_observation, batch, batch.next_observation.at[3, 1].set(jnp.nan))
    state, metrics, weights = step(SMALL, fresh, broken, KEY)
    assert not np.isfinite(metrics["ratio/saddle"])
    assert bool(state.health.unreliable)
    np.testing.assert_array_equal(weights, 1.0)
    for name in ("nu", "zeta", "ratio", "multiplier", "optimiser"):
        for old, kept in zip(jax.tree.leaves(getattr(fresh, name)), jax.tree.leaves(getattr(state, name)), strict=True):
            np.testing.assert_array_equal(old, kept)
    healed, _, weights = step(SMALL, state, batch, KEY)
    assert not bool(healed.health.unreliable)
    assert np.ptp(weights) > 0
    assert np.any(np.asarray(healed.nu.mlp.layers[0].weight) != np.asarray(fresh.nu.mlp.layers[0].weight))


def test_weights_are_one_where_the_ratios_are_not_finite_even_without_fallback(fresh: Any, batch: Batch) -> None:
    dice = eqx.tree_at(lambda d: d.fallback, SMALL, False)
    broken = eqx.tree_at(lambda s: s.ratio.layers[-1].bias, fresh, jnp.full(1, jnp.nan))
    np.testing.assert_array_equal(dice.weights(broken, batch, None, KEY)[0], 1.0)


def test_without_unit_mean_the_multiplier_stays_zero(step: Any, fresh: Any, batch: Batch) -> None:
    state, _, _ = step(SMALL, fresh, batch, KEY)
    assert float(state.multiplier) == 0.0


@pytest.mark.parametrize(("field", "value"), [("route", "model"), ("positivity", "exp"), ("next_actions", 0)])
def test_bad_settings_are_named(field: str, value: Any) -> None:
    with pytest.raises(SappError, match=field):
        DualDICE(**{field: value})


def test_adam_without_means_of_gradients_is_adam() -> None:
    """Also of gradients as small as its ε, which is added to the root and not under it."""
    gradients = jnp.asarray([[1e-9, 1e-8, 1e-6, 1e-3, 1.0], [3e-9, -1e-8, 2e-6, 0.0, -5.0]], jnp.float32)
    ours, theirs = DualDICE(adam_b1=0.0)._adam(), optax.scale_by_adam(b1=0.0, b2=0.99, eps=1e-8)
    states = ours.init(gradients[0]), theirs.init(gradients[0])
    for gradient in gradients:
        (found, mine), (expected, other) = ours.update(gradient, states[0]), theirs.update(gradient, states[1])
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        states = mine, other
    with_means = DualDICE(adam_b1=0.9, adam_b2=0.999)._adam()
    first, _ = with_means.update(gradients[0], with_means.init(gradients[0]))
    np.testing.assert_allclose(first, gradients[0] / (np.abs(gradients[0]) + 1e-8), rtol=1e-5)
