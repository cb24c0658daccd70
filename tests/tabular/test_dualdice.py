"""The exact saddle of DualDICE on random MDPs, and its estimator with networks."""

from __future__ import annotations

from typing import Any

import finite
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import LONG
from problems import random_problems

from sapp.core.spec import Batch, Spec
from sapp.tabular import (
    EmpiricalMDP,
    FiniteMDP,
    dualdice,
    garnet,
    model_of,
    policy_ratio,
    random_policies,
    state_ratio_from_zeta,
)
from sapp.weights import DualDICE

EXACT = {"rtol": 0, "atol": 1e-10}
DISCOUNTS = (0.9, 0.99)


def objective(model: EmpiricalMDP, policy: np.ndarray, nu: np.ndarray, zeta: np.ndarray) -> np.ndarray:
    """DualDICE's J(ν, ζ) [...]."""
    following = (model.transition @ np.sum(policy * nu, -1)[..., None, :, None])[..., 0]
    logged = model.visits[..., None] * model.behaviour
    inner = logged * ((nu - model.discount * following) * zeta - 0.5 * zeta**2)
    initial = np.sum(model.start * np.sum(policy * nu, -1), -1)
    return inner.sum((-1, -2)) - (1 - model.discount) * initial


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_dualdice_saddle_gives_the_ratios(discount: float) -> None:
    _, model, policy = random_problems(discount=discount)
    nu, zeta = dualdice(model, policy)
    ratio = policy_ratio(model, policy)
    np.testing.assert_allclose(zeta, ratio[..., None] * policy / model.behaviour, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(state_ratio_from_zeta(model, zeta), ratio, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(np.sum(model.visits * state_ratio_from_zeta(model, zeta), -1), 1, **EXACT)
    rng = np.random.default_rng(2)  # a saddle: ν cannot go lower, ζ cannot go higher
    here = objective(model, policy, nu, zeta)
    for _ in range(5):
        move = rng.normal(size=nu.shape)
        np.testing.assert_allclose(objective(model, policy, nu + move, zeta), here, rtol=1e-9, atol=1e-9)
        assert np.all(objective(model, policy, nu, zeta + move) < here)


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


def test_neural_dualdice_agrees_with_the_exact_saddle() -> None:
    """Root mean square error of the learnt state ratio, relative: 1.05 before, 0.05 after 4000 steps; asked: 0.1."""
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
