"""Finite MDPs as logs and policies that the estimators take: one-hot states, discrete actions, exact values."""

from __future__ import annotations

import numpy as np

from sapp.data import Dataset
from sapp.ope.targets import TargetPolicy
from sapp.tabular.mdp import FiniteMDP, Floats


def draw_logs(
    mdp: FiniteMDP, behaviour: Floats, episodes: int, horizon: int, seed: int, ends: np.ndarray | None = None,
    paying: int | None = None, name: str = "finite",
) -> Dataset:  # fmt: skip
    """Whole episodes of a policy [S, A] in one MDP, as a dataset with one-hot observations and ``log_prob``.

    Args:
        mdp: one problem, not a batch.
        behaviour: the logging policy.
        episodes: how many.
        horizon: steps after which the recording of an episode stops (a time-out).
        seed: of the draws.
        ends: states [S] whose entry ends an episode (a terminal).
        paying: if given, the reward is 1 on entering this state and 0 else; by default r(s,a).
        name: of the dataset.
    """
    rng = np.random.default_rng(seed)
    ends = np.zeros(mdp.states, bool) if ends is None else ends
    choose, follow = (np.cumsum(table, -1) for table in (behaviour, mdp.transition))
    state = np.searchsorted(np.cumsum(mdp.start), rng.random(episodes) * mdp.start.sum())
    alive = np.arange(episodes)
    columns: dict[str, list[np.ndarray]] = {key: [] for key in ("episode", "state", "action", "next", "reward", "last")}
    for step in range(horizon):
        here = state[alive]
        action = _draw(choose[here], rng)
        following = _draw(follow[here, action], rng)
        reward = mdp.reward[here, action] if paying is None else (following == paying).astype(np.float64)
        last = np.full(len(alive), step == horizon - 1)
        for key, value in zip(columns, (alive, here, action, following, reward, last), strict=True):
            columns[key].append(value)
        state[alive] = following
        alive = alive[~ends[following]]
        if not len(alive):
            break
    joined = {key: np.concatenate(parts) for key, parts in columns.items()}
    order = np.argsort(joined.pop("episode"), kind="stable")
    joined = {key: value[order] for key, value in joined.items()}
    eye = np.eye(mdp.states, dtype=np.float32)
    terminal = ends[joined["next"]]
    return Dataset(
        eye[joined["state"]], joined["action"], joined["reward"], eye[joined["next"]], terminal,
        joined["last"] & ~terminal, name=name, num_actions=mdp.actions,
        extras={"log_prob": np.log(behaviour[joined["state"], joined["action"]])},
        provenance={"loader": "sapp.tabular.estimator_logs.draw_logs", "episodes": episodes, "seed": seed},
    )  # fmt: skip


def table_policy(name: str, policy: Floats) -> TargetPolicy:
    """A policy [S, A] on one-hot observations."""

    def actions(observation: np.ndarray, seed: int, count: int) -> np.ndarray:
        return np.asarray(policy[observation.argmax(1)], np.float32)

    return TargetPolicy(name, actions)


def normalised_value(mdp: FiniteMDP, policy: Floats) -> float:
    """(1−γ)·⟨ρ, V^π⟩, exactly."""
    return float((1 - mdp.discount) * np.sum(mdp.start * mdp.value(policy)))


def _draw(cumulated: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One index a row of cumulated probabilities [n, k]."""
    uniform = rng.random(len(cumulated)) * cumulated[:, -1]
    return (cumulated < uniform[:, None]).sum(-1).clip(max=cumulated.shape[1] - 1)
