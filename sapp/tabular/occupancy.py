"""Activity matrices, discounted occupancies and occupancy ratios.

Two conventions exist and differ by 1/(1−γ); here each has its own name. The paper's theory uses the *unnormalised*
occupancy d(s) = Σ_t γᵗ Pr(s_t = s), whose sum is 1/(1−γ); DualDICE returns the *normalised* one, (1−γ)d, which sums
to 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sapp.tabular.logs import EmpiricalMDP
from sapp.tabular.mdp import FiniteMDP, Floats, solve


def activity_matrix(policy: Floats) -> Floats:
    """Aᵖ [..., S, S·A]: row s carries π(·|s) in its own block, so Aᵖr = E_π r and AᵖP is the policy's step."""
    states, actions = policy.shape[-2:]
    blocks = np.eye(states)[:, :, None] * policy[..., :, None, :]
    return blocks.reshape(*policy.shape[:-2], states, states * actions)


def unnormalised_occupancy(mdp: FiniteMDP, policy: Floats) -> Floats:
    """d(s) = ρ(I − γAᵖP)⁻¹ [..., S]; sums to 1/(1−γ). In an empirical MDP this is d_D^π."""
    inverse = np.swapaxes(mdp.resolvent_inverse(policy), -1, -2)
    return solve(inverse, np.broadcast_to(mdp.start, inverse.shape[:-1]))


def normalised_occupancy(mdp: FiniteMDP, policy: Floats) -> Floats:
    """(1−γ)·ρ(I − γAᵖP)⁻¹ [..., S]; sums to 1."""
    return (1 - mdp.discount) * unnormalised_occupancy(mdp, policy)


def state_ratio(occupancy: Any, visits: Any) -> Any:
    """w(s) = d(s)/d^D(s) [..., S]: +∞ where the log has never been and the policy goes, 0 where neither does.

    As unnormalised or normalised as the occupancy given: Σ_s d^D(s)·w(s) is its sum over the states in the log.
    """
    xp = occupancy.__array_namespace__()
    seen = visits > 0
    ratio = occupancy / xp.where(seen, visits, 1.0)
    return xp.where(seen, ratio, xp.where(occupancy > 0, xp.inf, 0.0))


def policy_ratio(model: EmpiricalMDP, policy: Floats, normalised: bool = True) -> Floats:
    """w(s) of a policy in an empirical MDP [..., S]."""
    occupancy = normalised_occupancy if normalised else unnormalised_occupancy
    return state_ratio(occupancy(model, policy), model.visits)
