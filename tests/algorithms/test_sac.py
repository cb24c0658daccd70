"""SAC against CQL without its penalty, against its parts, and padded against unpadded."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.algorithms import CQL
from sapp.algorithms.sac import SAC
from sapp.core.errors import SappError
from sapp.core.spec import Batch, Spec
from sapp.networks import ensemble

OBSERVATIONS, ACTIONS, ROWS = 5, 3, 32
SETTINGS = {"critic_lr": 1e-3, "actor_lr": 2e-3, "temperature_lr": 3e-3, "initial_temperature": 0.5, "tau": 0.1}


def spec(observations: int = OBSERVATIONS, actions: int = ACTIONS) -> Spec:
    return Spec(observations, actions, jnp.zeros(observations), jnp.ones(observations))


def batch(seed: int = 0) -> Batch:
    rng = np.random.default_rng(seed)
    observation = rng.normal(size=(2, ROWS, OBSERVATIONS)).astype(np.float32)
    return Batch(
        observation=jnp.asarray(observation[0]),
        action=jnp.asarray(rng.uniform(-1, 1, (ROWS, ACTIONS)), jnp.float32),
        reward=jnp.asarray(rng.normal(size=ROWS), jnp.float32),
        next_observation=jnp.asarray(observation[1]),
        terminal=jnp.asarray(rng.random(ROWS) < 0.3, jnp.float32),
        initial_observation=jnp.asarray(observation[0]),
    )


def steps(algorithm, state, count: int = 3):
    metrics, update = {}, jax.jit(algorithm.update)
    for number in range(count):
        state, metrics = update(state, batch(number), jnp.ones(ROWS), jax.random.PRNGKey(100 + number))
    return state, metrics


def test_sac_is_cql_without_penalty() -> None:
    sac = SAC(**SETTINGS, hidden=(16, 16))
    cql = CQL(**SETTINGS, alpha=0.0, backup="soft", action_samples=1, hidden=(16, 16))
    key = jax.random.PRNGKey(0)
    ours, metrics = steps(sac, sac.init(key, spec()))
    theirs, others = steps(cql, cql.init(key, spec()))
    for mine, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(mine, other, rtol=2e-5, atol=2e-6)
    for name in ("critic/td", "actor/entropy", "actor/temperature", "loss"):
        np.testing.assert_allclose(metrics[name], others[name], rtol=1e-4, atol=1e-5)


def test_one_update_from_its_parts() -> None:
    """The target is r + γ(1−terminal)(min Q̄(s', a') − τ' log π(a'|s')); networks move by Adam's first step."""
    sac = SAC(**SETTINGS, hidden=(16,), discount=0.9)
    state, key, rows = sac.init(jax.random.PRNGKey(1), spec()), jax.random.PRNGKey(2), batch()
    new, metrics = jax.jit(sac.update)(state, rows, jnp.ones(ROWS), key)
    here, _, _, act, back = jax.random.split(key, 5)

    log_prob = state.actor(rows.observation).sample(here)[1]
    # Adam's first step is the learning rate times the gradient's sign; d/dlogτ of −τ(log π + H̄) is −τ·mean(log π − |A|)
    gradient = -jnp.exp(state.log_temperature) * jnp.mean(log_prob - ACTIONS)
    expected = state.log_temperature - SETTINGS["temperature_lr"] * jnp.sign(gradient)
    np.testing.assert_allclose(new.log_temperature, expected, rtol=1e-5)
    np.testing.assert_allclose(new.temperature_optimiser.mu, 0.1 * gradient, rtol=1e-4)
    temperature = jnp.exp(new.log_temperature)

    action, following = state.actor(rows.next_observation).sample(back)
    value = ensemble(state.targets, rows.next_observation, action).min(0) - temperature * following
    target = rows.reward + 0.9 * (1 - rows.terminal) * value
    loss = sum(jnp.mean((q - target) ** 2) for q in ensemble(state.critics, rows.observation, rows.action))
    np.testing.assert_allclose(metrics["critic/td"], loss / 2, rtol=1e-5)
    for old, moved in zip(jax.tree.leaves(state.critics), jax.tree.leaves(new.critics), strict=True):
        assert float(jnp.abs(moved - old).max()) == pytest.approx(SETTINGS["critic_lr"], rel=1e-2)
    for old, online, moved in zip(
        *(jax.tree.leaves(t) for t in (state.targets, new.critics, new.targets)), strict=True
    ):
        np.testing.assert_allclose(moved, old + 0.1 * (online - old), rtol=1e-5, atol=1e-7)
    # the actor's objective is measured with the critics as just updated
    ours, log_prob = state.actor(rows.observation).sample(act)
    policy_loss = jnp.mean(temperature * log_prob - ensemble(new.critics, rows.observation, ours).min(0))
    np.testing.assert_allclose(metrics["loss"], loss + policy_loss, rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"tau": 2.0}, "tau is 2"), ({"actor_lr": -1.0}, "actor_lr is -1"), ({"hidden": ()}, "hidden must name"),
     ({"precision": "f8"}, "precision 'f8' is unknown"), ({"initial_temperature": 0.0}, "initial_temperature is 0")],
)  # fmt: skip
def test_bad_settings_are_named(change: dict, message: str) -> None:
    with pytest.raises(SappError, match=message):
        SAC(**change)
