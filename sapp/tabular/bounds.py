"""Suboptimality, its upper bound SUBOPT-UB, and the constant C₀."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sapp.core.errors import SappError
from sapp.tabular.mdp import FiniteMDP, Floats


def suboptimality(mdp: FiniteMDP, policy: Floats, optimal_value: Floats | None = None) -> Floats:
    """SUBOPT = ⟨ρ, V^{π*} − V^π⟩ in the true MDP [...]."""
    best = mdp.optimal()[1] if optimal_value is None else optimal_value
    return mdp.expected(best - mdp.value(policy))


def c0_printed(states: int, actions: int, policies: float, discount: float, delta: float) -> float:
    """C₀ = 1/(1−γ)·min(√(½ ln(2|S||A|/δ)), √(½ ln(2|S||Π|/δ))), as the paper prints it; ``policies`` may be ∞."""
    return _hoeffding(states * min(actions, policies), discount, delta)


def c0_repaired(states: int, policies: float, discount: float, delta: float) -> float:
    """C₀ = 2/(1−γ)·√(½ ln(2|S||Π|/δ)).

    For one π, (P_D − P)(r + γV^π) averages terms of range 2/(1−γ) when r ∈ [−1, 1], which doubles Hoeffding's width;
    and V^π changes with π, so the union runs over Π too. Averaged over a ~ π the deviation is sub-Gaussian with a
    factor √(Σ_a π²/n(s,a)) ≤ Σ_a π/√n(s,a), so states are enough: no |A|. Counts are taken as given (the successors of
    each pair independent).
    """
    if not np.isfinite(policies):
        raise SappError("the repaired C0 needs a finite class of policies")
    return 2 * _hoeffding(states * policies, discount, delta)


def _hoeffding(events: float, discount: float, delta: float) -> float:
    if not 0 < delta < 1:
        raise SappError(f"delta is {delta}: it must lie between 0 and 1")
    if not 0 <= discount < 1:
        raise SappError(f"discount is {discount}: it must lie in [0, 1)")
    return float(np.sqrt(0.5 * np.log(2 * events / delta)) / (1 - discount))


@dataclass(frozen=True)
class UpperBound:
    """SUBOPT-UB over a finite class Π, with its parts for every policy.

    inf [..., K]: INF(π) = ⟨ρ, V^{π*} − V^π⟩ + ⟨d_D^π, C₀n^{-1/2} + αp⟩.
    sup [..., K]: SUP(π) = ⟨d_D^π, C₀n^{-1/2} − αp⟩.
    """

    inf: Floats
    sup: Floats

    @property
    def total(self) -> Floats:
        """inf_π INF + sup_π SUP [...]."""
        return self.inf.min(-1) + self.sup.max(-1)

    @property
    def arg_inf(self) -> np.ndarray:
        """Index of the minimiser of INF [...]."""
        return self.inf.argmin(-1)

    @property
    def arg_sup(self) -> np.ndarray:
        """Index of the maximiser of SUP [...]."""
        return self.sup.argmax(-1)


def upper_bound(gap: Floats, occupancy: Floats, width: Floats, charge: Floats) -> UpperBound:
    """SUBOPT-UB from ⟨ρ, V^{π*} − V^π⟩ [..., K], d_D^π, C₀n^{-1/2}_{D,π} and αp, each [..., K, S]."""
    doubt = _inner(occupancy, width)
    cost = _inner(occupancy, charge)
    return UpperBound(gap + doubt + cost, doubt - cost)


def _inner(occupancy: Floats, values: Floats) -> Floats:
    """⟨d, x⟩ over states, where an unvisited state costs nothing even if x is infinite there."""
    reached = occupancy > 0
    return np.sum(np.where(reached, occupancy * np.where(reached, values, 0.0), 0.0), -1)
