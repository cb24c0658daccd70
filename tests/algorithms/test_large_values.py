"""Values as large as D4RL's and Atari's, learned in every precision: a constant reward r for ever is worth r/(1 − γ).

Critics begin 2 % below; the policy stays as it is, so that nothing is picked for its error. What is bootstrapped
comes back a hundredfold at γ = 0.99, so a precision that rounds values (bfloat16 has steps of 8 near 1,350 and of 2
near 350) settles somewhere else, or nowhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

from sapp import CQL, EDAC, IQL, TD3BC, DiscreteCQL, Phase
from sapp.algorithms import SAC, Algorithm
from sapp.data import Dataset
from sapp.networks import MLPScores, ensemble
from sapp.runs.members import Member
from sapp.training.device_data import DeviceData, spec_of
from sapp.training.population import Population

pytestmark = pytest.mark.usefixtures("long_training")
ROWS, STEPS, BEGIN = 256, 5_000, 0.98
REWARDS = (13.5, 3.5, 1.0)
"""HalfCheetah's expert, hopper's, and clipped rewards of a game: values of 1,350, 350 and 100."""
SMALL = {"hidden": (32, 32), "batch_size": 32, "critic_lr": 1e-3, "actor_lr": 0.0, "tau": 0.2}
SOFT = SMALL | {"temperature_lr": 0.0, "initial_temperature": 1e-4}

Made = Callable[[str], Algorithm]
LEARNERS: dict[str, Made] = {
    "CQL": lambda p: CQL(**SOFT, alpha=0.0, action_samples=2, precision=p),
    "SAC": lambda p: SAC(**SOFT, precision=p),
    "TD3+BC": lambda p: TD3BC(**SMALL, precision=p),
    "IQL": lambda p: IQL(**SMALL, value_lr=1e-3, reward_scaling="none", expectile=0.5, precision=p),
    "EDAC": lambda p: EDAC(**SOFT, critics=3, eta=0.0, precision=p),
    "discrete CQL": lambda p: DiscreteCQL(
        alpha=0.0, lr=5e-4, target_every=5, batch_size=32, network=MLPScores((32, 32), precision=p)
    ),
}
CASES = [(name, precision) for name in LEARNERS for precision in ("float32", "tf32")] + [("CQL", "mixed")]


def logs(reward: float, discrete: bool) -> Dataset:
    rng = np.random.default_rng(0)
    observation = np.ones((ROWS, 2), np.float32)
    action = rng.integers(0, 2, ROWS) if discrete else rng.uniform(-1, 1, (ROWS, 1)).astype(np.float32)
    return Dataset(
        observation, action, np.full(ROWS, reward, np.float32), observation[rng.permutation(ROWS)],
        np.zeros(ROWS, bool), np.ones(ROWS, bool), name=f"{reward}", num_actions=2 if discrete else None,
    )  # fmt: skip


def value_networks(state: Any) -> list[Any]:
    """Whatever holds values in a learner's state: critics and their targets, IQL's V, DQN's scores."""
    found = []
    for name in ("critics", "targets", "target_critics", "value", "scores", "target"):
        network = getattr(state, name, None)
        if network is not None:
            found.append(getattr(network, "network", network))
    return found


def last_biases(state: Any) -> list[Any]:
    networks = [getattr(network, "mlp", network) for network in value_networks(state)]
    return [network.layers[-1].bias for network in networks]


def learned(make: Made, precision: str) -> tuple[Population, Any, list[Dataset]]:
    algorithm = make(precision)
    datasets = [logs(reward, isinstance(algorithm, DiscreteCQL)) for reward in REWARDS]
    members = [Member(data.name, algorithm, number, seed=number) for number, data in enumerate(datasets)]
    population = Population(members, DeviceData.of(datasets), [spec_of(data) for data in datasets])
    phase = Phase("train", STEPS, ratio=False)
    learner = population.init()
    begin = np.asarray([BEGIN * reward / (1.0 - 0.99) for reward in REWARDS], np.float32)

    def raised(bias: Any) -> Any:
        return bias + begin.reshape(-1, *[1] * (bias.ndim - 1))

    base = eqx.tree_at(last_biases, learner.base, replace_fn=raised)
    learner = eqx.tree_at(lambda x: x.base, learner, base)
    learner, _ = population.run(learner, population.empty_sums(phase), phase, STEPS)
    assert np.all(np.asarray(learner.alive))
    return population, learner, datasets


def values(learner: Any, member: int, data: Dataset) -> np.ndarray:
    """Q of the logged pairs, all critics."""
    state = jax.tree.map(lambda leaf: leaf[member], learner.base)
    if hasattr(state, "scores"):
        return np.asarray(state.scores(data.observation))
    critics = value_networks(state)[0]
    observation = state.normaliser(data.observation) if hasattr(state, "normaliser") else data.observation
    return np.asarray(ensemble(critics, observation, data.action))


@pytest.mark.parametrize(("name", "precision"), CASES, ids=lambda case: str(case))
def test_values_are_what_the_rewards_add_up_to(name: str, precision: str) -> None:
    _, learner, datasets = learned(LEARNERS[name], precision)
    for member, (reward, data) in enumerate(zip(REWARDS, datasets, strict=True)):
        truth = reward / (1.0 - 0.99)
        found = values(learner, member, data)
        assert np.mean(found) == pytest.approx(truth, rel=5e-3)
        # every state has the same value: what differs between them is the network's error
        assert np.std(found) < 1e-2 * truth
