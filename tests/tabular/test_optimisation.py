"""The optimiser against enumeration, finite differences and its own certificate."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from problems import random_problems

from sapp import SappError
from sapp.tabular import (
    Fixed,
    LogMinMax,
    Pessimism,
    Ratio,
    Uniform,
    deterministic_policies,
    draw_log,
    empirical,
    enumerate_class,
    evaluate,
    garnet,
    optimise,
    optimise_many,
    random_policies,
    uniform_policy,
)
from sapp.tabular.optimisation import Objective, _best_response, is_concave

WEIGHTS = [Uniform(), Ratio(), Ratio(normalised=False), Ratio(power=0.5), LogMinMax()]


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", ["cql", "kl", "tv", "mmd", "count"])
def test_gradient_is_exact(name: str, weights: Any) -> None:
    _, models, policies = random_problems(count=1)
    model, policy = models[0], policies[0]
    pessimism = Pessimism(0.05, name, weights)
    objective = Objective(model, pessimism)
    parts = objective.parts(policy)
    assert parts.value == pytest.approx(float(model.expected(evaluate(model, policy, pessimism))), abs=1e-11)
    rng = np.random.default_rng(0)
    move = rng.normal(size=policy.shape)
    move -= move.mean(-1, keepdims=True)
    slope = (objective.value(policy + 1e-6 * move) - objective.value(policy - 1e-6 * move)) / 2e-6
    assert float(np.sum(parts.gradient * move)) == pytest.approx(slope, abs=1e-7)
    assert not jax.config.jax_enable_x64  # the global setting is left alone


@pytest.mark.parametrize("seed", range(5))
def test_without_pessimism_it_finds_the_enumerated_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mdp = garnet(rng, 1, 5, 3, 3)[0]
    model = empirical(draw_log(mdp, rng, 300, uniform_policy(5, 3), np.full(5, 0.2), every_pair=1), mdp.start, 0.9)
    every = deterministic_policies(5, 3)
    index, values = enumerate_class(model, every, Pessimism(0.0))
    found = optimise(model, Pessimism(0.0), restarts=2)
    assert found.certified
    assert found.gap <= 1e-6
    assert found.value == pytest.approx(values[index], abs=1e-6)
    np.testing.assert_allclose(found.policy, every[index], atol=1e-6)


@pytest.mark.parametrize("weights", [Uniform(), Ratio()])
@pytest.mark.parametrize("name", ["cql", "kl", "tv", "mmd"])
def test_it_beats_a_fine_grid_of_policies_by_no_more_than_the_grid_allows(name: str, weights: Any) -> None:
    """Two states, two actions: a grid of 201² policies; the certificate bounds the best of them."""
    rng = np.random.default_rng(3)
    mdp = garnet(rng, 1, 2, 2, 2)[0]
    model = empirical(draw_log(mdp, rng, 50, uniform_policy(2, 2), np.array([0.8, 0.2]), every_pair=1), mdp.start, 0.9)
    pessimism = Pessimism(0.2, name, weights)
    shares = np.linspace(0, 1, 201)
    first, second = np.meshgrid(shares, shares, indexing="ij")
    every = np.stack([np.stack([first, 1 - first], -1), np.stack([second, 1 - second], -1)], -2).reshape(-1, 2, 2)
    best = enumerate_class(model, every, pessimism)[1].max()
    found = optimise(model, pessimism)
    assert best - 1e-6 <= found.value <= best + 5e-3
    assert found.gap < 1e-4
    if found.certified:
        assert best <= found.value + found.gap + 1e-12


@pytest.mark.parametrize(("name", "weights"), [
    ("cql", Uniform()), ("cql", Ratio()), ("kl", Uniform()), ("tv", Uniform()), ("mmd", Uniform()),
    ("kl", Fixed(np.linspace(0.1, 3, 6))),
])
def test_the_certificate_bounds_every_policy(name: str, weights: Any) -> None:
    """From any policy, value + gap is at least the best value known."""
    _, models, _ = random_problems(count=3, seed=4)
    pessimism = Pessimism(0.1, name, weights)
    assert is_concave(pessimism)
    for number in range(3):
        model = models[number]
        best = optimise(model, pessimism, restarts=1)
        objective = Objective(model, pessimism)
        for policy in random_policies(np.random.default_rng(number), (10, 6, 3), scale=1.0):
            assert objective.value(policy) + objective.gap(policy) >= best.value - 1e-9
        assert best.gap < 1e-3


def test_concavity_is_claimed_only_where_it_holds() -> None:
    assert is_concave(Pessimism(1.0, "cql", Ratio(normalised=False)))
    assert not is_concave(Pessimism(1.0, "tv", Ratio()))
    assert not is_concave(Pessimism(1.0, "cql", Ratio(ceiling=2.0)))
    assert not is_concave(Pessimism(1.0, "cql", LogMinMax()))


def test_much_pessimism_returns_the_behaviour_policy() -> None:
    _, models, _ = random_problems(count=1)
    for name in ("cql", "kl", "tv", "mmd"):
        found = optimise(models[0], Pessimism(100.0, name), restarts=1)
        np.testing.assert_allclose(found.policy, models[0].behaviour, atol=0.02)


def test_policies_stay_in_the_support_of_the_log() -> None:
    rng = np.random.default_rng(0)
    mdp = garnet(rng, 1, 6, 4, 3)[0]
    behaviour = random_policies(rng, (6, 4), np.tile([True, True, False, True], (6, 1)))
    model = empirical(draw_log(mdp, rng, 30, behaviour), mdp.start, 0.9)
    found = optimise(model, Pessimism(0.01, "kl", Ratio()), restarts=2)
    assert np.all(found.policy[~model.support] == 0)
    np.testing.assert_allclose(found.policy.sum(-1), 1)


def test_many_problems_at_once_agree_with_one_at_a_time() -> None:
    _, models, _ = random_problems(count=8)
    pessimism = Pessimism(0.05, "cql", Ratio())
    policies, values = optimise_many(models, pessimism, restarts=2, steps=800)
    single = [optimise(models[i], pessimism, restarts=1).value for i in range(8)]
    assert policies.shape == (8, 6, 3)
    np.testing.assert_allclose(values, single, atol=3e-3)
    assert np.all(values <= np.array(single) + 1e-6)


def test_bad_arguments() -> None:
    _, models, _ = random_problems(count=2)
    with pytest.raises(SappError, match="takes one MDP"):
        optimise(models, Pessimism(0.1))
    with pytest.raises(SappError, match="restarts is 0"):
        optimise(models[0], Pessimism(0.1), restarts=0)


@pytest.mark.parametrize("name", ["mmd", "count"])
def test_the_best_response_to_a_linearisation_takes_the_action_of_the_steepest_rise(name: str) -> None:
    """By J itself: a little more of one action at one state, at a discount where occupancies are below 1."""
    _, models, policies = random_problems(count=4, discount=0.3)
    differs = 0
    for number in range(4):
        model, policy, pessimism = models[number], policies[number], Pessimism(2.0, name)
        objective = Objective(model, pessimism)
        parts = objective.parts(policy)
        allowed = np.ones(policy.shape, bool)
        allowed[0, 1] = False
        found = _best_response(name, policy, parts, model, allowed, np.full(6, 2.0))
        rises = np.full(policy.shape, -np.inf)
        for state, action in np.argwhere(allowed):
            more = policy.copy()
            more[state] = (1 - 1e-5) * policy[state] + 1e-5 * np.eye(3)[action]
            rises[state, action] = objective.value(more) - parts.value
        np.testing.assert_array_equal(found, np.eye(3)[rises.argmax(-1)])
        differs += int((np.where(allowed, parts.onward, -np.inf).argmax(-1) != rises.argmax(-1)).sum())
        assert parts.occupancy.min() < 1
    assert differs > 2


@pytest.mark.parametrize("name", ["cql", "kl", "tv"])
def test_the_best_response_is_better_than_any_other_policy_of_the_state(name: str) -> None:
    _, models, policies = random_problems(count=2)
    others = random_policies(np.random.default_rng(0), (500, 6, 3), scale=2.0)
    for number in range(2):
        model, pessimism = models[number], Pessimism(1.0, name)
        parts = Objective(model, pessimism).parts(policies[number])
        for size in (0.01, 0.3, 5.0):
            rate = size * np.array([1.0, 2.0, 0.5, 1.0, 0.0, 1.0])
            found = _best_response(name, policies[number], parts, model, np.ones((6, 3), bool), rate)
            np.testing.assert_allclose(found.sum(-1), 1.0)
            every = np.concatenate([found[None], others, deterministic_policies(6, 3)[::97], model.behaviour[None]])
            worth = np.sum(every * parts.onward, -1) - rate * np.asarray(pessimism.distance(every, model))
            assert np.all(worth[0] >= worth.max(0) - 1e-9)
