"""Exact policy optimisation with state-aware pessimism, from one log.

The objective is J(π) = ⟨ρ, v_p(π)⟩ in the empirical MDP, p(s) = f(w(s))·Dis(π, β̂)(s), over the policies that keep to
the actions of the log. ``Solver`` climbs it by adjoint policy iteration. With d the occupancy of π, τ(s) = α·f(w(s)),

    λ = (I − γAᵖP_D)⁻¹(Aᵖr_D − α·∂⟨d, p⟩/∂d),   q = r_D + γP_D λ,
    π⁺(·|s) = argmax_μ ⟨μ, q(s,·)⟩ − τ(s)·Dis(μ, β̂)(s),

the step goes from π towards π⁺. λ carries the derivative through w, so Σ_s d(s)·⟨π⁺ − π, q − τ·∂Dis⟩(s) is the true
derivative of J along it; it is positive unless π⁺ = π, and vanishes exactly at the stationary points of J. With weights
that do not depend on π, the full step is soft policy iteration and the limit is the global optimum.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse

from sapp.core.errors import SappError
from sapp.tabular.logs import EmpiricalMDP
from sapp.tabular.mdp import Floats, one_hot
from studies.sepsis.spread import HELD, MOVING, Spread

SOLVABLE = ("kl", "cql")
"""Divergences for which π⁺ is known in closed form."""


@dataclass(frozen=True)
class Solution:
    """A policy [S, A], its objective, how far from stationary it is, and what it took.

    residual: dJ/dt towards π⁺, zero exactly at stationary points; ratio, weight [S]: w of mean 1 and f(w), 0 where the
    log never was; mean_weight: of f(w) under d^D, 1 unless the search for its constants did not settle.
    """

    policy: Floats
    value: float
    residual: float
    iterations: int
    seconds: float
    ratio: Floats
    weight: Floats
    mean_weight: float

class Solver:
    """J(π) of one log and its maximisers, on the states the log has seen.

    A policy keeps to the logged actions, and unseen states end the game with value 0, so dropping them is exact.
    """

    def __init__(self, model: EmpiricalMDP, divergence: str = "kl") -> None:
        if divergence not in SOLVABLE:
            raise SappError(f"divergence {divergence!r} has no closed step here: use {' or '.join(SOLVABLE)}")
        if model.batch:
            raise SappError("the solver takes one MDP: index the batch first")
        self.model, self.divergence = model, divergence
        self.index = np.flatnonzero(model.seen)
        self.states, self.actions = len(self.index), model.actions
        self.support = (model.pairs > 0)[self.index]
        self.behaviour = np.where(self.support, model.behaviour[self.index], 0.0)
        self.visits, self.start = model.visits[self.index], model.start[self.index]
        self.pairs = model.pairs[self.index]
        self.reward = np.where(self.support, model.reward[self.index], 0.0)
        self.at, _ = np.nonzero(self.support)
        kept = model.transition[self.index][self.support][:, self.index]
        self.transition = scipy.sparse.csr_matrix(kept)
        self.known: dict[tuple[str, float], Solution] = {}
        self.first = np.concatenate([[0], np.cumsum(self.support.sum(-1))])

    def embed(self, policy: Floats) -> Floats:
        """A policy on the seen states as one on all [S, A]; β̂'s default elsewhere."""
        whole = self.model.behaviour.copy()
        whole[self.index] = policy
        return whole

    def distance(self, policy: Floats) -> tuple[Floats, Floats]:
        """Dis(π, β̂) [n] and its derivative by π [n, A], up to a constant for each state."""
        ratio = policy / np.where(self.support, self.behaviour, 1.0)
        if self.divergence == "cql":
            return np.sum(policy * ratio, -1) - 1.0, 2.0 * ratio
        log = np.log(np.maximum(ratio, 1e-300))
        return np.maximum(np.sum(policy * log, -1), 0.0), np.where(self.support, log, 0.0)

    def best_response(self, q: Floats, temperature: Floats) -> Floats:
        """argmax_μ ⟨μ, q⟩ − τ·Dis(μ, β̂) for each state; greedy where τ = 0."""
        q = np.where(self.support, q, -np.inf)
        top = q.max(-1, keepdims=True)
        tau = np.maximum(temperature, 1e-12)[:, None]
        if self.divergence == "kl":
            power = self.behaviour * np.exp((q - top) / tau)
            return power / power.sum(-1, keepdims=True)
        # χ²: μ = β̂·((q − c)/2τ)₊ with c such that it sums to one; c is found on the k best actions, for the right k.
        order = np.argsort(-q, -1)
        gain = np.take_along_axis(np.where(self.support, (q - top) / (2 * tau), 0.0), order, -1)
        mass = np.take_along_axis(self.behaviour, order, -1)
        total, moment = np.cumsum(mass, -1), np.cumsum(mass * gain, -1)
        level = (moment - 1.0) / np.maximum(total, 1e-300)
        count = np.sum((gain > level) & (mass > 0), -1, keepdims=True)
        cut = np.take_along_axis(level, np.maximum(count - 1, 0), -1)
        share = np.where(self.support, np.maximum(np.where(self.support, (q - top) / (2 * tau), 0.0) - cut, 0.0), 0.0)
        power = self.behaviour * share
        return power / power.sum(-1, keepdims=True)

    def step(self, policy: Floats) -> Floats:
        """AᵖP_D among the seen states [n, n]."""
        mixing = scipy.sparse.csr_matrix((policy[self.support], np.arange(self.first[-1]), self.first))
        return np.asarray((mixing @ self.transition).todense())

    def onward(self, value: Floats) -> Floats:
        """P_D·v [n, A], 0 at unseen pairs."""
        table = np.zeros(self.support.shape)
        table[self.support] = self.transition @ value
        return table

    def solve(
        self, alpha: float, weights: str | Floats = "uniform", iterations: int = 300, tolerance: float = 1e-6,
        rounds: int = 12, initial: Floats | None = None,
    ) -> Solution:
        """argmax_π ⟨ρ, v_p(π)⟩ for p = f(w)·Dis.

        ``weights``: uniform (PP), one of MOVING or HELD (SA-PP), or fixed ones over the seen states [n], scaled to mean
        1. A MOVING f is differentiated through; its constants are those of the policy found: climb, take them anew,
        climb on, until the mean weight is within 2 % of 1, or ``rounds`` or ``iterations`` are spent. J is not concave,
        and the result is a stationary point reached from β̂ (or ``initial``, a policy [S, A]). A HELD f is not
        differentiated through, as in SA-CQL: optimum for fixed weights, new weights (averaged with the old), and so on
        until they settle, so the result is no maximiser of J. A climb ends when dJ/dt, or J's gain over ten steps, is
        at most ``tolerance``.
        """
        if not alpha >= 0:
            raise SappError(f"alpha is {alpha}: it must not be negative")
        if alpha == 0:
            return self.greedy(self.reward)
        began = time.perf_counter()
        policy = self.behaviour if initial is None else np.where(self.support, initial[self.index], 0.0)
        policy = policy / policy.sum(-1, keepdims=True)
        count = 0
        if not isinstance(weights, str) or weights == "uniform":
            fixed = np.ones(self.states) if isinstance(weights, str) else weights / np.sum(self.visits * weights)
            here, residual, count = self._climb(policy, alpha, fixed, iterations, tolerance)
        elif weights in MOVING:
            spread = self._fitted(Spread(weights), policy)
            for number in range(rounds):
                here, residual, used = self._climb(policy, alpha, spread, iterations, tolerance)
                policy, count = here.policy, count + used
                fresh = spread.fitted(here.occupancy / self.visits, self.visits)
                settled = abs(spread.scale / fresh.scale - 1) < 0.02 and abs(spread.unit / fresh.unit - 1) < 0.02
                if settled or count >= iterations:
                    break
                spread = fresh if number < 2 else spread.between(fresh)
        elif weights in HELD:
            spread = self._fitted(Spread(HELD[weights]), policy)
            fixed = np.ones(self.states)
            for _ in range(2 * rounds):
                here, residual, used = self._climb(policy, alpha, fixed, iterations, tolerance)
                policy, count = here.policy, count + used
                ratio = here.occupancy / self.visits
                fresh_weight = spread.fitted(ratio, self.visits).parts(ratio)[0]
                if np.sum(self.visits * np.abs(fresh_weight - fixed)) < 0.01:
                    break
                fixed = 0.5 * (fixed + fresh_weight)
        else:
            known = ", ".join(("uniform", *MOVING, *HELD))
            raise SappError(f"weights {weights!r} are unknown: use {known}, or an array")
        return self._solution(here.policy, here.value, residual, count, began, here.occupancy, here.weight)

    def _solution(
        self, policy: Floats, value: float, residual: float, count: int, began: float, occupancy: Floats, weight: Floats
    ) -> Solution:
        ratio, spent = np.zeros(self.model.states), np.zeros(self.model.states)
        ratio[self.index], spent[self.index] = occupancy / self.visits / occupancy.sum(), weight
        seconds, mean = time.perf_counter() - began, float(np.sum(self.visits * weight))
        return Solution(self.embed(policy), value, residual, count, seconds, ratio, spent, mean)

    def _fitted(self, spread: Spread, policy: Floats) -> Spread:
        matrix = np.eye(self.states) - self.model.discount * self.step(policy)
        occupancy = np.maximum(np.linalg.solve(matrix.T, self.start), 0.0)
        return spread.fitted(occupancy / self.visits, self.visits)

    def _climb(
        self, policy: Floats, alpha: float, spread: Spread | Floats, iterations: int, tolerance: float
    ) -> tuple[Point, float, int]:
        """Adjoint policy iteration at fixed constants, with an Armijo rule on the step."""
        here = Point(self, policy, alpha, spread)
        size, history = 1.0, [here.value]
        residual, count = np.inf, 0
        while count < iterations:
            count += 1
            target, residual = here.towards()
            if residual <= tolerance:
                break
            size = min(1.0, 4.0 * size)
            while True:
                there = Point(self, here.policy + size * (target - here.policy), alpha, spread)
                if there.value >= here.value + 1e-4 * size * residual or size < 1e-8:
                    break
                size *= 0.5
            if size < 1e-8:  # a kink of f
                break
            here = there
            history.append(here.value)
            if len(history) > 10 and history[-1] - history[-11] < tolerance:
                break
        return here, residual, count

    def counts(self, scale: float) -> Solution:
        """argmax_π with the penalty scale·Σ_a π(a|s)·n(s,a)^{-1/2}, that is, the optimum of r_D − scale·n^{-1/2}."""
        if not scale >= 0:
            raise SappError(f"alpha is {scale}: it must not be negative")
        return self.greedy(self.reward - scale / np.sqrt(np.maximum(self.pairs, 1.0)))

    def greedy(self, reward: Floats, rounds: int = 1000) -> Solution:
        """The deterministic optimum over logged actions for a reward [n, A], by policy iteration."""
        began = time.perf_counter()
        reward = np.where(self.support, reward, -np.inf)
        rows, chosen = np.arange(self.states), reward.argmax(-1)
        for count in range(1, rounds + 1):
            matrix = np.eye(self.states) - self.model.discount * self.step(one_hot(chosen, self.actions))
            factors = scipy.linalg.lu_factor(matrix, overwrite_a=True, check_finite=False)
            value = scipy.linalg.lu_solve(factors, reward[rows, chosen])
            q = reward + self.model.discount * self.onward(value)
            better = q.max(-1) > value + 1e-10 * (1 + np.abs(value))
            if not better.any():
                occupancy = scipy.linalg.lu_solve(factors, self.start, trans=1)
                policy, none = one_hot(chosen, self.actions), np.zeros(self.states)
                return self._solution(policy, float(self.start @ value), 0.0, count, began, occupancy, none)
            chosen = np.where(better, q.argmax(-1), chosen)
        raise SappError(f"policy iteration did not settle in {rounds} rounds: raise rounds")

