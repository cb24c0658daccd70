"""Finite MDPs presented as data with continuous actions, and their exact occupancy ratios.

States are one-hot vectors. An action is a number in [−1, 1] of which only the sign matters to the dynamics, so the
exact ratio at any logged pair is known: ζ(s,a) = w(s)·π(a|s)/β(a|s) with w(s) = dᵖ(s)/dᴰ(s) from linear algebra.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from scipy.stats import norm

from sapp.data import Dataset
from sapp.networks import TanhGaussian


class TablePolicy:
    """A tanh-Gaussian policy given by tables of means and log standard deviations over one-hot states."""

    def __init__(self, mean: np.ndarray, log_std: np.ndarray) -> None:
        self.mean, self.log_std = jnp.asarray(mean, jnp.float32), jnp.asarray(log_std, jnp.float32)

    def __call__(self, observation: jnp.ndarray) -> TanhGaussian:
        return TanhGaussian((observation @ self.mean)[:, None], (observation @ self.log_std)[:, None])

    def positive(self) -> np.ndarray:
        """Probability of a positive action in each state."""
        return norm.cdf(np.asarray(self.mean) / np.exp(np.asarray(self.log_std)))


@dataclass
class FiniteProblem:
    states: int
    transition: np.ndarray  # [S, 2, S]; rows may sum to less than 1: the rest is a terminal
    reward: np.ndarray  # [S, 2]
    start: np.ndarray  # [S]
    visits: np.ndarray  # [S] the state distribution of the logs
    behaviour: TablePolicy
    target: TablePolicy
    discount: float

    def occupancy(self, policy: TablePolicy) -> np.ndarray:
        """Normalised discounted occupancy d(s): (1−γ)ρ(I − γP)⁻¹; its sum falls short of 1 by what terminals take."""
        p = policy.positive()
        step = (1 - p)[:, None] * self.transition[:, 0] + p[:, None] * self.transition[:, 1]
        return (1 - self.discount) * np.linalg.solve(np.eye(self.states) - self.discount * step.T, self.start)

    def state_ratio(self) -> np.ndarray:
        return self.occupancy(self.target) / self.visits

    def value(self, policy: TablePolicy) -> float:
        """(1−γ)·E[Σ γᵗ r] of a policy."""
        p = policy.positive()
        return float(self.occupancy(policy) @ ((1 - p) * self.reward[:, 0] + p * self.reward[:, 1]))

    def zeta(self, dataset: Dataset) -> np.ndarray:
        """Exact ratio at every row of a dataset made by ``data``."""
        observation, action = jnp.asarray(dataset.observation), jnp.asarray(dataset.action)
        log_ratio = self.target(observation).log_prob(action) - self.behaviour(observation).log_prob(action)
        return self.state_ratio()[dataset.observation.argmax(1)] * np.exp(np.asarray(log_ratio))

    def data(self, rows: int, seed: int) -> Dataset:
        """Logged transitions, independent draws s ~ visits, a ~ β. Starts are drawn apart, by ``starts``."""
        rng = np.random.default_rng(seed)
        eye = np.eye(self.states, dtype=np.float32)
        state = rng.choice(self.states, rows, p=self.visits)
        mean, std = np.asarray(self.behaviour.mean), np.exp(np.asarray(self.behaviour.log_std))
        action = np.tanh(rng.normal(mean[state], std[state]))
        chosen = (action > 0).astype(int)
        following = np.array(
            [rng.choice(self.states + 1, p=np.append(p, max(0.0, 1 - p.sum()))) for p in self.transition[state, chosen]]
        )
        terminal = following == self.states
        following = np.where(terminal, state, following)
        return Dataset(
            eye[state],
            action[:, None].astype(np.float32),
            self.reward[state, chosen].astype(np.float32),
            eye[following],
            terminal,
            ~terminal,
            name="finite",
        )


def problem(
    seed: int, states: int = 5, discount: float = 0.9, terminals: bool = False, shift: float = 1.0
) -> FiniteProblem:
    """A random problem; ``shift`` moves the target's means away from the behaviour's."""
    rng = np.random.default_rng(seed)
    transition = rng.dirichlet(np.full(states, 0.4), size=(states, 2))
    if terminals:
        transition[:, 1] *= 0.8
    mean = rng.normal(0, 0.3, states)
    behaviour = TablePolicy(mean, np.full(states, -0.2))
    target = TablePolicy(mean + shift * rng.choice([-1.0, 1.0], states) * 0.6, np.full(states, -0.5))
    return FiniteProblem(
        states,
        transition,
        rng.normal(size=(states, 2)),
        rng.dirichlet(np.ones(states)),
        _mixed(rng, states),
        behaviour,
        target,
        discount,
    )


def _mixed(rng: np.random.Generator, states: int) -> np.ndarray:
    return 0.5 / states + 0.5 * rng.dirichlet(np.ones(states))
