"""The identities of the framework, to 1e-10 on 200 random MDPs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from problems import random_problems

from sapp.tabular import (
    EmpiricalMDP,
    LogMinMax,
    Pessimism,
    Ratio,
    Uniform,
    evaluate,
    iterate,
    penalty,
    sa_cql_iteration,
    sa_cql_q,
    unnormalised_occupancy,
)

EXACT = {"rtol": 0, "atol": 1e-10}
WEIGHTS = [Uniform(), Ratio(), Ratio(normalised=False), Ratio(power=0.5), Ratio(ceiling=1.5), LogMinMax(0.5, 2.0)]
DISCOUNTS = (0.9, 0.99)


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


def sa_cql_objective(
    model: EmpiricalMDP, policy: np.ndarray, pessimism: Pessimism, q: np.ndarray, new: np.ndarray
) -> np.ndarray:
    """The quadratic objective of ``sa_cql_iteration`` at Q' = ``new`` [...]."""
    weights = pessimism.state_weights(unnormalised_occupancy(model, policy), model)
    target = model.action_value(np.sum(policy * q, -1))
    push = np.sum(model.visits * weights * np.sum((policy - model.behaviour) * new, -1), -1)
    error = np.sum(model.visits[..., None] * model.behaviour * (new - target) ** 2, (-1, -2))
    return pessimism.alpha * push + 0.5 * error


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


# --- the core's DualDICE, with networks -----------------------------------------------------------------------------
