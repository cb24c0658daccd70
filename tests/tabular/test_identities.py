"""The identities of the framework, to 1e-10 on 200 random MDPs."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import LONG
from problems import COUNT, random_problems

from sapp.core.spec import Batch, Spec
from sapp.tabular import (
    FiniteMDP,
    LogMinMax,
    Pessimism,
    Ratio,
    Uniform,
    activity_matrix,
    dualdice,
    evaluate,
    garnet,
    iterate,
    model_of,
    normalised_occupancy,
    penalty,
    policy_ratio,
    random_policies,
    sa_cql_iteration,
    sa_cql_q,
    state_ratio_from_zeta,
    unnormalised_occupancy,
)
from sapp.tabular.dualdice import dualdice_objective
from sapp.tabular.evaluation import sa_cql_objective
from sapp.weights import DualDICE

EXACT = {"rtol": 0, "atol": 1e-10}
WEIGHTS = [Uniform(), Ratio(), Ratio(normalised=False), Ratio(power=0.5), Ratio(ceiling=1.5), LogMinMax(0.5, 2.0)]
DISCOUNTS = (0.9, 0.99)


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_occupancies_sum_to_what_their_names_say(discount: float) -> None:
    _, model, policy = random_problems(discount=discount)
    np.testing.assert_allclose(unnormalised_occupancy(model, policy).sum(-1) * (1 - discount), np.ones(COUNT), **EXACT)
    np.testing.assert_allclose(normalised_occupancy(model, policy).sum(-1), np.ones(COUNT), **EXACT)
    mean = np.sum(model.visits * policy_ratio(model, policy, normalised=False), -1)
    np.testing.assert_allclose(mean * (1 - discount), np.ones(COUNT), **EXACT)


def test_occupancy_is_the_sum_over_time() -> None:
    mdp, _, policy = random_problems()
    total, now = np.zeros((COUNT, 6)), mdp.start
    for t in range(400):
        total = total + 0.9**t * now
        now = (now[:, None] @ mdp.step(policy))[:, 0]
    np.testing.assert_allclose(unnormalised_occupancy(mdp, policy), total, **EXACT)


def test_activity_matrix_carries_the_policy() -> None:
    mdp, _, policy = random_problems()
    activity = activity_matrix(policy)
    assert activity.shape == (COUNT, 6, 18)
    np.testing.assert_allclose(activity @ mdp.transition.reshape(COUNT, 18, 6), mdp.step(policy), **EXACT)
    gain = (activity @ mdp.reward.reshape(COUNT, 18, 1))[..., 0]
    np.testing.assert_allclose(gain, (policy * mdp.reward).sum(-1), **EXACT)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("discount", DISCOUNTS)
def test_iterated_evaluation_is_the_closed_form(weights: Any, discount: float) -> None:
    _, model, policy = random_problems(discount=discount)
    pessimism = Pessimism(0.05, "kl", weights)
    iterated, steps = iterate(model, policy, pessimism, tolerance=1e-15)
    closed = evaluate(model, policy, pessimism)
    np.testing.assert_allclose(iterated, closed, rtol=1e-11, atol=1e-10)
    assert steps > 10


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("discount", DISCOUNTS)
def test_q_form_of_sa_cql_has_the_same_value(weights: Any, discount: float) -> None:
    _, model, policy = random_problems(discount=discount)
    pessimism = Pessimism(0.05, "cql", weights)
    q = sa_cql_q(model, policy, pessimism)
    np.testing.assert_allclose((policy * q).sum(-1), evaluate(model, policy, pessimism), rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(sa_cql_iteration(model, policy, pessimism, q), q, rtol=1e-12, atol=1e-10)


def test_sa_cql_step_minimises_its_objective() -> None:
    """The objective is quadratic: at its minimum the exact central differences vanish, and any move costs more."""
    _, model, policy = random_problems()
    rng = np.random.default_rng(1)
    pessimism, q = Pessimism(0.3, "cql", Ratio()), rng.normal(size=policy.shape)
    best = sa_cql_iteration(model, policy, pessimism, q)
    for _ in range(5):
        move = rng.normal(size=policy.shape)
        up, down = (sa_cql_objective(model, policy, pessimism, q, best + sign * move) for sign in (1, -1))
        np.testing.assert_allclose(up - down, 0, **EXACT)
        assert np.all(up > sa_cql_objective(model, policy, pessimism, q, best))


@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_difference_of_values_is_explained_by_the_errors_of_the_log(weights: Any) -> None:
    """⟨ρ, V − v_p⟩ = ⟨d_D, Aᵖ[(r − r_D) + γ(P − P_D)V] + αp⟩."""
    mdp, model, policy = random_problems()
    pessimism = Pessimism(0.2, "tv", weights)
    value = mdp.value(policy)
    error = mdp.action_value(value) - model.action_value(value)
    right = np.sum(policy * error, -1) + pessimism.alpha * penalty(model, policy, pessimism)
    left = mdp.expected(value - evaluate(model, policy, pessimism))
    np.testing.assert_allclose(left, np.sum(unnormalised_occupancy(model, policy) * right, -1), **EXACT)


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_dualdice_saddle_gives_the_ratios(discount: float) -> None:
    _, model, policy = random_problems(discount=discount)
    nu, zeta = dualdice(model, policy)
    ratio = policy_ratio(model, policy)
    np.testing.assert_allclose(zeta, ratio[..., None] * policy / model.behaviour, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(state_ratio_from_zeta(model, zeta), ratio, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(np.sum(model.visits * state_ratio_from_zeta(model, zeta), -1), 1, **EXACT)
    rng = np.random.default_rng(2)  # a saddle: ν cannot go lower, ζ cannot go higher
    here = dualdice_objective(model, policy, nu, zeta)
    for _ in range(5):
        move = rng.normal(size=nu.shape)
        np.testing.assert_allclose(dualdice_objective(model, policy, nu + move, zeta), here, rtol=1e-9, atol=1e-9)
        assert np.all(dualdice_objective(model, policy, nu, zeta + move) < here)


def test_averaging_zeta_falls_short_by_what_leaves_the_support() -> None:
    rng = np.random.default_rng(0)
    mdp = garnet(rng, 50)
    behaviour = random_policies(rng, (50, 6, 3))
    behaviour[..., 0] = 0
    behaviour /= behaviour.sum(-1, keepdims=True)
    model, policy = model_of(mdp, behaviour, rng.dirichlet(np.ones(6), 50)), random_policies(rng, (50, 6, 3))
    _, zeta = dualdice(model, policy)
    expected = policy_ratio(model, policy) * policy[..., 1:].sum(-1)
    np.testing.assert_allclose(state_ratio_from_zeta(model, zeta), expected, **EXACT)


# --- the core's DualDICE, with networks -----------------------------------------------------------------------------


def _finite() -> Any:
    path = Path(__file__).parents[1] / "weights" / "finite.py"
    spec = importlib.util.spec_from_file_location("finite_for_tabular", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_neural_dualdice_agrees_with_the_exact_saddle() -> None:
    """Root mean square error of the learnt state ratio, relative: 1.05 before, 0.05 after 4000 steps; asked: 0.1."""
    finite = _finite()
    problem = finite.problem(2)
    states, rows, size = problem.states, 20_000, 128

    def table(policy: Any) -> np.ndarray:
        return np.stack([1 - policy.positive(), policy.positive()], -1)

    mdp = FiniteMDP(problem.transition, np.tanh(problem.reward), problem.start, problem.discount)
    model = model_of(mdp, table(problem.behaviour), problem.visits)
    _, zeta = dualdice(model, table(problem.target))
    exact = state_ratio_from_zeta(model, zeta)
    np.testing.assert_allclose(exact, problem.state_ratio(), rtol=1e-10)

    data = problem.data(rows, 0)
    eye = jnp.eye(states)
    arrays = [jnp.asarray(getattr(data, name), jnp.float32)
              for name in ("observation", "action", "reward", "next_observation", "terminal")]
    start = jnp.log(jnp.asarray(problem.start, jnp.float32))
    dice = DualDICE(hidden=(32, 32), nu_lr=3e-4, zeta_lr=1e-3, ratio_lr=1e-3)

    def step(count: Any, state: Any) -> Any:
        row_key, start_key, key = jax.random.split(jax.random.fold_in(jax.random.PRNGKey(0), count), 3)
        chosen = jax.random.randint(row_key, (size,), 0, rows)
        initial = eye[jax.random.categorical(start_key, start, shape=(size,))]
        batch = Batch(*(array[chosen] for array in arrays), initial)
        return dice.update(state, batch, problem.target, jnp.float32(problem.discount), key)[0]

    def ratio(state: Any) -> np.ndarray:
        none = jnp.zeros(states)
        batch = Batch(eye, none[:, None], none, eye, none, eye)
        return np.asarray(dice.ratio(state, batch, problem.target))

    def error(state: Any) -> float:
        return float(np.sqrt(np.mean((ratio(state) - exact) ** 2) / np.mean(exact**2)))

    state = dice.init(jax.random.PRNGKey(1), Spec(states, 1, jnp.zeros(states), jnp.ones(states)))
    assert error(state) > 0.3
    state = jax.jit(lambda state: jax.lax.fori_loop(0, 4000, step, state), compiler_options=LONG)(state)
    assert error(state) < 0.1
