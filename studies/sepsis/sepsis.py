"""Does state-aware pessimism help on ICU-Sepsis? Exact policy optimisation on 716 × 25, from logs of the clinicians.

ICU-Sepsis (Choudhary, Gupta and Thomas, 2024) is a finite MDP estimated from MIMIC-III: 713 clusters of patients'
states, death, survival and an absorbing state behind both, 25 doses of fluids and vasopressors, reward 1 on survival.
It comes with the clinicians' policy, so logs of any size can be drawn and what is lost by learning from them is known
exactly.

The objective is J(π) = ⟨ρ, v_p(π)⟩ in the empirical MDP, p(s) = f(w(s))·Dis(π, β̂)(s), over the policies that keep to
the actions of the log. ``Solver`` climbs it by adjoint policy iteration. With d the occupancy of π, τ(s) = α·f(w(s)),

    λ = (I − γAᵖP_D)⁻¹(Aᵖr_D − α·∂⟨d, p⟩/∂d),   q = r_D + γP_D λ,
    π⁺(·|s) = argmax_μ ⟨μ, q(s,·)⟩ − τ(s)·Dis(μ, β̂)(s),

the step goes from π towards π⁺. λ carries the derivative through w, so Σ_s d(s)·⟨π⁺ − π, q − τ·∂Dis⟩(s) is the true
derivative of J along it; it is positive unless π⁺ = π, and vanishes exactly at the stationary points of J. With weights
that do not depend on π, the full step is soft policy iteration and the limit is the global optimum.
"""

from __future__ import annotations

import csv
import importlib.util
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

from sapp.core.errors import SappError
from sapp.core.statistics import Interval, bootstrap_interval, paired_difference
from sapp.tabular.bounds import suboptimality
from sapp.tabular.logs import EmpiricalMDP, Log, draw_episodes, empirical
from sapp.tabular.mdp import FiniteMDP, Floats, one_hot

if TYPE_CHECKING:
    from rich.console import Console

HORIZON = 500
"""Steps after which the package cuts an episode off."""

