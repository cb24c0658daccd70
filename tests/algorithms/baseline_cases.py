"""Problems with known answers that every baseline is put to, and one population an algorithm that learns them all.

A population's members share one compiled program, so a probe, the divergence of a member and the bits of a cut run cost
one compilation an algorithm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sapp import BC, BCQ, BEAR, BRAC, EDAC, IQL, TD3BC, UWAC, Algorithm, FisherBRC, Phase, ReBRAC
from sapp.data import Dataset
from sapp.runs.learners import Learner, Sums
from sapp.runs.members import Member
from sapp.training.device_data import DeviceData, spec_of
from sapp.training.population import Population

ROWS = 512
LEFT, RIGHT = np.float32([1, 0]), np.float32([0, 1])
MEAN = {"left": -0.5, "right": 0.3}
SPREAD = 0.05
PHASE = Phase("train", 0, ratio=False)


def dataset(
    name: str, observation: np.ndarray, action: np.ndarray, reward: Any, following: Any, terminal: Any
) -> Dataset:
    """Independent rows: each is an episode of its own, ended by a terminal or else by a time-out."""
    count = len(observation)
    terminal = np.broadcast_to(terminal, count)
    return Dataset(
        observation, np.reshape(action, (count, 1)), np.broadcast_to(reward, count),
        np.broadcast_to(following, observation.shape), terminal, ~terminal, name=name,
    )  # fmt: skip


def problems() -> dict[str, Dataset]:
    rng = np.random.default_rng(0)
    side = rng.integers(0, 2, ROWS)
    place = np.stack([LEFT, RIGHT])[side]
    home = np.repeat(LEFT[None], ROWS, 0)
    anything = rng.uniform(-1, 1, ROWS)
    narrow = np.where(side == 0, MEAN["left"], MEAN["right"]) + rng.normal(0, SPREAD, ROWS)
    return {
        # the reward grows with the action everywhere; the logs stay near −0.5 (left) and 0.3 (right)
        "narrow": dataset("narrow", place, narrow, narrow, place, True),
        # the best action is 0.4
        "hill": dataset("hill", home, anything, 1 - (anything - 0.4) ** 2, home, True),
        # a reward of 1 for ever: worth 1/(1 − γ)
        "loop": dataset("loop", home, anything, 1.0, home, False),
        "broken": dataset("broken", home, anything, 1e30, home, True),
    }


DATA = problems()
SMALL = {"hidden": (64,), "batch_size": 64, "discount": 0.5}
FAST = {"actor_lr": 3e-3, "critic_lr": 3e-3, "tau": 0.05}


@dataclass(frozen=True)
class Case:
    """An algorithm at test size; what makes it pessimistic and what makes it bold are numbers, not structure."""

    algorithm: Algorithm
    strong: dict[str, float]
    weak: dict[str, float]
    steps: int = 1500
    weighted: bool = True


def cases() -> dict[str, Case]:
    vae = {"vae_hidden": (64,), "vae_lr": 3e-3, "candidates": 10, "next_actions": 4}
    bear = SMALL | FAST | vae | {"alpha_lr": 0.0, "warm_steps": 200.0}
    far, near = {"initial_alpha": 1e-3}, {"initial_alpha": 1e3}
    return {
        "td3bc": Case(TD3BC(**SMALL | FAST), {"alpha": 0.0}, {"alpha": 50.0}),
        "rebrac": Case(
            ReBRAC(**SMALL | FAST, critic_penalty=0.0), {"actor_penalty": 100.0}, {"actor_penalty": 0.0}
        ),
        "bc": Case(BC(hidden=(32, 32), batch_size=64, actor_lr=3e-3), {}, {}, weighted=False),
        "iql": Case(
            IQL(**SMALL | FAST, value_lr=3e-3, reward_scaling="none", expectile=0.5, decay_steps=1e6), {"beta": 0.0},
            {"beta": 20.0}, weighted=False,
        ),
        "bcq": Case(BCQ(**SMALL | FAST | vae), {"limit": 0.0}, {"limit": 0.5}, weighted=False),
        "bear": Case(BEAR(**bear), near, far),
        "uwac": Case(UWAC(**bear | {"hidden": (32, 32)}, passes=4, beta=0.5), near, far),
        "fisher-brc": Case(
            FisherBRC(
                **SMALL | FAST, behaviour_hidden=(32, 32), behaviour_lr=3e-3, reward_bonus=0.0, behaviour_steps=500
            ),
            {"penalty": 30.0}, {"penalty": 0.0}, steps=2000,
        ),
        "brac": Case(
            BRAC(**SMALL | FAST, critic_hidden=(32, 32), behaviour_lr=3e-3, behaviour_steps=500, warm_steps=100.0),
            {"alpha": 20.0}, {"alpha": 0.0}, steps=2000,
        ),
        "edac": Case(
            EDAC(**SMALL | FAST, critics=5, initial_temperature=0.02, temperature_lr=0.0), {"eta": 1.0}, {"eta": 0.0}
        ),
    }  # fmt: skip


CASES = cases()


def population(algorithm: Algorithm, changes: list[tuple[dict[str, float], str]]) -> Population:
    """Members with some numbers changed, each on a problem."""
    names = list(DATA)
    members = [
        Member(f"m{i}", replace(algorithm, **change), names.index(problem), i)
        for i, (change, problem) in enumerate(changes)
    ]
    return Population(members, DeviceData.of(list(DATA.values())), [spec_of(data) for data in DATA.values()])


def run(chosen: Population, *cuts: int, start: int = 0) -> tuple[Learner, Sums]:
    """Train from scratch, in pieces."""
    learner = chosen.init()
    sums = chosen.empty_sums(PHASE)
    for steps in cuts:
        learner, sums = chosen.run(learner, sums, PHASE, steps)
    return learner, sums


class Trained:
    """All probes of one algorithm: pessimistic and bold on the narrow logs, the hill, the loop, and broken rewards."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.changes = [
            (case.strong, "narrow"), (case.weak, "narrow"), (case.weak, "hill"), (case.weak, "loop"), ({}, "broken"),
        ]  # fmt: skip
        self.population = population(case.algorithm, self.changes)
        self.learner, self.sums = run(self.population, case.steps)
        places = jnp.broadcast_to(jnp.stack([jnp.asarray(LEFT), jnp.asarray(RIGHT)]), (len(self.changes), 2, 2))
        self.modes = np.asarray(_modes(self.population.policies(self.learner), places))

    def base(self, member: int) -> Any:
        return jax.tree.map(lambda leaf: leaf[member], self.learner.base)

    def mode(self, member: int, observation: np.ndarray) -> float:
        """The action that the member plays at one of the two places."""
        return float(self.modes[member, int(np.argmax(observation)), 0])


@jax.jit
def _modes(policies: Any, observation: jax.Array) -> jax.Array:
    return jax.vmap(lambda policy, x: policy(x).mode())(policies, observation)


def by_case(function: Callable[[str], Any]) -> Callable[[str], Any]:
    """Compute once a case and process."""
    found: dict[str, Any] = {}

    def once(name: str) -> Any:
        if name not in found:
            found[name] = function(name)
        return found[name]

    return once
