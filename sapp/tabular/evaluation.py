"""Pessimistic policy evaluation: PP, SA-PP and f-SA-PP, in closed form and iterated; tabular SA-CQL."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from sapp.core.errors import SappError
from sapp.tabular.divergence import divergence
from sapp.tabular.logs import EmpiricalMDP
from sapp.tabular.mdp import FiniteMDP, Floats, solve
from sapp.tabular.occupancy import state_ratio, unnormalised_occupancy
from sapp.tabular.weights import Uniform, Weights, is_normalised

COUNT = "count"
"""Name of the count-based penalty n^{-1/2}_{D,π}, used in place of a divergence."""


@dataclass(frozen=True)
class Pessimism:
    """α·p with p(s) = weights(w(s))·Dis(π, β̂)(s).

    ``divergence``: cql, kl, tv or mmd, or ``count`` for the uncertainty n^{-1/2}_{D,π}(s) = Σ_a π(a|s)·n(s,a)^{-1/2}.
    ``weights``: how it is spread; ``Uniform()`` is PP, ``Ratio()`` is SA-PP.
    """

    alpha: float
    divergence: str = "cql"
    weights: Weights = field(default_factory=Uniform)

    def __post_init__(self) -> None:
        if not self.alpha >= 0:
            raise SappError(f"alpha is {self.alpha}: it must not be negative")
        if self.divergence != COUNT:
            divergence(self.divergence)

    def at(self, alpha: float) -> Self:
        """The same with another α."""
        return replace(self, alpha=alpha)

    def distance(self, policy: Any, model: EmpiricalMDP, smooth: float = 0.0) -> Any:
        """Dis(π, β̂) [..., S], or the count-based penalty; ``smooth`` rounds the kinks of TV and MMD."""
        if self.divergence == COUNT:
            return uncertainty(policy, model.pairs)
        return divergence(self.divergence)(policy, model.behaviour, smooth)

    def state_weights(self, occupancy: Any, model: EmpiricalMDP) -> Any:
        """weights(w(s)) [..., S], given the unnormalised occupancy of the policy."""
        factor = 1 - model.discount if is_normalised(self.weights) else 1.0
        return self.weights(state_ratio(factor * occupancy, model.visits))

    def penalty(self, policy: Any, occupancy: Any, model: EmpiricalMDP, smooth: float = 0.0) -> Any:
        """p [..., S], without α, given the unnormalised occupancy of the policy."""
        return weighted(self.state_weights(occupancy, model), self.distance(policy, model, smooth))


def weighted(weights: Any, distance: Any) -> Any:
    """weights·distance, with 0·∞ = 0."""
    xp = distance.__array_namespace__()
    some = (distance > 0) & (weights > 0)
    return xp.where(some, xp.where(some, weights, 0.0) * xp.where(some, distance, 0.0), 0.0)


def uncertainty(policy: Any, pairs: Any) -> Any:
    """n^{-1/2}_{D,π}(s) = Σ_a π(a|s)·n(s,a)^{-1/2} [..., S]; +∞ where π takes an action never seen."""
    xp = policy.__array_namespace__()
    seen = pairs > 0
    inside = xp.sum(xp.where(seen, policy / xp.sqrt(xp.where(seen, pairs, 1.0)), 0.0), axis=-1)
    return xp.where(xp.any(~seen & (policy > 0), axis=-1), xp.inf, inside)


def penalty(model: EmpiricalMDP, policy: Floats, pessimism: Pessimism) -> Floats:
    """p(s) = weights(w(s))·Dis(π, β̂)(s) [..., S], without α."""
    return np.asarray(pessimism.penalty(policy, unnormalised_occupancy(model, policy), model))


def evaluate(model: EmpiricalMDP, policy: Floats, pessimism: Pessimism) -> Floats:
    """v_p(π) = (I − γAᵖP_D)⁻¹(Aᵖr_D − αp) [..., S]."""
    return evaluate_penalty(model, policy, pessimism.alpha * penalty(model, policy, pessimism))


def evaluate_penalty(model: FiniteMDP, policy: Floats, charge: Floats) -> Floats:
    """(I − γAᵖP_D)⁻¹(Aᵖr_D − charge) [..., S] for any state-wise charge (α included); −∞ where it is infinite."""
    gain = np.sum(policy * model.reward, -1)
    infinite = np.isinf(charge)
    matrix = model.resolvent_inverse(policy)
    value = solve(matrix, gain - np.where(infinite, 0.0, charge))
    if infinite.any():
        reach = solve(matrix, infinite.astype(float) + 0.0 * gain)
        value = np.where(reach > 1e-14, -np.inf, value)
    return value


def iterate(
    model: EmpiricalMDP, policy: Floats, pessimism: Pessimism, steps: int = 100_000, tolerance: float = 1e-13
) -> tuple[Floats, int]:
    """v ← Aᵖ(r_D + γP_D v) − αp until it moves by less than ``tolerance``·(1 + max|v|); v [..., S] and the steps taken.

    p does not depend on v, so this is a γ-contraction whatever the weights and its fixed point is ``evaluate``'s.
    """
    gain = np.sum(policy * model.reward, -1) - pessimism.alpha * penalty(model, policy, pessimism)
    step = model.discount * model.step(policy)
    value = np.zeros_like(gain)
    for count in range(1, steps + 1):
        following = gain + (step @ value[..., None])[..., 0]
        moved = np.max(np.abs(following - value), initial=0.0)
        value = following
        if moved <= tolerance * (1 + np.max(np.abs(value), initial=0.0)):
            return value, count
    raise SappError(f"evaluation did not settle in {steps} steps: raise steps")


def sa_cql_charge(model: EmpiricalMDP, policy: Floats, pessimism: Pessimism) -> Floats:
    """α·weights(w(s))·(π(a|s) − β̂(a|s))/β̂(a|s) [..., S, A], 0 on actions outside the support of β̂."""
    weights = pessimism.state_weights(unnormalised_occupancy(model, policy), model)
    inside = model.behaviour > 0
    tilt = np.where(inside, policy / np.where(inside, model.behaviour, 1.0) - 1.0, 0.0)
    tilt = np.where(np.isinf(weights)[..., None], 0.0, np.where(np.isinf(weights), 0.0, weights)[..., None] * tilt)
    return pessimism.alpha * tilt


def sa_cql_q(model: EmpiricalMDP, policy: Floats, pessimism: Pessimism) -> Floats:
    """Fixed point Q [..., S, A] of tabular (SA-)CQL,

        Q(s,a) = r_D + γP_D E_π Q − α·weights(w(s))·(π − β̂)/β̂,

    in closed form. When π stays in the support of β̂, E_π Q is ``evaluate``'s v under CQL's divergence.
    """
    charge = sa_cql_charge(model, policy, pessimism)
    value = evaluate_penalty(model, policy, np.sum(policy * charge, -1))
    return model.action_value(value) - charge


def sa_cql_iteration(model: EmpiricalMDP, policy: Floats, pessimism: Pessimism, q: Floats) -> Floats:
    """One step of tabular (SA-)CQL from Q [..., S, A].

    The minimiser over Q' of α·Σ_s d^D(s)·weights(w(s))·(E_π Q' − E_β̂ Q') + ½·E_D[(Q' − r_D − γP_D E_π Q)²]: where
    d^D·β̂ > 0 its gradient d^D·(α·weights·(π − β̂) + β̂·(Q' − target)) vanishes at target − α·weights·(π − β̂)/β̂.
    Elsewhere: the target.
    """
    return model.action_value(np.sum(policy * q, -1)) - sa_cql_charge(model, policy, pessimism)
