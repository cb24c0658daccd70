"""Off-policy estimates against exact values of finite MDPs, and against independent routes to the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from ward_logs import logs, targets_of

from sapp.core.errors import SappError
from sapp.core.statistics import spearman
from sapp.ope.diagnostics import Verdict
from sapp.ope.doubly_robust import dice_of_bags, doubly_robust, estimate, fqe_of_bags, spread
from sapp.ope.estimators import Fitted, Settings, bag_counts, fit
from sapp.ope.exact import fit_exactly
from sapp.ope.offline import SHARE, evaluate_offline, scales
from sapp.tabular.estimator_logs import normalised_value, table_policy
from sapp.tabular.mdp import FiniteMDP
from sapp.tabular.tasks import Task


def test_all_three_estimates_cover_the_truth(task: Task, policies: dict[str, np.ndarray]) -> None:
    data = logs(task, 3000)
    report = evaluate_offline(
        [table_policy(name, policy) for name, policy in policies.items()], data, Settings(discount=0.9, exact=True)
    )
    for number, policy in enumerate(policies.values()):
        truth = normalised_value(task.mdp, policy)
        for estimator in ("fqe", "dr"):
            found = report.interval(number, estimator)
            assert found.low <= truth <= found.high
            assert found.estimate == pytest.approx(truth, rel=0.1)
        assert report.diagnoses[number].verdict == Verdict.TRUSTED
    own = report.behaviour
    assert own.low <= normalised_value(task.mdp, task.behaviour) <= own.high


def test_networks_agree_with_exact_solutions(task: Task, policies: dict[str, np.ndarray]) -> None:
    data = logs(task, 400)
    targets = targets_of(policies, data)
    settings = Settings(discount=0.9, steps=1200, bags=4, hidden=(24,), batch_size=96, seed=1)
    found, exact = fit(data, targets, settings), fit_exactly(data, targets, settings)
    np.testing.assert_allclose(fqe_of_bags(found), fqe_of_bags(exact), rtol=0.08)
    np.testing.assert_allclose(dice_of_bags(found), dice_of_bags(exact), rtol=0.25)
    truth = [normalised_value(task.mdp, policy) for policy in policies.values()]
    values = estimate(found)
    for name in ("fqe", "dr"):
        assert spearman(values[name].point, truth) == pytest.approx(1.0)
    for number in range(3):
        low, high = values["dr"].interval(number)[1:]
        assert low <= truth[number] <= high


def test_the_combination_is_right_if_either_part_is() -> None:
    """Exact ratios mend any values, exact values any ratios: one-step logs from the starts of a known MDP."""
    rng = np.random.default_rng(5)
    states, actions, count, gamma = 5, 2, 40_000, 0.8
    mdp = FiniteMDP(
        rng.dirichlet(np.ones(states), (states, actions)), rng.uniform(-1, 1, (states, actions)),
        np.full(states, 1 / states), gamma,
    )  # fmt: skip
    policy = rng.dirichlet(np.ones(actions), states)
    state, action = rng.integers(states, size=count), rng.integers(actions, size=count)
    following = (np.cumsum(mdp.transition, -1)[state, action] < rng.random((count, 1))).sum(1)
    step = np.einsum("sa,sat->st", policy, mdp.transition)
    occupancy = np.linalg.solve(np.eye(states) - gamma * step.T, (1 - gamma) * mdp.start)
    exact_zeta = (occupancy[:, None] * policy / (mdp.start[:, None] / actions))[state, action]
    exact_value = mdp.value(policy)
    truth = normalised_value(mdp, policy)

    def combined(value: np.ndarray, q: np.ndarray, zeta: np.ndarray) -> float:
        error = mdp.reward[state, action] + gamma * value[following] - q[state, action]
        ones = np.ones((1, 2, count))
        fitted = Fitted(
            value[state] * ones, ones, zeta * error * ones, ones, ones, np.zeros((2, count), int), np.ones(count),
            False, 1.0, ones[..., 0], ones[..., 0] > 0, np.ones((10, 1, 2)), 0.0, Settings(discount=gamma),
        )  # fmt: skip
        return float(doubly_robust(fitted, 0, 2).point[0])

    wrong_q = rng.normal(size=(states, actions))
    wrong_value = np.sum(policy * wrong_q, -1)
    assert combined(wrong_value, wrong_q, exact_zeta) == pytest.approx(truth, abs=0.05)
    assert combined(exact_value, mdp.action_value(exact_value), 3 * rng.random(count)) == pytest.approx(truth, abs=0.05)
    assert combined(wrong_value, wrong_q, np.ones(count)) != pytest.approx(truth, abs=0.05)


def test_replicates_have_the_bags_covariance() -> None:
    bags = np.random.default_rng(0).normal(size=(3, 12)) * np.array([[1.0], [2.0], [0.1]])
    found = spread(bags, 0, 200_000)
    # Student's t of 11 degrees of freedom has variance 11/9
    np.testing.assert_allclose(np.cov(found.replicates.T), np.cov(bags) * 11 / 9, rtol=0.05, atol=0.01)
    np.testing.assert_allclose(found.point, bags.mean(1))


def test_every_episode_is_missed_by_some_bag() -> None:
    counts = bag_counts(500, 4, 0)
    assert (counts.sum(1) == 500).all()
    assert ((counts == 0).any(0)).all()


@pytest.mark.parametrize(
    ("more", "message"),
    [({"discount": 1.0}, "discount is 1"), ({"bags": 1}, "bags is 1"), ({"steps": 0}, "steps is 0")],
)
def test_wrong_settings_are_named(more: dict[str, float], message: str) -> None:
    with pytest.raises(SappError, match=message):
        Settings(**more)  # type: ignore[arg-type]


def test_where_all_starts_are_alike_the_yardstick_is_a_share_of_all_states_spread() -> None:
    anywhere = np.linspace(0.0, 10.0, 1_001)
    assert scales(anywhere, np.full(20, 3.0)) == pytest.approx((0.0, SHARE * 9.0))
    assert scales(anywhere, anywhere) == pytest.approx((9.0, 9.0))
