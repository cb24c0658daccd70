"""DualDICE with discrete actions: the objective with actions summed out, and the exact ratios it converges to."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import LONG

from sapp.core.spec import Batch, Spec
from sapp.networks import MLP
from sapp.networks.categorical import Categorical
from sapp.tabular.dualdice import dualdice
from sapp.tabular.estimator_logs import draw_logs
from sapp.tabular.logs import empirical, log_of
from sapp.tabular.mdp import garnet
from sapp.training.device_data import DeviceData, spec_of
from sapp.weights import DualDICE
from sapp.weights.dualdice import network_action


class TablePolicy:
    def __init__(self, policy: np.ndarray) -> None:
        self.logits = jnp.log(jnp.asarray(policy, jnp.float32))

    def __call__(self, observation: jnp.ndarray) -> Categorical:
        return Categorical(observation @ self.logits)


def test_the_objective_by_hand() -> None:
    rng = np.random.default_rng(0)
    count, size, actions = 5, 3, 4
    algorithm = DualDICE(hidden=(8,))
    spec = Spec(size, actions, jnp.zeros(size), jnp.ones(size), True)
    state = algorithm.init(jax.random.PRNGKey(0), spec)
    observation, following, start = (jnp.asarray(rng.normal(size=(count, size)), jnp.float32) for _ in range(3))
    action, terminal = jnp.asarray(rng.integers(actions, size=count), jnp.int32), jnp.asarray([0, 1, 0, 0, 1.0])
    batch = Batch(observation, action, jnp.zeros(count), following, terminal, start)
    probs = [jnp.asarray(rng.dirichlet(np.ones(actions), count), jnp.float32) for _ in range(2)]
    j, (value, ratio) = algorithm.discrete_saddle(
        state.nu, state.zeta, jnp.float32(0.0), batch, *probs, jnp.float32(0.9)
    )

    def nu(s: jnp.ndarray, a: int) -> np.ndarray:
        return np.asarray(state.nu(s, jnp.tile(jnp.eye(actions)[a], (count, 1))))

    following_value = sum(np.asarray(probs[0])[:, a] * nu(following, a) for a in range(actions))
    initial = sum(np.asarray(probs[1])[:, a] * nu(start, a) for a in range(actions))
    residual = np.asarray(value) - 0.9 * (1 - np.asarray(terminal)) * following_value
    zeta = np.asarray(ratio)
    wanted = np.mean(residual * zeta - 0.5 * zeta**2) - 0.1 * np.mean(initial)
    assert float(j) == pytest.approx(wanted, rel=1e-4, abs=1e-6)
    np.testing.assert_allclose(value, state.nu(observation, network_action(state.nu, action)), rtol=1e-5)


def test_ratios_converge_to_the_exact_ones() -> None:
    mdp = garnet(np.random.default_rng(4), 1, states=4, actions=2, discount=0.7)[0]
    behaviour = np.full((4, 2), 0.5)
    policy = np.random.default_rng(1).dirichlet(np.ones(2), 4)
    data = draw_logs(mdp, behaviour, 400, 20, 0)
    here, there = data.observation.argmax(1), data.next_observation.argmax(1)
    counts = np.zeros(mdp.transition.shape, np.int64)
    np.add.at(counts, (here, data.action, there), 1)
    start = np.bincount(here[data.episode_starts], minlength=4) / data.num_episodes
    _, exact = dualdice(empirical(log_of(mdp, counts), start, 0.7), policy)
    algorithm = DualDICE(hidden=(32,), nu_lr=3e-3, zeta_lr=3e-3)
    state = algorithm.init(jax.random.PRNGKey(0), spec_of(data))
    device = DeviceData.of([data])
    target = TablePolicy(policy)

    @partial(jax.jit, compiler_options=LONG)
    def train(state):
        def body(step, state):
            key = jax.random.fold_in(jax.random.PRNGKey(1), step)
            batch = device.batch(jnp.int32(0), key, 256)
            return algorithm.update(state, batch, target, jnp.float32(0.7), key)[0]

        return jax.lax.fori_loop(0, 2500, body, state)

    state = train(state)
    pairs = [(s, a) for s in range(4) for a in range(2)]
    observation = jnp.asarray(np.eye(4, dtype=np.float32)[[s for s, _ in pairs]])
    found = algorithm.zeta(state, observation, jnp.asarray([a for _, a in pairs], jnp.int32))
    visits = counts.sum(-1).reshape(-1) / counts.sum()
    np.testing.assert_allclose(found, exact.reshape(-1), atol=0.4)
    assert np.sum(visits * np.abs(np.asarray(found) - exact.reshape(-1))) < 0.12
    value = np.sum(visits * np.asarray(found) * mdp.reward.reshape(-1))
    assert value == pytest.approx(np.sum(visits * exact.reshape(-1) * mdp.reward.reshape(-1)), abs=0.06)
    assert not bool(state.health.unreliable)


def test_the_density_route_has_a_softmax_behaviour() -> None:
    spec = Spec(3, 2, jnp.zeros(3), jnp.ones(3), True)
    state = DualDICE(hidden=(8,), route="density").init(jax.random.PRNGKey(0), spec)
    assert isinstance(state.behaviour.network, MLP)
    assert state.behaviour(jnp.zeros((1, 3))).probs.shape == (1, 2)