class Point:
    """J at a policy, and what its derivative needs; one factorisation serves d, J and λ."""

    def __init__(self, solver: Solver, policy: Floats, alpha: float, spread: Spread | Floats) -> None:
        self.solver, self.policy = solver, policy
        matrix = np.eye(solver.states) - solver.model.discount * solver.step(policy)
        self.factors = scipy.linalg.lu_factor(matrix, overwrite_a=True, check_finite=False)
        self.occupancy = np.maximum(scipy.linalg.lu_solve(self.factors, solver.start, trans=1), 0.0)
        self.distance, self.tilt = solver.distance(policy)
        if isinstance(spread, Spread):
            self.weight, rise = spread.parts(self.occupancy / solver.visits)
        else:
            self.weight, rise = spread, np.zeros_like(spread)
        self.temperature = alpha * self.weight
        self.slope = alpha * (self.weight + rise) * self.distance
        self.gain = np.sum(policy * solver.reward, -1)
        self.value = float(self.occupancy @ (self.gain - self.temperature * self.distance))

    def towards(self) -> tuple[Floats, float]:
        """π⁺ and dJ/dt along the way to it."""
        adjoint = scipy.linalg.lu_solve(self.factors, self.gain - self.slope)
        q = self.solver.reward + self.solver.model.discount * self.solver.onward(adjoint)
        target = self.solver.best_response(q, self.temperature)
        push = np.sum((target - self.policy) * (q - self.temperature[:, None] * self.tilt), -1)
        return target, float(self.occupancy @ push)
