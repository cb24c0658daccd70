"""The estimators without networks, for one-hot states and discrete actions: every bag's equations are solved exactly.

With n(s,a), n(s) rows of a bag at a pair and a state, N in all, and κ pseudo-rows per pair that behave like the state's
rows of whatever action:

    P(s'|s,a) = (n(s,a,s') + κ·n(s,s')/n(s)) / (n(s,a) + κ), r(s,a) likewise
    Q = r + γ·P V, V = Σ_a π·Q                                                                 (fitted Q evaluation)
    d = (1−γ)ρ + γ·dᵀΣ_a π·P,      ζ(s,a) = d(s)·N/n(s) · (n(s)·π(a|s) + κ)/(n(s,a) + κ)       (DualDICE's saddle)

κ = 0 is the empirical MDP itself, which says nothing of an action that a bag has not seen in a state; with κ = 1 such
an action is taken to do what the others do there, and ratios of actions are drawn towards 1.
"""

from __future__ import annotations

import time

import numpy as np

from sapp.core.errors import SappError
from sapp.data import Dataset
from sapp.data.findings import is_one_hot
from sapp.ope.estimators import CHECKS, Fitted, Settings, bag_counts
from sapp.ope.fqe import returns_to_go
from sapp.ope.support import RARE
from sapp.ope.targets import Targets

PSEUDO_COUNT = 1.0


def is_table(data: Dataset) -> bool:
    """Whether states are one-hot and actions discrete."""
    return data.discrete and is_one_hot(data.observation)


def off_data_exactly(data: Dataset, targets: Targets, pseudo_count: float = PSEUDO_COUNT) -> np.ndarray:
    """``support.off_data`` with β̂ from counts, [P]."""
    here = data.observation.argmax(1)
    pairs = np.zeros((data.observation_size, data.action_size))
    np.add.at(pairs, (here, data.action), 1.0)
    behaviour = (pairs + pseudo_count / data.action_size) / (pairs.sum(1, keepdims=True) + pseudo_count)
    edge = np.quantile(behaviour[here, data.action], RARE)
    rare = behaviour[here[targets.rows]] < edge
    return np.asarray(np.sum(np.asarray(targets.here) * rare, -1).mean(1))


def fit_exactly(data: Dataset, targets: Targets, settings: Settings, pseudo_count: float = PSEUDO_COUNT) -> Fitted:
    """What ``estimators.fit`` gives, from solved equations instead of trained networks.

    Args:
        data: one-hot observations, discrete actions.
        targets: what the policies do there; a state never logged is given a uniform policy, it is never reached.
        settings: γ, the number of bags and the seed are used.
        pseudo_count: κ.
    """
    if not is_table(data):
        raise SappError(f"{data.name}: exact estimates need one-hot states and discrete actions; leave the option out")
    began = time.perf_counter()
    gamma, size = settings.discount, data.size
    states, actions = data.observation_size, data.action_size
    here, there, action = data.observation.argmax(1), data.next_observation.argmax(1), data.action
    episode = np.repeat(np.arange(data.num_episodes), data.episode_lengths)
    live = ~data.terminal
    counts = bag_counts(data.num_episodes, settings.bags, settings.seed)
    first = here[data.episode_starts]
    shape = len(targets.names), settings.bags, data.num_episodes
    out = {name: np.empty(shape) for name in ("start", "reward", "error", "weight", "squared")}
    answers = np.asarray(targets.next, np.float64), np.asarray(targets.start, np.float64)
    for number in range(shape[0]):
        policy = np.full((states, actions), 1.0 / actions)
        policy[there], policy[first] = answers[0][number], answers[1][number]
        for bag in range(settings.bags):
            held = counts[bag][episode].astype(np.float64)
            pairs = np.zeros((states, actions))
            np.add.at(pairs, (here, action), held)
            seen = pairs.sum(1)
            divisor = pairs + pseudo_count
            # what one row of a state counts for through pairs of other actions, and through its own
            pooled = pseudo_count / np.maximum(seen, 1.0)
            shared = pooled * np.sum(policy / divisor, 1)
            own = held * (policy[here, action] / divisor[here, action] + shared[here])
            step = np.zeros((states, states))
            np.add.at(step, (here[live], there[live]), gamma * own[live])
            gain = np.bincount(here, own * data.reward, states)
            value = np.linalg.solve(np.eye(states) - step, gain)
            # a state that the bag never left is worth what its states are worth on average
            value[seen == 0] = np.average(value[here], weights=held)
            following = np.where(live, value[there], 0.0)
            wanted = held * (data.reward + gamma * following)
            q = np.zeros((states, actions))
            np.add.at(q, (here, action), wanted)
            q = (q + (pooled * np.bincount(here, wanted, states))[:, None]) / divisor
            q[seen == 0] = value[seen == 0, None]
            start = np.bincount(first, counts[bag], states) / counts[bag].sum()
            occupancy = np.linalg.solve(np.eye(states) - step.T, (1 - gamma) * start)
            state_ratio = np.where(seen > 0, occupancy * held.sum() / np.maximum(seen, 1.0), 0.0)
            zeta = state_ratio[:, None] * (seen[:, None] * policy + pseudo_count) / divisor
            at = zeta[here, action]
            terms = {
                "reward": at * data.reward,
                "error": at * (data.reward + gamma * following - q[here, action]),
                "weight": at,
                "squared": at**2,
            }
            out["start"][number, bag] = value[first]
            for name, term in terms.items():
                out[name][number, bag] = np.add.reduceat(term, data.episode_starts)
    means = np.einsum("pbe,be->pb", out["start"], counts) / counts.sum(1)
    to_go = returns_to_go(data, np.ones(size), gamma)
    return Fitted(
        out["start"], out["reward"], out["error"], out["weight"], out["squared"], counts,
        np.asarray(data.episode_lengths), bool(data.terminal.any()),
        (1 - gamma) * float(to_go[data.episode_starts].mean()), np.zeros(shape[:2]), np.ones(shape[:2], bool),
        np.broadcast_to(means, (CHECKS, *means.shape)), time.perf_counter() - began, settings,
    )  # fmt: skip
