"""Finite decision problems with a behaviour policy that fills logs: ICU-Sepsis, and a small ward of the same form."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sapp.core.errors import SappError
from sapp.tabular.logs import EmpiricalMDP, Log, draw_episodes, empirical
from sapp.tabular.mdp import FiniteMDP, Floats

HORIZON = 500
"""Steps after which the package cuts an episode off."""

@dataclass(frozen=True)
class Task:
    """A true MDP that pays 1 on entering ``paying``, the policy that fills the logs, and the states that end them.

    behaviour [S, A]; ends [S]: no step out of them is logged, and their value is 0.
    """

    name: str
    mdp: FiniteMDP
    behaviour: Floats
    ends: NDArray[np.bool_]
    paying: int

    def draw(self, rng: np.random.Generator, transitions: int) -> Log:
        """A log of whole episodes under the behaviour policy, of about that many transitions.

        Its rewards are what the episodes paid, so r_D is as noisy as P_D.
        """
        if transitions < 1:
            raise SappError(f"transitions is {transitions}: a log needs at least one")
        episodes = max(1, round(transitions / self.length))
        log = draw_episodes(self.mdp, rng, episodes, self.behaviour, HORIZON, self.ends)
        return Log(log.counts, log.counts[..., self.paying].astype(np.float64))

    def model(self, log: Log) -> EmpiricalMDP:
        """The empirical MDP; in a state that the log never saw the policy is uniform over all actions."""
        return empirical(log, self.mdp.start, self.mdp.discount)

    @property
    def length(self) -> float:
        """Mean number of steps of an episode under the behaviour policy."""
        inside = ~self.ends
        step = self.mdp.step(self.behaviour)[np.ix_(inside, inside)]
        visits = np.linalg.solve((np.eye(len(step)) - step).T, self.mdp.start[inside])
        return float(visits.sum())

def icu_sepsis(discount: float = 0.99) -> Task:
    """ICU-Sepsis and its clinicians' policy, read from the arrays inside the package ``icu-sepsis``.

    Only the arrays are read (no pickle): importing the package would import gym. The package counts returns without a
    discount; an episode lasts about nine steps, so 0.99 changes little.
    """
    found = importlib.util.find_spec("icu_sepsis")
    if found is None or not found.submodule_search_locations:
        raise SappError("ICU-Sepsis is not installed: pip install icu-sepsis")
    path = Path(found.submodule_search_locations[0], "envs", "assets", "dynamics.npz")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            transition, gain = arrays["tx_mat"], arrays["r_mat"]
            start, behaviour = arrays["d_0"], arrays["expert_policy"].copy()
    except (OSError, KeyError, ValueError) as error:
        raise SappError(f"{path.name} of icu-sepsis cannot be read ({error}): pip install icu-sepsis==2.0.1") from None
    survival = np.unique(np.nonzero(gain)[2])
    if len(survival) != 1 or not np.all(gain[:, :, survival[0]][transition[:, :, survival[0]] > 0] == 1):
        raise SappError("this icu-sepsis does not pay 1 on survival and nothing else: pip install icu-sepsis==2.0.1")
    ends = behaviour.sum(-1) == 0
    behaviour[ends] = 1.0 / behaviour.shape[-1]
    mdp = FiniteMDP(transition, np.sum(transition * gain, -1), start, discount)
    return Task("icu-sepsis", mdp, behaviour, ends, int(survival[0]))

def ward(rng: np.random.Generator, states: int = 12, actions: int = 4, discount: float = 0.95) -> Task:
    """A small task of the same form (random patients, death, survival), for tests and quick looks."""
    total = states + 2
    transition = np.zeros((total, actions, total))
    transition[:states] = rng.dirichlet(np.full(total, 0.3), (states, actions))
    transition[states:] = np.eye(total)[states:, None]
    transition[:states, :, states:] += 0.05
    transition /= transition.sum(-1, keepdims=True)
    reward = transition[:, :, -1].copy()
    reward[states:] = 0.0
    behaviour = rng.dirichlet(np.ones(actions), total)
    start = np.zeros(total)
    start[:states] = rng.dirichlet(np.ones(states))
    mdp = FiniteMDP(transition, reward, start, discount)
    return Task("ward", mdp, behaviour, np.arange(total) >= states, total - 1)
