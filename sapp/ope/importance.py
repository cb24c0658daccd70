"""Importance sampling, where the logs say how probable each action was: no model, no network, high variance.

With w_t = Π_{k≤t} π(a_k|s_k)/μ(a_k|s_k) over the steps of an episode and its discounted return G,

    weighted (WIS)                ρ̂ = (1−γ) · Σ_e w_T·G / Σ_e w_T
    weighted per decision (PDIS)  ρ̂ = (1−γ) · Σ_t γᵗ · (Σ_e w_t·r_t / Σ_e w_t)

After a terminal an episode goes on at reward 0 with its last weight; after a time-out it is not known how it goes on,
so an episode counts in PDIS as long as it was recorded, and WIS takes what was recorded for its return.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sapp.data import Dataset
from sapp.ope.calibration import students_factor, widened
from sapp.ope.doubly_robust import Values
from sapp.ope.targets import Targets

REPLICATES = 500
_NEGLIGIBLE = 1e-4
"""Powers of γ below this are left out."""


class Importance(NamedTuple):
    """Values by estimator ("wis", "pdis"), and how many episodes WIS effectively rests on, [P]."""

    values: dict[str, Values]
    effective_episodes: np.ndarray


def importance(data: Dataset, targets: Targets, discount: float, seed: int = 0) -> Importance | None:
    """Both estimates of every policy; None where the logs, or all policies, do not say how probable actions are.

    Densities of continuous actions are those in the logs' own units; a deterministic policy has none, and no value.
    """
    density = data.extras.get("log_prob")
    if density is None or not (data.discrete or (targets.taken is not None and np.isfinite(targets.taken).any())):
        return None
    starts, lengths = data.episode_starts, data.episode_lengths
    steps = int(min(lengths.max(), np.ceil(np.log(_NEGLIGIBLE) / np.log(discount)) + 1))
    counts = np.random.default_rng((seed, 17)).multinomial(
        data.num_episodes, np.full(data.num_episodes, 1.0 / data.num_episodes), REPLICATES
    )
    counts = np.concatenate([np.ones((1, data.num_episodes)), counts])
    # [E, T]: the row of each step, and which are there
    row = np.minimum(starts[:, None] + np.arange(steps), data.episode_ends[:, None])
    there = np.arange(steps) < lengths[:, None]
    reward = np.where(there, data.reward[row].astype(np.float64), 0.0)
    known = there | data.terminal[data.episode_ends][:, None]
    gamma = discount ** np.arange(steps)
    found: dict[str, list[np.ndarray]] = {"wis": [], "pdis": []}
    effective = []
    for policy in range(len(targets.names)):
        ratio = _taken(data, targets, policy) - np.asarray(density, np.float64).reshape(data.size)
        weight = np.exp(np.cumsum(np.where(there, ratio[row], 0.0), axis=1))
        last = weight[:, -1]
        effective.append(float(last.sum() ** 2 / max(np.square(last).sum(), 1e-300)))
        returns = (gamma * reward).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            found["wis"].append((1 - discount) * (counts @ (last * returns)) / (counts @ last))
            held = np.where(known, weight, 0.0)
            per_step = (counts @ (held * reward)) / (counts @ held)
        # beyond the last recorded step of every episode nothing is known, and nothing is added
        found["pdis"].append((1 - discount) * np.nan_to_num(per_step, nan=0.0) @ gamma)
        if not (last > 0).any():
            found["wis"][-1][:] = found["pdis"][-1][:] = np.nan
    values = {name: Values(np.array([each[0] for each in parts]), np.stack([each[1:] for each in parts], axis=1))
              for name, parts in found.items()}  # fmt: skip
    factor = students_factor(data.num_episodes)
    return Importance({name: widened(each, factor) for name, each in values.items()}, np.array(effective))


def _taken(data: Dataset, targets: Targets, policy: int) -> np.ndarray:
    """Log-probability, or log-density in the logs' units, that the policy gives each logged action, [N]."""
    if targets.taken is not None:
        half = (np.asarray(data.action_high, np.float64) - data.action_low) / 2
        return np.asarray(targets.taken[policy], np.float64) - np.log(half).sum()
    rows = np.arange(data.size)  # it was asked at starts and at next states
    answers = np.asarray(targets.next[policy], np.float64)[np.maximum(rows - 1, 0)]
    answers[data.episode_starts] = np.asarray(targets.start[policy], np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(answers[rows, data.action]))
