"""The TD-InfoNCE critic's loss against loops, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp import OccupancyInfoNCE, SappError
from sapp.core.spec import Batch, Spec
from sapp.networks import MLP
from sapp.weights.behaviour import TanhBehaviour
from sapp.weights.infonce import FutureCritic, InfoNCEHealth, contrast

N, S, A, E = 5, 3, 2, 4


def test_the_loss_is_the_classification_of_futures_by_hand() -> None:
    critic = FutureCritic(MLP(jax.random.PRNGKey(0), S + A, (8,), E), MLP(jax.random.PRNGKey(1), S, (8,), E))
    rng = np.random.default_rng(0)
    state, following = (jnp.asarray(rng.normal(size=(N, S)), jnp.float32) for _ in range(2))
    action = jnp.asarray(rng.normal(size=(N, A)), jnp.float32)
    later = rng.dirichlet(np.ones(N), N)
    discount = 0.7
    pair = np.asarray(critic.pair(jnp.concatenate([state, action], -1)), np.float64) / np.sqrt(E)
    goals, after = (np.asarray(critic.goal(each), np.float64) for each in (state, following))
    expected = 0.0
    for i in range(N):
        candidates = [after[i] if j == i else goals[j] for j in range(N)]  # the successor in place of the own state
        first = np.array([pair[i] @ goal for goal in candidates])
        second = np.array([pair[i] @ goal for goal in goals])
        expected -= (1 - discount) * (first[i] - np.log(np.exp(first).sum()))
        expected -= discount * np.sum(later[i] * (second - np.log(np.exp(second).sum())))
    found = contrast(critic, state, action, following, jnp.asarray(later, jnp.float32), jnp.float32(discount))
    assert float(found) == pytest.approx(expected / N, rel=1e-5)


def test_the_slow_critic_starts_as_a_copy_and_no_mass_is_lost() -> None:
    weights = OccupancyInfoNCE(hidden=(4,), features=E)
    state = weights.init(jax.random.PRNGKey(0), Spec(S, A, jnp.zeros(S), jnp.ones(S)))
    for slow, own in zip(jax.tree.leaves(state.target), jax.tree.leaves(state.critic), strict=True):
        np.testing.assert_array_equal(slow, own)
    assert float(state.mass) == 1.0
    assert not bool(weights.unreliable(state))


def test_the_slow_critic_says_what_follows() -> None:
    """With a slow φ of ones W is softmax_j Σ ψ(g_j)/√E of the slow ψ, whatever the critic that learns would say."""
    weights = OccupancyInfoNCE(hidden=(4,), features=E)
    state = weights.init(jax.random.PRNGKey(0), Spec(S, A, jnp.zeros(S), jnp.ones(S)))
    ones = jax.tree.map(jnp.zeros_like, state.target.pair)
    ones = eqx.tree_at(lambda pair: pair.layers[-1].bias, ones, jnp.ones(E))
    slow = FutureCritic(ones, MLP(jax.random.PRNGKey(3), S, (4,), E))
    state = eqx.tree_at(lambda s: s.target, state, slow)
    rng = np.random.default_rng(0)
    here, there, starts = (jnp.asarray(rng.normal(size=(N, S)), jnp.float32) for _ in range(3))
    action = jnp.asarray(np.tanh(rng.normal(size=(N, A))), jnp.float32)
    batch = Batch(here, action, jnp.ones(N), there, jnp.zeros(N), starts)
    policy = TanhBehaviour(jax.random.PRNGKey(1), S, A, (4,))
    _, metrics = weights.update(state, batch, policy, jnp.float32(0.7), jax.random.PRNGKey(2))
    later = jnp.tile(jax.nn.softmax(jnp.sum(slow.goal(here), axis=-1) / np.sqrt(E)), (N, 1))
    expected = contrast(state.critic, here, action, there, later, jnp.float32(0.7))
    assert float(metrics["ratio/critic_loss"]) == pytest.approx(float(expected), rel=1e-5)


def test_what_it_cannot_do_is_refused() -> None:
    with pytest.raises(SappError, match="OccupancyInfoNCE takes continuous actions only; use DualDICE"):
        OccupancyInfoNCE().init(jax.random.PRNGKey(0), Spec(S, A, jnp.zeros(S), jnp.ones(S), discrete=True))
    with pytest.raises(SappError, match="features is 0; it must be 1 or more"):
        OccupancyInfoNCE(features=0)


@pytest.fixture(scope="module")
def judge() -> Callable[[InfoNCEHealth], tuple]:
    """A step that leaves the health as it is given."""
    weights = OccupancyInfoNCE(hidden=(4,), features=E, health_rate=0.0)
    state = weights.init(jax.random.PRNGKey(0), Spec(S, A, jnp.zeros(S), jnp.ones(S)))
    rng = np.random.default_rng(0)
    here, there, starts = (jnp.asarray(rng.normal(size=(N, S)), jnp.float32) for _ in range(3))
    action = jnp.asarray(np.tanh(rng.normal(size=(N, A))), jnp.float32)
    batch = Batch(here, action, jnp.ones(N), there, jnp.zeros(N), starts)
    policy = TanhBehaviour(jax.random.PRNGKey(1), S, A, (4,))

    @jax.jit
    def run(health: InfoNCEHealth, weights: OccupancyInfoNCE) -> tuple:
        given = eqx.tree_at(lambda s: s.health, state, health)
        return weights.update(given, batch, policy, jnp.float32(0.7), jax.random.PRNGKey(2))

    return lambda health, **change: run(health, replace(weights, **change))


@pytest.mark.parametrize(
    ("change", "settings", "unreliable"),
    [
        ({}, {}, False),
        ({"error": 2.08}, {}, False),
        ({"error": 2.12}, {}, True),
        ({"accuracy": 0.994}, {}, False),
        ({"accuracy": 0.996}, {}, True),
        ({"clipped": 1.0}, {}, False),
        ({"clipped": 0.6}, {"max_clipped": 0.5}, True),
        ({"clipped": 0.4}, {"max_clipped": 0.5}, False),
    ],
)
def test_each_limit_of_health_makes_it_unreliable(
    judge: Callable, change: dict[str, float], settings: dict[str, float], unreliable: bool
) -> None:
    """The critic's loss is compared with that of one that knows nothing, here 2."""
    healthy = {"error": 1.0, "constant": 2.0, "clipped": 0.0, "accuracy": 0.5, "ended": 0.0}
    state, metrics = judge(InfoNCEHealth(**{k: jnp.float32(v) for k, v in (healthy | change).items()}), **settings)
    assert bool(state.unreliable) == unreliable == bool(metrics["ratio/unreliable"])
    assert float(metrics["ratio/model_error"]) == pytest.approx((healthy | change)["error"] / 2)


def test_the_mass_times_the_share_of_restarts_is_one_minus_the_discount(judge: Callable) -> None:
    for ended in (0.0, 0.01, 1.0):
        health = InfoNCEHealth(*map(jnp.float32, (1.0, 2.0, 0.0, 0.5, ended)))
        _, metrics = judge(health)
        restarts = 0.3 + 0.7 * ended  # of a chain that starts anew by chance or because the task has ended
        assert float(metrics["ratio/mass"]) * restarts == pytest.approx(0.3, rel=1e-5)
