"""Policies reduced to tables: draws, units, and answers that do not fit."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.data import Dataset
from sapp.networks import GaussianActor
from sapp.ope.targets import TargetPolicy, Targets, from_actor, from_function

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
    with pytest.raises(SappError, match=r"policy 'five' gave actions outside 0..2; is it another task's\?"):
        Targets.of([from_function("five", lambda seen: np.full(len(seen), 5), DISCRETE)], DISCRETE)
