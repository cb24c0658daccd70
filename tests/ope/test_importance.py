"""Importance sampling against exact values of a finite MDP, and against a plain loop."""

from __future__ import annotations

from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.data import Dataset
from sapp.networks import TanhGaussian
from sapp.ope.estimators import Settings
from sapp.ope.importance import importance
from sapp.ope.offline import evaluate_offline
from sapp.ope.targets import Targets, from_actor, from_function
from sapp.tabular.estimator_logs import draw_logs, normalised_value, table_policy
from sapp.tabular.tasks import HORIZON, Task, ward


@pytest.fixture(scope="module")
def task() -> Task:
    return ward(np.random.default_rng(3), states=6, actions=3, discount=0.6)


@pytest.fixture(scope="module")
def logs(task: Task) -> Dataset:
    return draw_logs(task.mdp, task.behaviour, 4000, HORIZON, 0, task.ends, task.paying)


def mixed(task: Task, share: float) -> np.ndarray:
    """The behaviour, moved some way towards one action everywhere."""
    return (1 - share) * task.behaviour + share * np.eye(3)[np.zeros(len(task.behaviour), int)]


def test_both_cover_the_truth(task: Task, logs: Dataset) -> None:
    policies = [task.behaviour, mixed(task, 0.3)]
    targets = Targets.of([table_policy(str(i), policy) for i, policy in enumerate(policies)], logs)
    found = importance(logs, targets, 0.6)
    assert found is not None
    for number, policy in enumerate(policies):
        truth = normalised_value(task.mdp, policy)
        for name in ("wis", "pdis"):
            interval = found.values[name].interval(number)
            assert interval.low <= truth <= interval.high
    assert found.effective_episodes[0] == pytest.approx(logs.num_episodes)
    assert found.effective_episodes[1] < 0.9 * logs.num_episodes


@pytest.mark.parametrize("cut", [False, True])
def test_they_are_what_a_plain_loop_gives(task: Task, logs: Dataset, cut: bool) -> None:
    few, policy = logs.take_episodes(40), mixed(task, 0.5)
    if cut:  # beyond the last row of every third episode nothing is known
        terminal = few.terminal.copy()
        terminal[few.episode_ends[::3]] = False
        few = replace(few, terminal=terminal, timeout=few.terminal & ~terminal)
    targets = Targets.of([table_policy("x", policy)], few)
    found = importance(few, targets, 0.6)
    assert found is not None
    weights, returns = [], []
    top = np.zeros(int(few.episode_lengths.max()))
    bottom = np.zeros_like(top)
    for start, end in zip(few.episode_starts, few.episode_ends, strict=True):
        weight, value = 1.0, 0.0
        for step in range(len(top)):
            row = start + step
            if row <= end:
                state, action = few.observation[row].argmax(), few.action[row]
                weight *= policy[state, action] / task.behaviour[state, action]
                value += 0.6**step * few.reward[row]
                top[step] += weight * few.reward[row]
                bottom[step] += weight
            elif few.terminal[end]:
                bottom[step] += weight
        weights.append(weight)
        returns.append(value)
    kept = 0.6 ** np.arange(len(top)) > 1e-5
    assert found.values["wis"].point[0] == pytest.approx(0.4 * np.average(returns, weights=weights), rel=1e-3)
    expected = 0.4 * sum(0.6**t * top[t] / bottom[t] for t in np.flatnonzero(kept))
    assert found.values["pdis"].point[0] == pytest.approx(expected, rel=1e-3)


def test_they_stand_beside_the_other_estimates(task: Task, logs: Dataset) -> None:
    few = logs.take_episodes(200)
    report = evaluate_offline([table_policy("own", task.behaviour)], few, Settings(discount=0.6, exact=True))
    row = report.row(0)
    assert row["wis"] == pytest.approx(report.values["wis"].point[0])
    assert row["importance_effective_episodes"] == pytest.approx(200)
    plain = evaluate_offline(
        [table_policy("own", task.behaviour)], replace(few, extras={}), Settings(discount=0.6, exact=True)
    )
    assert "wis" not in plain.row(0)


def test_a_policy_that_never_does_what_was_logged_has_no_value() -> None:
    data = Dataset.from_arrays(
        np.zeros((4, 1)), [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 1], num_actions=2, extras={"log_prob": np.zeros(4)}
    )
    targets = Targets.of([from_function("other", lambda x: np.ones(len(x), int), data)], data)
    found = importance(data, targets, 0.9)
    assert found is not None
    assert np.isnan(found.values["wis"].point).all()


class Gaussian(eqx.Module):
    """tanh of a normal variable around a tenth of the state, moved by ``shift``."""

    shift: float

    def __call__(self, observation: jax.Array) -> TanhGaussian:
        mean = 0.1 * observation + self.shift
        return TanhGaussian(mean, jnp.full_like(mean, -0.5))


def test_densities_of_continuous_actions_in_other_units() -> None:
    """One-step episodes with bounds [0, 10]: WIS is the mean of rewards weighted by ratios of densities."""
    rng = np.random.default_rng(0)
    state = rng.normal(size=(4_000, 1)).astype(np.float32)
    behaviour = Gaussian(0.0)(jnp.asarray(state))
    action, density = (np.asarray(each) for each in behaviour.sample(jax.random.PRNGKey(0)))
    raw = 5 + 5 * action
    data = Dataset.from_arrays(
        state, raw, raw[:, 0], np.ones(4_000), action_low=0, action_high=10, extras={"log_prob": density - np.log(5)}
    )
    policies = [from_actor(str(shift), Gaussian(shift), False, "sample") for shift in (0.0, 0.3)]
    policies.append(from_actor("mode", Gaussian(0.3), False, "mode"))
    found = importance(data, Targets.of(policies, data), 0.9)
    assert found is not None
    assert found.effective_episodes[0] == pytest.approx(4_000, rel=1e-4)
    drawn = 5 + 5 * np.asarray(Gaussian(0.3)(jnp.asarray(state)).sample(jax.random.PRNGKey(1))[0])
    for number, truth in enumerate((raw.mean(), drawn.mean())):
        assert found.values["wis"].point[number] == pytest.approx(0.1 * truth, rel=0.02)
        assert found.values["pdis"].point[number] == pytest.approx(found.values["wis"].point[number], rel=1e-6)
    assert np.isnan(found.values["wis"].point[2])
