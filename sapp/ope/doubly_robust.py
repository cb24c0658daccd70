"""From fitted networks to estimates: FQE, DualDICE and their doubly robust combination, each with joint replicates.

The value is normalised, ρ(π) = (1−γ)·E[Σ γᵗ r], in units of reward per step; ρ/(1−γ) is the discounted return.

    FQE            ρ̂ = (1−γ)·mean over starts of E_{a~π} Q(s₀, a)
    DualDICE       ρ̂ = E_D[ζ·r], divided by E_D[ζ] where nothing ends (the true mean of ζ is then 1)
    doubly robust  ρ̂ = (1−γ)·mean V(s₀) + E_D[ζ·(r + γ(1−terminal)·V(s') − Q(s,a))]

The combination is right if either Q or ζ is; its error is a product of theirs. In it every episode is judged by the
bags that did not hold it (the episode is *out of bag*), so that networks are never asked about data they were fitted
to.

A *replicate* is one draw of what the estimate would have been with other logs and other seeds. Replicates are drawn in
common for all policies: those of a difference are differences of replicates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sapp.core.statistics import Interval
from sapp.ope.estimators import Fitted

ESTIMATORS = ("fqe", "dice", "dr")
"""Fitted Q evaluation, DualDICE, doubly robust."""
REPLICATES = 2_000


@dataclass(frozen=True)
class Values:
    """Normalised values of P policies by one estimator: points [P] and joint replicates [R, P]."""

    point: np.ndarray
    replicates: np.ndarray

    def interval(self, policy: int, confidence: float = 0.95) -> Interval:
        """The percentile interval of one policy's value."""
        tail = (1 - confidence) / 2
        low, high = np.quantile(self.replicates[:, policy], (tail, 1 - tail))
        return Interval(float(self.point[policy]), float(low), float(high))


def estimate(fitted: Fitted, seed: int = 0, replicates: int = REPLICATES) -> dict[str, Values]:
    """All three estimates of every policy, by name."""
    return {
        "fqe": spread(fqe_of_bags(fitted), seed, replicates),
        "dice": spread(dice_of_bags(fitted), seed, replicates),
        "dr": doubly_robust(fitted, seed, replicates),
    }


def fqe_of_bags(fitted: Fitted) -> np.ndarray:
    """FQE's estimate of each policy and bag [P, B], over the starts in the bag."""
    starts = np.einsum("pbe,be->pb", fitted.start_value, fitted.counts) / fitted.counts.sum(1)
    return (1 - fitted.settings.discount) * starts


def dice_of_bags(fitted: Fitted) -> np.ndarray:
    """DualDICE's estimate of each policy and bag [P, B], over the rows in the bag."""
    reward = np.einsum("pbe,be->pb", fitted.weighted_reward, fitted.counts)
    if fitted.terminals:
        return reward / (fitted.counts @ fitted.lengths)
    return reward / np.maximum(np.einsum("pbe,be->pb", fitted.weight, fitted.counts), 1e-12)


def spread(bags: np.ndarray, seed: int, replicates: int = REPLICATES) -> Values:
    """Joint replicates from estimates of bags [P, B].

    Bags differ as other logs would (episodes are resampled) and as other seeds would. Replicates are normal with the
    bags' covariance over policies, scaled by Student's factor for its B − 1 degrees of freedom:
    x̄ + Σ_b z_b·(x_b − x̄)/√χ²_{B−1}, z standard normal.
    """
    count = bags.shape[1]
    rng = np.random.default_rng((seed, 11))
    point = bags.mean(1)
    z = rng.standard_normal((replicates, count))
    chi = np.sqrt(rng.chisquare(count - 1, (replicates, 1)))
    return Values(point, point + (z / chi) @ (bags - point[:, None]).T)


def doubly_robust(fitted: Fitted, seed: int, replicates: int = REPLICATES) -> Values:
    """The out-of-bag doubly robust estimate; replicates resample episodes and bags."""
    rng = np.random.default_rng((seed, 13))
    bags, episodes = fitted.counts.shape
    outside = (fitted.counts == 0).astype(np.float64)

    def value(bag_weight: np.ndarray, episode_weight: np.ndarray) -> np.ndarray:
        """[P] for one weighting of bags [B] and episodes [E]."""
        shares = outside * bag_weight[:, None]
        total = shares.sum(0)
        seen = episode_weight * (total > 0)
        shares = shares / np.where(total > 0, total, 1.0)
        starts = np.einsum("pbe,be->pe", fitted.start_value, shares) @ seen / seen.sum()
        errors = np.einsum("pbe,be->pe", fitted.weighted_error, shares) @ seen / (seen @ fitted.lengths)
        return np.asarray((1 - fitted.settings.discount) * starts + errors)

    point = value(np.ones(bags), np.ones(episodes))
    draws = np.empty((replicates, len(point)))
    for number in range(replicates):
        while True:
            bag_weight = rng.multinomial(bags, np.full(bags, 1.0 / bags)).astype(np.float64)
            episode_weight = rng.multinomial(episodes, np.full(episodes, 1.0 / episodes)).astype(np.float64)
            if np.any(outside[bag_weight > 0].any(0) & (episode_weight > 0)):
                break
        draws[number] = value(bag_weight, episode_weight)
    return Values(point, draws)