# --- the task -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """A true MDP that pays 1 on entering ``paying``, the policy that fills the logs, and the states that end them.

    behaviour [S, A]; ends [S]: no step out of them is logged, and their value is 0.
    """

    name: str
    mdp: FiniteMDP
    behaviour: Floats
    ends: NDArray[np.bool_]
    paying: int

    def draw(self, rng: np.random.Generator, transitions: int) -> Log:
        """A log of whole episodes under the behaviour policy, of about that many transitions.

        Its rewards are what the episodes paid, so r_D is as noisy as P_D.
        """
        if transitions < 1:
            raise SappError(f"transitions is {transitions}: a log needs at least one")
        episodes = max(1, round(transitions / self.length))
        log = draw_episodes(self.mdp, rng, episodes, self.behaviour, HORIZON, self.ends)
        return Log(log.counts, log.counts[..., self.paying].astype(np.float64))

    def model(self, log: Log) -> EmpiricalMDP:
        """The empirical MDP; in a state that the log never saw the policy is uniform over all actions."""
        return empirical(log, self.mdp.start, self.mdp.discount)

    @property
    def length(self) -> float:
        """Mean number of steps of an episode under the behaviour policy."""
        inside = ~self.ends
        step = self.mdp.step(self.behaviour)[np.ix_(inside, inside)]
        visits = np.linalg.solve((np.eye(len(step)) - step).T, self.mdp.start[inside])
        return float(visits.sum())


def icu_sepsis(discount: float = 0.99) -> Task:
    """ICU-Sepsis and its clinicians' policy, read from the arrays inside the package ``icu-sepsis``.

    Only the arrays are read (no pickle): importing the package would import gym. The package counts returns without a
    discount; an episode lasts about nine steps, so 0.99 changes little.
    """
    found = importlib.util.find_spec("icu_sepsis")
    if found is None or not found.submodule_search_locations:
        raise SappError("ICU-Sepsis is not installed: pip install icu-sepsis")
    path = Path(found.submodule_search_locations[0], "envs", "assets", "dynamics.npz")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            transition, gain = arrays["tx_mat"], arrays["r_mat"]
            start, behaviour = arrays["d_0"], arrays["expert_policy"].copy()
    except (OSError, KeyError, ValueError) as error:
        raise SappError(f"{path.name} of icu-sepsis cannot be read ({error}): pip install icu-sepsis==2.0.1") from None
    survival = np.unique(np.nonzero(gain)[2])
    if len(survival) != 1 or not np.all(gain[:, :, survival[0]][transition[:, :, survival[0]] > 0] == 1):
        raise SappError("this icu-sepsis does not pay 1 on survival and nothing else: pip install icu-sepsis==2.0.1")
    ends = behaviour.sum(-1) == 0
    behaviour[ends] = 1.0 / behaviour.shape[-1]
    mdp = FiniteMDP(transition, np.sum(transition * gain, -1), start, discount)
    return Task("icu-sepsis", mdp, behaviour, ends, int(survival[0]))


def ward(rng: np.random.Generator, states: int = 12, actions: int = 4, discount: float = 0.95) -> Task:
    """A small task of the same form (random patients, death, survival), for tests and quick looks."""
    total = states + 2
    transition = np.zeros((total, actions, total))
    transition[:states] = rng.dirichlet(np.full(total, 0.3), (states, actions))
    transition[states:] = np.eye(total)[states:, None]
    transition[:states, :, states:] += 0.05
    transition /= transition.sum(-1, keepdims=True)
    reward = transition[:, :, -1].copy()
    reward[states:] = 0.0
    behaviour = rng.dirichlet(np.ones(actions), total)
    start = np.zeros(total)
    start[:states] = rng.dirichlet(np.ones(states))
    mdp = FiniteMDP(transition, reward, start, discount)
    return Task("ward", mdp, behaviour, np.arange(total) >= states, total - 1)


# --- weights --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spread:
    """f(w) = scale·φ(w), where w is the occupancy over d^D times a constant.

    ``unit``: w has mean 1 under d^D at the policy found. ``scale``: so has f(w); hence every way of spreading pessimism
    spends the same amount at the same α. low, high: the ends of log-min–max, the 1 % and 99 % quantiles of log w under
    d^D (the plain minimum is set by some state that π nearly never enters, and makes f constant). These are statistics
    of a batch: they are held while the policy climbs, and then taken anew (``Solver.solve``).
    """

    kind: str
    unit: float = 1.0
    scale: float = 1.0
    low: float = -1.0
    high: float = 1.0

    def parts(self, ratio: Floats) -> tuple[Floats, Floats]:
        """f(w) and its elasticity term w·f'(w), given the unscaled ratio d/d^D."""
        w = self.unit * ratio
        if self.kind == "w":
            value, rise = w, w
        elif self.kind == "sqrt-w":
            value = np.sqrt(w)
            rise = 0.5 * value
        elif self.kind == "clipped-w":
            value = np.minimum(w, CEILING)
            rise = np.where(w < CEILING, w, 0.0)
        else:
            u = (np.log(np.maximum(w, 1e-300)) - self.low) / (self.high - self.low)
            value = np.clip(u, 0.0, 1.0)
            rise = np.where((u > 0) & (u < 1), 1.0 / (self.high - self.low), 0.0)
        return self.scale * value, self.scale * rise

    def fitted(self, ratio: Floats, visits: Floats) -> Spread:
        """The same f with its constants taken at this ratio d/d^D."""
        unit = 1.0 / float(np.sum(visits * ratio))
        low, high = _quantiles(np.log(np.maximum(unit * ratio, 1e-300)), visits, (0.01, 0.99))
        fresh = Spread(self.kind, unit, 1.0, low, max(high, low + 1e-6))
        return replace(fresh, scale=1.0 / float(np.sum(visits * fresh.parts(ratio)[0])))

    def between(self, other: Spread) -> Spread:
        """Constants half-way (in logarithm) to those of another."""
        return replace(
            self, unit=float(np.sqrt(self.unit * other.unit)), scale=float(np.sqrt(self.scale * other.scale)),
            low=0.5 * (self.low + other.low), high=0.5 * (self.high + other.high),
        )


def _quantiles(values: Floats, weights: Floats, levels: Sequence[float]) -> list[float]:
    order = np.argsort(values)
    mass = np.cumsum(weights[order]) / np.sum(weights)
    return [float(values[order[min(int(np.searchsorted(mass, level)), len(order) - 1)]]) for level in levels]


# --- the solver -----------------------------------------------------------------------------------------------------

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
    ) -> tuple[_Point, float, int]:
        """Adjoint policy iteration at fixed constants, with an Armijo rule on the step."""
        here = _Point(self, policy, alpha, spread)
        size, history = 1.0, [here.value]
        residual, count = np.inf, 0
        while count < iterations:
            count += 1
            target, residual = here.towards()
            if residual <= tolerance:
                break
            size = min(1.0, 4.0 * size)
            while True:
                there = _Point(self, here.policy + size * (target - here.policy), alpha, spread)
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


