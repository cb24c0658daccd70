"""Policies reduced to tables: draws, units, and answers that do not fit."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.data import Dataset
from sapp.networks import GaussianActor
from sapp.ope import targets
from sapp.ope.targets import TargetPolicy, Targets, from_actor, from_function, from_units
from sapp.runs.problem import Problem

RNG = np.random.default_rng(0)
SEEN = RNG.normal(size=(20, 3)).astype(np.float32)
ENDS = np.arange(20) % 5 == 4
DATA = Dataset(
    SEEN, RNG.uniform(0, 10, (20, 2)), np.ones(20), SEEN + 1, np.zeros(20, bool), ENDS, action_low=0.0, action_high=10.0
)
DISCRETE = Dataset(SEEN, np.arange(20) % 3, np.ones(20), SEEN, np.zeros(20, bool), ENDS, num_actions=3)


def test_a_function_answers_in_the_datas_units() -> None:
    found = Targets.of([from_function("middle", lambda seen: np.full((len(seen), 2), 7.5), DATA)], DATA, states=6)
    assert found.next.shape == (1, 20, 1, 2)
    assert found.start.shape == (1, 4, 1, 2)
    np.testing.assert_allclose(found.here, 0.5)
    assert found.rows.tolist() == [0, 3, 7, 11, 15, 19]
    one_hot = Targets.of([from_function("second", lambda seen: np.ones(len(seen)), DISCRETE)], DISCRETE)
    np.testing.assert_array_equal(one_hot.start[0], np.tile([0, 1, 0], (4, 1)))


def test_a_networks_mode_is_repeated_beside_draws_of_another() -> None:
    actor = GaussianActor(jax.random.PRNGKey(0), 3, 2, (8,))
    mode, draws = (from_actor(act, actor, False, act) for act in ("mode", "sample"))
    found = Targets.of([mode, draws], DATA, draws=4)
    assert found.next.shape == (2, 20, 4, 2)
    np.testing.assert_array_equal(found.next[0], np.repeat(found.next[0][:, :1], 4, axis=1))
    assert np.asarray(found.next[1]).std(1).min() > 0
    again = Targets.of([mode, draws], DATA, draws=4)
    np.testing.assert_array_equal(found.next, again.next)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda seen, seed, count: np.zeros((len(seen), 1, 3)), r"gave actions of shape \(20, 1, 3\)"),
        (lambda seen, seed, count: np.full((len(seen), 1, 2), np.nan), "gives actions that are not finite"),
    ],
)
def test_answers_that_do_not_fit_are_named(answer, message: str) -> None:
    with pytest.raises(SappError, match=f"policy 'odd' {message}"):
        Targets.of([TargetPolicy("odd", answer)], DATA)


def test_policies_need_names_of_their_own_and_known_actions() -> None:
    same = from_function("one", lambda seen: np.zeros((len(seen), 2)), DATA)
    for policies in ([], [same, same]):
        with pytest.raises(SappError, match="at least one policy to evaluate, each with a name of its own"):
            Targets.of(policies, DATA)
    for few, number in ((0, 5), (0, 3), (0, -1), (1, 2)):
        five = from_function("five", lambda seen, few=few, number=number: np.full(len(seen) - few, number), DISCRETE)
        with pytest.raises(SappError, match=r"policy 'five' gave actions outside 0..2; is it another task's\?"):
            five.actions(SEEN, 0, 1)


def test_a_policy_of_other_units_is_asked_and_answers_in_those_of_the_logs() -> None:
    """It saw observations as (raw − 1)/2 and acted from −5 to 5; these logs hold (raw − 3)/4 and act from 0 to 10."""
    raw = 3 + 4 * SEEN
    mine = Dataset(SEEN, DATA.action, DATA.reward, SEEN, DATA.terminal, ENDS, action_low=0.0, action_high=10.0,
                   observation_offset=np.full(3, 3.0), observation_scale=np.full(3, 4.0))  # fmt: skip
    theirs = Problem("x", None, "f", None, None, 3, 2, [-5.0, -5.0], [5.0, 5.0], 0, 0,
                     observation_offset=[1.0] * 3, observation_scale=[2.0] * 3)  # fmt: skip
    asked = []

    def actions(observation: np.ndarray, seed: int, count: int) -> np.ndarray:
        asked.append((observation, seed, count))
        return np.tile([[[0.5, 1.0]]], (len(observation), 1, 1))  # 2.5 and 5 in its own units

    answer = from_units(TargetPolicy("odd", actions), theirs, mine).actions(SEEN, 3, 7)
    np.testing.assert_allclose(asked[0][0], (raw - 1) / 2, rtol=1e-5, atol=1e-5)
    assert asked[0][1:] == (3, 7)
    np.testing.assert_allclose(answer, np.tile([[[-0.5, 0.0]]], (20, 1, 1)), atol=1e-6)


def test_answers_and_densities_do_not_depend_on_how_many_states_are_asked_about_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    actor = GaussianActor(jax.random.PRNGKey(0), 3, 2, (8,))
    mode, draws = (from_actor(act, actor, False, act) for act in ("mode", "sample"))
    unit = np.tanh(RNG.normal(size=(20, 2))).astype(np.float32)
    whole = mode.actions(SEEN, 0, 1), draws.log_prob(SEEN, unit)
    assert mode.log_prob is None
    monkeypatch.setattr(targets, "CHUNK", 7)
    np.testing.assert_allclose(mode.actions(SEEN, 0, 1), whole[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(draws.log_prob(SEEN, unit), whole[1], rtol=1e-4, atol=1e-5)
    drawn = draws.actions(np.tile(SEEN[:1], (14, 1)), 0, 2)
    assert drawn.shape == (14, 2, 2)
    assert np.abs(drawn[:7] - drawn[7:]).min() > 0  # each part has a key of its own


def test_the_density_of_logged_actions_is_kept_where_the_logs_and_the_policy_have_one() -> None:
    actor = GaussianActor(jax.random.PRNGKey(0), 3, 2, (8,))
    both = [from_actor(act, actor, False, act) for act in ("mode", "sample")]
    assert Targets.of(both, DATA).taken is None
    logged = Dataset(SEEN, DATA.action, DATA.reward, SEEN, DATA.terminal, ENDS, action_low=0.0, action_high=10.0,
                     extras={"log_prob": np.zeros(20)})  # fmt: skip
    taken = Targets.of(both, logged).taken
    assert np.isnan(taken[0]).all()
    np.testing.assert_allclose(taken[1], both[1].log_prob(SEEN, logged.action / 5 - 1), rtol=1e-4, atol=1e-4)
