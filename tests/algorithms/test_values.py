"""Q(s,a) of any learner, held to its own critics taken apart by hand."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.algorithms import BC, CQL, DQN, IQL, REM, TD3BC, Algorithm, DiscreteBC, FisherBRC
from sapp.algorithms.values import critic_values
from sapp.core.errors import SappError
from sapp.core.spec import Spec

KEY = jax.random.PRNGKey(0)
SEEN = jax.random.normal(jax.random.PRNGKey(1), (5, 3))
ACTION = jnp.tanh(jax.random.normal(jax.random.PRNGKey(2), (5, 2)))
CHOSEN = jnp.array([0, 3, 1, 1, 2])


def spec(discrete: bool = False) -> Spec:
    mean, std = jnp.array([1.0, 2.0, 3.0]), jnp.array([0.5, 1.0, 2.0])
    return Spec(3, 4 if discrete else 2, mean, std, discrete, return_span=jnp.float32(50.0))


def values(algorithm: Algorithm, action: Any = ACTION) -> tuple[Any, np.ndarray]:
    state = algorithm.init(KEY, spec(action is CHOSEN))
    return state, np.asarray(critic_values(algorithm, state, SEEN, action))


def each(critics: Any, seen: Any, count: int = 2) -> np.ndarray:
    members = [jax.tree.map(lambda leaf, i=i: leaf[i], eqx.filter(critics, eqx.is_array)) for i in range(count)]
    return np.stack([eqx.combine(one, critics)(seen, ACTION) for one in members])


def test_the_least_of_two_critics() -> None:
    state, found = values(CQL(hidden=(8,)))
    both = each(state.critics, SEEN)
    np.testing.assert_allclose(found, both.min(0), rtol=1e-5)
    assert (both[0] < both[1]).any()
    assert (both[0] > both[1]).any()


def test_critics_of_normalised_observations() -> None:
    state, found = values(TD3BC(hidden=(8,)))
    seen = (SEEN - spec().observation_mean) / (spec().observation_std + 1e-3)
    np.testing.assert_allclose(found, each(state.critics.network, seen).min(0), rtol=1e-5)


def test_iql_answers_in_the_units_of_the_logged_rewards() -> None:
    state, found = values(IQL(hidden=(8,)))
    assert float(state.reward_scale) == pytest.approx(1000 / 50)
    np.testing.assert_allclose(found, each(state.critics.network, SEEN).min(0) / 20, rtol=1e-5)


def test_fisher_brc_adds_the_density() -> None:
    state, found = values(FisherBRC(hidden=(8,)))
    density = np.asarray(state.behaviour.network.log_prob(SEEN, ACTION))
    np.testing.assert_allclose(found, each(state.offsets.network, SEEN).min(0) + density, rtol=1e-5)


@pytest.mark.parametrize("algorithm", [DQN(), DQN(quantiles=5), REM()], ids=["dqn", "qr", "rem"])
def test_discrete_actions(algorithm: Algorithm) -> None:
    state, found = values(algorithm, CHOSEN)
    heads = np.asarray(state.scores.many(SEEN)).mean(-1)
    np.testing.assert_allclose(found, heads[np.arange(5), CHOSEN], rtol=1e-5)


@pytest.mark.parametrize(("algorithm", "action"), [(BC(), ACTION), (DiscreteBC(), CHOSEN)], ids=["bc", "discrete-bc"])
def test_cloning_has_no_values(algorithm: Algorithm, action: Any) -> None:
    with pytest.raises(SappError, match="learns no values of actions"):
        values(algorithm, action)
