"""The exact DualDICE saddle of a finite problem."""

from __future__ import annotations

import numpy as np

from sapp.tabular.logs import EmpiricalMDP
from sapp.tabular.mdp import Floats, solve
from sapp.tabular.occupancy import activity_matrix


def dualdice(model: EmpiricalMDP, policy: Floats) -> tuple[Floats, Floats]:
    """The saddle (ν, ζ) [..., S, A] of

        min_ν max_ζ E_D[(ν(s,a) − γE_{s',a'~π}ν(s',a'))·ζ(s,a) − ζ(s,a)²/2] − (1−γ)·E_{s₀~ρ, a₀~π}[ν(s₀,a₀)].

    With B = I − γP_D Aᵖ and W = diag(d^D·β̂) on the logged pairs: ζ = Bν and BᵀWBν = (1−γ)·ρ⊗π, that is, two solves:
    Bᵀx = (1−γ)·ρ⊗π gives the occupancy x of pairs, ζ = x/(d^D·β̂), ν = B⁻¹ζ. Pairs outside the log weigh nothing in the
    expectation; there ζ is set to 0. It is the saddle when π stays in the support of β̂ and reaches only logged states.
    Then ζ = (1−γ)·w(s)·π/β̂ with w unnormalised, and Σ_a β̂·ζ is the state ratio.
    """
    states, actions = policy.shape[-2:]
    size = states * actions
    activity = activity_matrix(policy)
    transition = model.transition.reshape(*model.transition.shape[:-3], size, states)
    b = np.eye(size) - model.discount * (transition @ activity)
    source = (1 - model.discount) * (model.start[..., None] * policy)
    flat = np.broadcast_to(source, (*b.shape[:-2], states, actions)).reshape(*b.shape[:-2], size)
    pairs = solve(np.swapaxes(b, -1, -2), flat)
    logged = (model.visits[..., None] * model.behaviour).reshape(*model.visits.shape[:-1], size)
    zeta = np.where(logged > 0, pairs / np.where(logged > 0, logged, 1.0), 0.0)
    nu = solve(b, zeta)
    shape = (*zeta.shape[:-1], states, actions)
    return nu.reshape(shape), zeta.reshape(shape)


def state_ratio_from_zeta(model: EmpiricalMDP, zeta: Floats) -> Floats:
    """Σ_a β̂(a|s)·ζ(s,a) [..., S]: the normalised state ratio, short by the mass π puts outside the support of β̂."""
    return np.sum(model.behaviour * zeta, -1)
