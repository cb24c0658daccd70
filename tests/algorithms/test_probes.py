"""Problems so small that the values to be learned are known: one population learns them all, then each is checked."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp import CQL, Phase
from sapp.data import Dataset
from sapp.networks import ensemble
from sapp.runs.learners import Learner
from sapp.runs.members import Member
from sapp.training.device_data import DeviceData, spec_of
from sapp.training.population import Population

pytestmark = pytest.mark.usefixtures("long_training")
ROWS, STEPS = 512, 2500
LEFT, RIGHT = np.float32([1, 0]), np.float32([0, 1])


def dataset(name: str, observation: np.ndarray, action: np.ndarray, reward: np.ndarray, following, terminal) -> Dataset:
    count = len(observation)
    terminal = np.broadcast_to(terminal, count)
    # independent rows: each is an episode of its own, ended by a terminal or else by a time-out
    return Dataset(
        observation, np.reshape(action, (count, 1)), np.broadcast_to(reward, count),
        np.broadcast_to(following, observation.shape), terminal, ~terminal, name=name,
    )  # fmt: skip


def probes() -> dict[str, tuple[CQL, Dataset]]:
    rng = np.random.default_rng(0)
    side = rng.integers(0, 2, ROWS)
    place = np.stack([LEFT, RIGHT])[side]
    anything = rng.uniform(-1, 1, ROWS)
    narrow = np.clip(np.where(side == 0, -0.5, 0.3) + rng.normal(0, 0.05, ROWS), -1, 1)

    def algorithm(**changes) -> CQL:
        settings = {"alpha": 0.0, "discount": 0.9, "critic_lr": 3e-3, "actor_lr": 3e-3, "tau": 0.05}
        settings |= {"initial_temperature": 0.02, "temperature_lr": 0.0}
        return CQL(**settings | changes, hidden=(32, 32), batch_size=64, action_samples=2)

    home = np.repeat(LEFT[None], ROWS, 0)
    return {
        "one step": (algorithm(), dataset("a", place, anything, np.where(side == 0, 1.0, -0.5), place, True)),
        "two steps": (algorithm(), dataset("b", place, anything, side * 1.0, RIGHT, side == 1)),
        "action": (algorithm(), dataset("c", home, anything, 1 - (anything - 0.4) ** 2, home, True)),
        "terminal": (algorithm(discount=0.5), dataset("d", home, anything, 1.0, home, True)),
        "timeout": (algorithm(discount=0.5), dataset("e", home, anything, 1.0, home, False)),
        "pessimist": (algorithm(alpha=20.0), dataset("f", place, narrow, narrow, place, True)),
        "optimist": (algorithm(), dataset("g", place, narrow, narrow, place, True)),
    }


@dataclass
class Trained:
    population: Population
    learner: Learner

    def number(self, name: str) -> int:
        return [member.name for member in self.population.members].index(name)

    def value(self, name: str, observation: np.ndarray, action: np.ndarray) -> np.ndarray:
        """Both critics' Q at rows, [2, B]."""
        critics = jax.tree.map(lambda leaf: leaf[self.number(name)], self.learner.base.critics)
        action = jnp.asarray(action, jnp.float32)[:, None]
        return np.asarray(ensemble(critics, jnp.broadcast_to(observation, (len(action), 2)), action))

    def mode(self, name: str, observation: np.ndarray) -> float:
        actor = jax.tree.map(lambda leaf: leaf[self.number(name)], self.population.policies(self.learner))
        return float(actor(jnp.asarray(observation)[None]).mode()[0, 0])


@pytest.fixture(scope="module")
def trained() -> Trained:
    chosen = probes()
    datasets = [data for _, data in chosen.values()]
    members = [Member(name, algorithm, i, seed=i) for i, (name, (algorithm, _)) in enumerate(chosen.items())]
    population = Population(members, DeviceData.of(datasets), [spec_of(data) for data in datasets])
    phase = Phase("train", STEPS, ratio=False)
    learner = population.init()
    learner, _ = population.run(learner, population.empty_sums(phase), phase, STEPS)
    assert np.all(np.asarray(learner.alive))
    return Trained(population, learner)


ACTIONS = np.linspace(-0.9, 0.9, 7)


def test_one_step_value_is_the_reward(trained: Trained) -> None:
    np.testing.assert_allclose(trained.value("one step", LEFT, ACTIONS), 1.0, atol=0.05)
    np.testing.assert_allclose(trained.value("one step", RIGHT, ACTIONS), -0.5, atol=0.05)


def test_two_step_value_is_discounted_once(trained: Trained) -> None:
    np.testing.assert_allclose(trained.value("two steps", RIGHT, ACTIONS), 1.0, atol=0.05)
    np.testing.assert_allclose(trained.value("two steps", LEFT, ACTIONS), 0.9, atol=0.05)


def test_value_follows_the_action_and_the_policy_picks_the_good_one(trained: Trained) -> None:
    np.testing.assert_allclose(trained.value("action", LEFT, ACTIONS), [1 - (ACTIONS - 0.4) ** 2] * 2, atol=0.08)
    assert trained.mode("action", LEFT) == pytest.approx(0.4, abs=0.12)


def test_terminal_self_loop_is_worth_its_reward(trained: Trained) -> None:
    np.testing.assert_allclose(trained.value("terminal", LEFT, ACTIONS), 1.0, atol=0.05)


def test_timed_out_self_loop_is_worth_the_infinite_sum(trained: Trained) -> None:
    """r/(1−γ) = 2: a time-out ends the recording, not the task."""
    np.testing.assert_allclose(trained.value("timeout", LEFT, ACTIONS), 2.0, atol=0.1)


def test_with_large_alpha_the_policy_is_the_behaviour(trained: Trained) -> None:
    """Reward grows with the action everywhere, the logs stay near −0.5 (left) and 0.3 (right)."""
    assert trained.mode("pessimist", LEFT) == pytest.approx(-0.5, abs=0.15)
    assert trained.mode("pessimist", RIGHT) == pytest.approx(0.3, abs=0.15)


def test_with_alpha_zero_the_policy_leaves_the_behaviour_for_reward(trained: Trained) -> None:
    assert trained.mode("optimist", LEFT) > 0.5
    assert trained.mode("optimist", RIGHT) > 0.7


def test_pessimism_lowers_values_off_the_data(trained: Trained) -> None:
    """CQL's whole point: actions never logged score below the logged one."""
    for place, logged in ((LEFT, -0.5), (RIGHT, 0.3)):
        far = trained.value("pessimist", place, np.array([logged - 0.45, logged + 0.45]))
        assert np.all(far + 1.0 < trained.value("pessimist", place, np.array([logged])))