class _Point:
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


# --- methods --------------------------------------------------------------------------------------------------------

CEILING = 2.0
"""Where ``clipped-w`` cuts w, whose mean is 1."""

MOVING = ("w", "sqrt-w", "clipped-w")
"""Weights that depend on the policy and are differentiated through: (f-)SA-PP as the paper's theory has it."""

HELD = {"w-held": "w", "log-min-max": "log-min-max"}
"""Weights that depend on the policy but are held while it improves, as SA-CQL does.

Log-min–max is here because it stretches whatever spread w has to [0, 1]: near β̂ its derivative is without bound.
"""

METHODS: dict[str, str] = {
    "none": "no pessimism",
    "pp": "PP",
    "w": "SA-PP, w",
    "sqrt-w": "SA-PP, √w",
    "clipped-w": f"SA-PP, min(w, {CEILING:g})",
    "w-held": "SA-PP, w held",
    "log-min-max": "SA-PP, log-min–max held",
    "random": "random weights",
    "shuffled": "shuffled w",
    "count": "counts, n^(-1/2)",
}
"""What is compared, with its label."""

REFERENCES = {"imitation": "β̂ itself", "clinicians": "clinicians' policy"}
"""Policies that nothing is optimised for, recorded beside the methods."""

ALPHAS = (1e-3, 3e-3, 5.6e-3, 1e-2, 1.3e-2, 1.8e-2, 3e-2, 5.6e-2, 1e-1, 3e-1, 1.0)
"""The default grid of α."""


def learn(method: str, solver: Solver, alpha: float, seed: Sequence[int] = (0,)) -> Solution:
    """The policy a method learns from a log at α; ``seed`` draws the random weights and the shuffle.

    ``shuffled`` takes the weights that SA-PP ends with at the same α and permutes them over the logged states, so that
    it has the same histogram and no information about where.
    """
    rng = np.random.default_rng([2, *seed])
    if method == "none":
        return solver.solve(0.0)
    if method == "count":
        return solver.counts(alpha)
    if method == "pp":
        return solver.solve(alpha)
    if method in MOVING or method in HELD:
        return _kept(solver, method, alpha)
    if method == "random":
        return solver.solve(alpha, rng.uniform(0.0, 1.0, solver.states))
    if method == "shuffled":
        return solver.solve(alpha, rng.permutation(_kept(solver, "w", alpha).ratio[solver.index]))
    raise SappError(f"method {method!r} is unknown: use {', '.join(METHODS)}")


def _kept(solver: Solver, method: str, alpha: float) -> Solution:
    """The solution of a moving f, remembered: ``shuffled`` asks for w's again."""
    if (method, alpha) not in solver.known:
        solver.known[method, alpha] = solver.solve(alpha, method)
    return solver.known[method, alpha]


# --- the experiment -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One policy learnt from one log and its true suboptimality."""

    task: str
    discount: float
    divergence: str
    seed: int
    size: int
    role: str
    draw: int
    method: str
    alpha: float
    transitions: int
    suboptimality: float
    objective: float
    mean_weight: float
    residual: float
    iterations: int
    seconds: float

    @property
    def key(self) -> tuple[Any, ...]:
        """What it was asked to do; two rows with one key are the same work."""
        data = (self.task, self.discount, self.divergence, self.seed, self.size, self.role, self.draw)
        return (*data, self.method, self.alpha)


