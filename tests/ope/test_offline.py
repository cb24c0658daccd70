"""Off-policy estimates against exact values of finite MDPs, and against independent routes to the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.core.statistics import spearman
from sapp.data import Dataset
from sapp.ope.diagnostics import Diagnosis, Verdict, diagnose
from sapp.ope.doubly_robust import Values, dice_of_bags, doubly_robust, estimate, fqe_of_bags, spread
from sapp.ope.estimators import Fitted, Settings, bag_counts, fit
from sapp.ope.exact import fit_exactly
from sapp.ope.fqe import returns_to_go
from sapp.ope.offline import Offline, evaluate_offline
from sapp.ope.selection import select
from sapp.ope.targets import Targets, from_function
from sapp.tabular.estimator_logs import draw_logs, normalised_value, table_policy
from sapp.tabular.logs import empirical, log_of
from sapp.tabular.mdp import FiniteMDP
from sapp.tabular.tasks import HORIZON, Task, ward


@pytest.fixture(scope="module")
def task() -> Task:
    return ward(np.random.default_rng(3), states=6, actions=3, discount=0.9)


def tilt(task: Task, temperature: float) -> np.ndarray:
    q = task.mdp.action_value(task.mdp.value(task.behaviour))
    weight = task.behaviour * np.exp((q - q.max(-1, keepdims=True)) / temperature)
    return weight / weight.sum(-1, keepdims=True)


@pytest.fixture(scope="module")
def policies(task: Task) -> dict[str, np.ndarray]:
    return {"behaviour": task.behaviour, "better": tilt(task, 0.1), "worse": tilt(task, -0.1)}


def logs(task: Task, episodes: int, seed: int = 0) -> Dataset:
    return draw_logs(task.mdp, task.behaviour, episodes, HORIZON, seed, task.ends, task.paying)


def targets_of(policies: dict[str, np.ndarray], data: Dataset) -> Targets:
    return Targets.of([table_policy(name, policy) for name, policy in policies.items()], data)


def test_logs_of_a_finite_task(task: Task) -> None:
    data = logs(task, 2000)
    assert data.num_episodes == 2000
    assert data.terminal[data.episode_ends].all()
    mean = (0.9 ** data.step[data.episode_ends] * data.reward[data.episode_ends]).mean()
    exact = normalised_value(task.mdp, task.behaviour) / 0.1
    assert mean == pytest.approx(exact, abs=4 * 0.5 / 2000**0.5)
    np.testing.assert_allclose(returns_to_go(data, data.reward, 0.9)[data.episode_starts].mean(), mean, rtol=1e-6)


def test_exact_estimates_solve_the_empirical_mdp(task: Task, policies: dict[str, np.ndarray]) -> None:
    """Without pseudo-rows, every bag's FQE is the value of the bag's empirical MDP by the tabular package."""
    data = logs(task, 3000)
    settings = Settings(discount=0.9, bags=3, exact=True)
    fitted = fit_exactly(data, targets_of(policies, data), settings, pseudo_count=1e-9)
    counts = bag_counts(data.num_episodes, 3, 0)
    episode = np.repeat(np.arange(data.num_episodes), data.episode_lengths)
    here, there = data.observation.argmax(1), data.next_observation.argmax(1)
    shape = task.mdp.transition.shape
    for bag in range(3):
        held = counts[bag][episode]
        table = np.zeros(shape, np.int64)
        np.add.at(table, (here, data.action, there), held)
        log = log_of(task.mdp, table)
        log = type(log)(log.counts, table[..., task.paying].astype(float))
        start = np.bincount(here[data.episode_starts], counts[bag], shape[0])
        model = empirical(log, start / start.sum(), 0.9)
        # rows never leave an end: there the empirical MDP stays for ever, at reward 0
        for number, policy in enumerate(policies.values()):
            assert fqe_of_bags(fitted)[number, bag] == pytest.approx(
                0.1 * float(start @ model.value(policy)) / start.sum()
            )
            # for pairs that the bag holds, DualDICE's saddle gives the same value
            assert dice_of_bags(fitted)[number, bag] == pytest.approx(fqe_of_bags(fitted)[number, bag], rel=1e-6)


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


def test_a_policy_off_the_data_is_refused() -> None:
    rng = np.random.default_rng(0)
    steps, size = 20, 60 * 20
    action = rng.uniform(-1.0, 0.0, (size, 1)).astype(np.float32)
    observation = rng.normal(size=(size, 2)).astype(np.float32)
    data = Dataset(
        observation, action, 1 - action[:, 0] ** 2, rng.normal(size=(size, 2)), np.zeros(size, bool),
        (np.arange(size) + 1) % steps == 0, name="half",
    )  # fmt: skip
    settings = Settings(discount=0.8, steps=300, bags=2, hidden=(8,), batch_size=32)
    inside = from_function("inside", lambda x: np.full((len(x), 1), -0.5), data)
    outside = from_function("outside", lambda x: np.full((len(x), 1), 0.95), data)
    report = evaluate_offline([inside, outside], data, settings)
    assert report.diagnoses[0].off_data < 0.1
    assert report.diagnoses[1].off_data > 0.9
    assert report.diagnoses[1].verdict == Verdict.REFUSED
    assert "nearly) never take" in " ".join(map(str, report.diagnoses[1].reasons))
    row = report.row(1)
    assert row["value"] is None
    assert row["fqe"] == pytest.approx(report.interval(1, "fqe").estimate)
    chosen = select(report)
    assert [each.name for each in chosen.order] == ["inside"]
    assert chosen.refused[0][0] == "outside"


def test_a_fit_that_was_hardly_begun_is_not_trusted(task: Task) -> None:
    data = logs(task, 300)
    policy = [table_policy("behaviour", task.behaviour)]
    for steps, horizons, verdict in ((300, 3.0, Verdict.DOUBTFUL), (40, 0.4, Verdict.REFUSED)):
        settings = Settings(discount=0.9, steps=steps, bags=6, hidden=(8,), batch_size=32)
        found = evaluate_offline(policy, data, settings).diagnoses[0]
        assert found.horizons == pytest.approx(horizons)
        assert found.verdict == verdict
        assert f"fitted for {steps} steps, {horizons:.1f} times the horizon" in " ".join(map(str, found.reasons))


def test_an_impossible_estimate_is_refused(task: Task) -> None:
    data = logs(task, 3000)
    fitted = fit_exactly(data, targets_of({"own": task.behaviour}, data), Settings(discount=0.9, exact=True))
    values = estimate(fitted)
    rewards = float(data.reward.min()), float(data.reward.max())

    def verdict(shift: float) -> Diagnosis:
        moved = values | {"dr": Values(values["dr"].point + shift, values["dr"].replicates + shift)}
        return diagnose(fitted, moved, np.zeros(1), rewards, 1.0)[0]

    assert verdict(0.0).verdict == Verdict.TRUSTED
    beyond = verdict(rewards[1] - rewards[0] + 1.0)
    assert beyond.verdict == Verdict.REFUSED
    assert "impossible for these rewards" in " ".join(map(str, beyond.reasons))
    # one that is beyond by less than it is uncertain is doubtful, not refused
    wide = values["dr"].point + (rewards[1] - rewards[0]) * np.random.default_rng(0).normal(size=(500, 1))
    point = np.array([rewards[1] + 0.1 * (rewards[1] - rewards[0])])
    unsure = diagnose(fitted, values | {"dr": Values(point, wide)}, np.zeros(1), rewards, 1e3, None)[0]
    assert unsure.verdict == Verdict.DOUBTFUL


def test_too_few_episodes_are_refused(task: Task) -> None:
    with pytest.raises(SappError, match="one episode is logged"):
        evaluate_offline([table_policy("x", task.behaviour)], logs(task, 1), Settings(discount=0.9, exact=True))
    report = evaluate_offline([table_policy("x", task.behaviour)], logs(task, 3), Settings(discount=0.9, exact=True))
    assert report.diagnoses[0].verdict == Verdict.REFUSED


def test_selection_is_by_common_replicates(task: Task, policies: dict[str, np.ndarray]) -> None:
    data = logs(task, 3000)
    report = evaluate_offline(
        [table_policy(name, policy) for name, policy in policies.items()], data, Settings(discount=0.9, exact=True)
    )
    found = select(report)
    assert [each.name for each in found.order] == ["better", "behaviour", "worse"]
    assert sum(each.best for each in found.order) == pytest.approx(1.0)
    first, second = found.order[:2]
    apart = np.hypot(first.value.high - first.value.low, second.value.high - second.value.low)
    assert second.behind.high - second.behind.low < 0.8 * apart  # what policies have in common cancels
    assert 0 <= found.regret <= found.regret_high
    assert found.regret == pytest.approx(
        float(np.mean(report.values["dr"].replicates.max(1) - report.values["dr"].replicates[:, 1]))
    )


def test_an_uncertain_choice_has_regret() -> None:
    rng = np.random.default_rng(0)
    replicates = rng.normal(size=(20_000, 2))
    values = Values(np.zeros(2), replicates)

    class Sure:
        verdict, chosen, reasons = Verdict.TRUSTED, "dr", ()

    report = Offline(("a", "b"), "d", "", {"dr": values}, [Sure(), Sure()], None, Settings(discount=0.5), 0.0)  # type: ignore[arg-type,list-item]
    found = select(report)
    assert found.order[0].best == pytest.approx(0.5, abs=0.02)
    assert found.regret == pytest.approx(1 / np.pi**0.5, abs=0.02)  # E[max(a, b) − a] of two standard normals


@pytest.mark.parametrize(
    ("more", "message"),
    [({"discount": 1.0}, "discount is 1"), ({"bags": 1}, "bags is 1"), ({"steps": 0}, "steps is 0")],
)
def test_wrong_settings_are_named(more: dict[str, float], message: str) -> None:
    with pytest.raises(SappError, match=message):
        Settings(**more)  # type: ignore[arg-type]