class Rows:
    """Rows in a CSV that grows line by line; what it holds already is not done again."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.rows: dict[tuple[Any, ...], Row] = {}
        if self.path is not None and self.path.exists():
            for row in read_rows(self.path):
                self.rows[row.key] = row
            self._rewrite()

    def _rewrite(self) -> None:
        """Write all anew, aside and then in place: mends a last line that was cut off."""
        assert self.path is not None
        aside = self.path.with_name(self.path.name + ".partial")
        with aside.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([field.name for field in fields(Row)])
            writer.writerows([list(asdict(row).values()) for row in self.rows.values()])
        aside.replace(self.path)

    def add(self, row: Row) -> None:
        """Keep a row, in the file too."""
        self.rows[row.key] = row
        if self.path is None:
            return
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._rewrite()
            return
        with self.path.open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerow(asdict(row).values())


def read_rows(path: str | Path) -> list[Row]:
    """The rows of a results file. An unfinished last line is dropped; any other bad line is an error.

    A file may hold more than one experiment (other seeds, another grid and so other tuned α): ``experiment`` with the
    same arguments returns the rows of one without doing any work again.
    """
    path = Path(path)
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SappError(f"{path} cannot be read: {error}") from None
    lines = list(csv.reader(text.splitlines()))
    names = [field.name for field in fields(Row)]
    if not lines or lines[0] != names:
        raise SappError(f"{path} is not a results file of this experiment: its first line should be {','.join(names)}")
    kinds: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "str": str}
    readers = [kinds[str(field.type)] for field in fields(Row)]
    rows = []
    for number, cells in enumerate(lines[1:], 2):
        cut_off = number == len(lines) and not text.endswith("\n")
        try:
            values = [reader(cell) for reader, cell in zip(readers, cells, strict=True)]
        except ValueError:
            if cut_off:
                continue
            raise SappError(f"{path} line {number} is not a row of {len(names)} values: remove it") from None
        if not cut_off:
            rows.append(Row(*values))
    return rows


def experiment(
    path: str | Path | None = None, sizes: Sequence[int] = (1_000, 10_000, 100_000, 1_000_000), draws: int = 12,
    tuning: int = 4, seed: int = 0, divergence: str = "kl", alphas: Sequence[float] = ALPHAS,
    methods: Iterable[str] = tuple(METHODS), task: Task | None = None, console: Console | None = None,
) -> list[Row]:
    """Draw logs, learn, measure the true suboptimality; resume from the CSV at ``path`` if it is there.

    For each size: every method at every α on ``tuning`` logs; then, on ``draws`` other logs, every method at the α that
    did best on average on the tuning logs (counts at ten times the grid: their unit is smaller). All methods see the
    same logs. Returns the rows of this experiment.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    methods = tuple(methods)
    for name in methods:
        if name not in METHODS:
            raise SappError(f"method {name!r} is unknown: use {', '.join(METHODS)}")
    if not sizes or min(sizes) < 1 or draws < 1 or tuning < 1:
        raise SappError("sizes, draws and tuning must be at least 1")
    if not alphas or min(alphas) <= 0:
        raise SappError("every alpha must be positive: no pessimism is the method 'none'")
    if divergence not in SOLVABLE:
        raise SappError(f"divergence {divergence!r} has no closed step here: use {' or '.join(SOLVABLE)}")
    task = icu_sepsis() if task is None else task
    store = Rows(path)
    best = task.mdp.optimal()[1]
    wanted: list[Row] = []
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, disable=console is None) as progress:
        per_tuning = sum(len(_grid(name, alphas)) for name in methods)
        bar = progress.add_task("", total=len(sizes) * (tuning * per_tuning + draws * (len(methods) + len(REFERENCES))))

        def work(size: int, role: str, draw: int, jobs: list[tuple[str, float]]) -> None:
            progress.update(bar, description=f"{size:,} transitions, {role} {draw}")
            solver: Solver | None = None
            transitions, key = 0, (seed, ("tuning", "evaluation").index(role), size, draw)
            for method, alpha in jobs:
                asked = (task.name, task.mdp.discount, divergence, seed, size, role, draw, method, alpha)
                if asked not in store.rows:
                    if solver is None:
                        log = task.draw(np.random.default_rng([1, *key]), size)
                        transitions = int(log.size)
                        solver = Solver(task.model(log), divergence)
                    store.add(Row(*asked, transitions, *_measure(task, solver, method, alpha, key, best)))
                wanted.append(store.rows[asked])
                progress.advance(bar)

        for size in sizes:
            for draw in range(tuning):
                work(size, "tuning", draw, [(name, alpha) for name in methods for alpha in _grid(name, alphas)])
            chosen = tuned([row for row in wanted if row.size == size])
            for draw in range(draws):
                work(size, "evaluation", draw, [*chosen.items(), *((name, 0.0) for name in REFERENCES)])
    return wanted


def _grid(method: str, alphas: Sequence[float]) -> tuple[float, ...]:
    if method == "none":
        return (0.0,)
    return tuple(round(10 * alpha, 12) for alpha in alphas) if method == "count" else tuple(alphas)


def _measure(
    task: Task, solver: Solver, method: str, alpha: float, key: tuple[int, ...], best: Floats
) -> tuple[float, float, float, float, int, float]:
    """Suboptimality, objective, mean weight, residual, iterations and seconds of one method on one log."""
    if method in REFERENCES:
        policy = task.behaviour if method == "clinicians" else solver.model.behaviour
        return float(suboptimality(task.mdp, policy, best)), float("nan"), 0.0, 0.0, 0, 0.0
    began = time.perf_counter()
    found = learn(method, solver, alpha, key)
    seconds = time.perf_counter() - began
    value = float(suboptimality(task.mdp, found.policy, best))
    return value, found.value, found.mean_weight, found.residual, found.iterations, round(seconds, 4)


def tuned(rows: Iterable[Row]) -> dict[str, float]:
    """For each method the α with the lowest mean suboptimality over the tuning logs of one size."""
    scores: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        if row.role == "tuning":
            scores.setdefault(row.method, {}).setdefault(row.alpha, []).append(row.suboptimality)
    return {
        method: min(by_alpha, key=lambda alpha: float(np.mean(by_alpha[alpha])))
        for method, by_alpha in scores.items()
    }


@dataclass(frozen=True)
class Summary:
    """A method at one size: its α, mean suboptimality over evaluation logs, and that minus PP's on the same logs."""

    size: int
    method: str
    alpha: float
    suboptimality: Interval
    against_pp: Interval | None
    logs: int


def summarise(rows: Iterable[Row], seed: int = 0, confidence: float = 0.95) -> list[Summary]:
    """Means over evaluation logs with bootstrap intervals, and paired differences to PP (negative: better than PP)."""
    table: dict[int, dict[str, dict[int, Row]]] = {}
    for row in rows:
        if row.role == "evaluation":
            table.setdefault(row.size, {}).setdefault(row.method, {})[row.draw] = row
    result = []
    for size, methods in sorted(table.items()):
        base = methods.get("pp")
        for name in (*METHODS, *REFERENCES):
            if name not in methods:
                continue
            own = methods[name]
            values = [own[draw].suboptimality for draw in sorted(own)]
            against = None
            if base is not None and name != "pp":
                shared = sorted(set(own) & set(base))
                against = paired_difference(
                    [own[d].suboptimality for d in shared], [base[d].suboptimality for d in shared], seed,
                    confidence=confidence,
                )
            interval = bootstrap_interval(values, seed, confidence=confidence)
            result.append(Summary(size, name, next(iter(own.values())).alpha, interval, against, len(values)))
    return result


def label(method: str) -> str:
    """How a method is called in tables and figures."""
    return METHODS.get(method) or REFERENCES[method]


def print_summary(console: Console, summary: Sequence[Summary]) -> None:
    """The table for the terminal: suboptimality × 1000 and the difference to PP × 1000."""
    from rich.table import Table

    for size in sorted({line.size for line in summary}):
        lines = [line for line in summary if line.size == size]
        table = Table(title=f"{size:,} transitions, {lines[0].logs} logs", title_justify="left")
        table.add_column("method")
        for name in ("α (tuned)", "suboptimality ×10³", "minus PP ×10³"):
            table.add_column(name, justify="right")
        for line in lines:
            table.add_row(*_cells(line), style=_style(line.against_pp))
        console.print(table)


def markdown(summary: Sequence[Summary]) -> str:
    """The same as one Markdown table for each size."""
    parts = []
    for size in sorted({line.size for line in summary}):
        lines = [line for line in summary if line.size == size]
        parts.append(f"**{size:,} transitions** ({lines[0].logs} logs)\n\n| method | α (tuned) | suboptimality ×10³ | "
                     "minus PP ×10³ |\n|---|---:|---:|---:|")
        parts[-1] += "".join("\n| " + " | ".join(_cells(line)) + " |" for line in lines)
    return "\n\n".join(parts) + "\n"


def _cells(line: Summary) -> tuple[str, str, str, str]:
    alpha = f"{line.alpha:g}" if line.alpha else "–"
    return label(line.method), alpha, _interval(line.suboptimality), _interval(line.against_pp, "+")


def _interval(interval: Interval | None, sign: str = "") -> str:
    if interval is None:
        return "–"
    low, high = interval.low * 1e3, interval.high * 1e3
    return f"{interval.estimate * 1e3:{sign}.2f} [{low:{sign}.2f}, {high:{sign}.2f}]"


def _style(against: Interval | None) -> str:
    if against is None or against.low <= 0 <= against.high:
        return ""
    return "green" if against.high < 0 else "red"


COLOURS = {
    "none": "#9a9a9a", "pp": "#1f1f1f", "w": "#c8102e", "sqrt-w": "#e8743b", "clipped-w": "#e0a100",
    "w-held": "#ff7f9e", "log-min-max": "#8c3fa0", "random": "#74b3ce", "shuffled": "#2a6f97", "count": "#2e8b57",
}


def plot(path: str | Path, rows: Sequence[Row], seed: int = 0) -> None:
    """Suboptimality against the size of the log, paired differences to PP, and the tuning curves, as one figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator

    summary = summarise(rows, seed)
    if not summary:
        raise SappError("there are no evaluation rows to plot: run the experiment first")
    sizes = sorted({line.size for line in summary})
    methods = [name for name in METHODS if any(line.method == name for line in summary)]
    by = {(line.size, line.method): line for line in summary}
    figure = Figure(figsize=(14, 5.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1.25, 1))
    for place, name in enumerate(methods):
        kept = [size for size in sizes if (size, name) in by]
        shift = 1.035 ** (place - (len(methods) - 1) / 2)
        _errors(left, np.array(kept) * shift, [by[size, name].suboptimality for size in kept], name, line=True)
        others = [(i, by[size, name].against_pp) for i, size in enumerate(sizes) if (size, name) in by]
        offset = 0.085 * (place - (len(methods) - 1) / 2)
        drawn = [(i + offset, difference) for i, difference in others if difference is not None]
        if drawn:
            _errors(middle, np.array([x for x, _ in drawn]), [d for _, d in drawn], name, line=False)
    if (sizes[0], "clinicians") in by:
        left.axhline(1e3 * by[sizes[0], "clinicians"].suboptimality.estimate, color="#555555", ls=":", lw=1.2,
                     label=REFERENCES["clinicians"])
    left.set(xscale="log", xlabel="transitions in the log", ylabel="suboptimality ⟨ρ, V* − V⟩ × 1000")
    left.set_ylim(bottom=0)
    left.set_title("what is lost", loc="left")
    middle.axhline(0, color="#1f1f1f", lw=1)
    middle.set_xticks(range(len(sizes)), [_power(size) for size in sizes])
    middle.set(xlabel="transitions in the log", ylabel="suboptimality minus PP's on the same logs × 1000")
    middle.set_yscale("symlog", linthresh=1.0, linscale=1.0)
    differences = [line.against_pp for line in summary if line.against_pp and line.method in METHODS]
    ends = [1e3 * x for interval in differences for x in interval[1:]]
    ticks = [sign * size for size in (1, 2, 5, 10, 20, 50) for sign in (-1, 1)]
    low, high = 1.4 * min(ends, default=-1.0), 1.4 * max(ends, default=1.0)
    middle.set_yticks([0, *(tick for tick in ticks if low < tick < high)])
    middle.set_ylim(min(low, -0.2), max(high, 0.2))
    middle.yaxis.set_major_formatter(lambda value, _: f"{value:+g}" if value else "0")
    middle.yaxis.set_minor_locator(NullLocator())
    middle.set_title("against PP (below 0: better)", loc="left")
    size = sizes[len(sizes) // 2]
    for name in methods:
        points: dict[float, list[float]] = {}
        for row in rows:
            if row.role == "tuning" and row.size == size and row.method == name:
                points.setdefault(row.alpha, []).append(row.suboptimality)
        if name == "none" and points:
            right.axhline(1e3 * np.mean(points[0.0]), color=COLOURS[name], lw=1.5)
        elif points:
            grid = sorted(points)
            right.plot(grid, [1e3 * np.mean(points[alpha]) for alpha in grid], "o-", ms=3, lw=1.5, color=COLOURS[name])
    right.set(xscale="log", xlabel="α at mean weight 1 (counts: C)", ylabel="mean suboptimality × 1000, tuning logs")
    right.set_title(f"tuning at {_power(size)} transitions", loc="left")
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.2)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    figure.savefig(Path(path), dpi=150)


def _power(size: int) -> str:
    exponent = np.log10(size)
    return f"$10^{{{exponent:.0f}}}$" if exponent == round(exponent) else f"{size:,}"


def _errors(axes: Any, x: Floats, intervals: Sequence[Interval], name: str, line: bool) -> None:
    low, middle, high = (1e3 * np.array([i[k] for i in intervals]) for k in (1, 0, 2))
    axes.errorbar(
        x, middle, yerr=np.maximum([middle - low, high - middle], 0), fmt="o-" if line else "o", ms=4, lw=1.4,
        capsize=2, color=COLOURS[name], label=METHODS[name],
    )
