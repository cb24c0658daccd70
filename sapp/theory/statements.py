"""The paper's statements as hypotheses and claims, each as printed and as repaired, each with its own checker.

A checker takes a ``Case`` (a batch of instances under one divergence, one convention for w, several α) and returns for
every instance and α (and, where the statement is about one policy, every policy) whether the statement *holds*, is
*violated*, has *hypotheses not met*, or is *vacuous* (true and saying nothing), with a signed margin: how much room the
claim leaves, negative when it is violated.

Readings. Π is finite, so sup and inf are attained. ``w`` is d_D^π/d^D with d unnormalised (the paper's) or normalised
(DualDICE's). The f-versions are checked with f(x) = √x, the repaired ones also with the log–min–max over all states,
which is what is run but no function of one ratio. Statements that hold "with probability 1 − δ" are not refuted
by one violated instance, but by a share of violations above δ over redrawn logs of one MDP.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sapp.core.errors import SappError
from sapp.tabular.bounds import UpperBound, c0_printed, c0_repaired
from sapp.tabular.divergence import divergence
from sapp.tabular.mdp import Floats
from sapp.tabular.occupancy import state_ratio
from sapp.tabular.weights import LogMinMax
from sapp.theory.families import DELTA, Instances

TOLERANCE = 1e-9
CEILINGS = 96
"""Number of clipping levels tried for Theorems 3 and 7."""


class Outcome(IntEnum):
    """What a checker finds where it looks: a statement holds, is violated, or does not apply."""

    HOLDS = 0
    VIOLATED = 1
    NOT_MET = 2
    VACUOUS = 3


@dataclass(frozen=True)
class Result:
    """Outcomes and margins, both [N, L] or [N, L, X], and where the claim could tell somebody something.

    A comparison of two bounds tells nothing where both are larger than any possible loss, V̂ ≤ V nothing where V̂ is
    below all possible values: such checks hold or are violated, but are not informative.
    """

    outcome: NDArray[np.int8]
    margin: Floats
    says: NDArray[np.bool_] | bool = True

    @property
    def informative(self) -> NDArray[np.bool_]:
        """Checks whose hypotheses are met and whose claim is neither empty nor about numbers that are."""
        return np.asarray(np.isin(self.outcome, (Outcome.HOLDS, Outcome.VIOLATED)) & self.says)


def _result(
    met: NDArray[np.bool_], margin: Floats, scale: Floats, vacuous: NDArray[np.bool_],
    says: NDArray[np.bool_] | bool = True,
) -> Result:
    """Violated where the margin is below −tolerance; margins are NaN where the hypotheses are not met."""
    met, margin, scale, vacuous = np.broadcast_arrays(met, margin, scale, vacuous)
    bad = margin < -TOLERANCE * (1 + np.abs(scale))
    outcome = np.where(met, np.where(bad, Outcome.VIOLATED, np.where(vacuous, Outcome.VACUOUS, Outcome.HOLDS)),
                       Outcome.NOT_MET)
    return Result(outcome.astype(np.int8), np.where(met, margin, np.nan), says)


@dataclass(frozen=True)
class Case:
    """A batch of N instances under a divergence, a convention for w, and L values of α."""

    instances: Instances
    divergence: str
    normalised: bool
    alphas: Floats
    delta: float = DELTA

    @property
    def discount(self) -> float:
        """γ of the problems."""
        return self.instances.model.discount

    @property
    def total(self) -> float:
        """Σ_s d_D^π(s) = 1/(1−γ)."""
        return 1 / (1 - self.discount)

    @property
    def factor(self) -> float:
        """What w multiplies the unnormalised ratio with: 1, or 1−γ."""
        return 1 - self.discount if self.normalised else 1.0

    @property
    def alpha(self) -> Floats:
        """α [1, L, 1]."""
        return np.asarray(self.alphas, np.float64)[None, :, None]

    @cached_property
    def distance(self) -> Floats:
        """Dis(π, β̂) [N, K, S]."""
        return np.asarray(divergence(self.divergence)(self.instances.policies, self.instances.model.expand().behaviour))

    @cached_property
    def ratio(self) -> Floats:
        """w [N, K, S]."""
        return np.asarray(state_ratio(self.factor * self.instances.occupancy, self.instances.model.visits[:, None]))

    def weights(self, spread: str) -> Floats:
        """1 (``pp``), w (``sa``), √w (``f``) or the log–min–max over the states (``log``) [N, K, S]."""
        if spread == "pp":
            return np.ones_like(self.ratio)
        if spread == "log":
            return np.asarray(LogMinMax()(self.ratio))
        return self.ratio if spread == "sa" else np.sqrt(self.ratio)

    def cost(self, weights: Floats) -> Floats:
        """⟨d_D^π, weights·Dis⟩ [N, K]."""
        return np.sum(self.instances.occupancy * weights * self.distance, -1)

    def c0(self, repaired: bool) -> float:
        """C₀ for the class Π."""
        model, size = self.instances.model, self.instances.size
        if repaired:
            return c0_repaired(model.states, size, self.discount, self.delta)
        return c0_printed(model.states, model.actions, size, self.discount, self.delta)

    def bound(self, weights: Floats, repaired: bool, mass: float = 1.0) -> UpperBound:
        """SUBOPT-UB with p = weights·Dis: parts [N, L, K]; d in it is multiplied by ``mass``."""
        doubt = mass * self.c0(repaired) * np.sum(self.instances.occupancy * self.instances.uncertainty, -1)[:, None]
        charge = mass * self.alpha * self.cost(weights)[:, None]
        return UpperBound(self.instances.gap[:, None] + doubt + charge, doubt - charge)

    def below_any_loss(self, *bounds: Floats) -> NDArray[np.bool_]:
        """Whether the least of some bounds on SUBOPT is below 2/(1−γ), the largest loss there is."""
        return np.asarray(np.minimum.reduce(bounds) < 2 * self.total)

    def at(self, table: Floats, index: NDArray[np.integer]) -> Floats:
        """table [N, K, ...] at policy index [N, L]: [N, L, ...]."""
        return table[np.arange(len(table))[:, None], index]


# --- Lemma 1 --------------------------------------------------------------------------------------------------------


def _lemma1(case: Case, repaired: bool, mass: float = 1.0) -> Result:
    """SUBOPT(argmax_Π ⟨ρ, v_p⟩) ≤ SUBOPT-UB, for p = Dis and p = w·Dis; vacuous when the bound is 2/(1−γ) or more.

    ``mass`` multiplies d in the bound: 1−γ for the occupancy that sums to 1.
    """
    gain = case.instances.model.expand().expected(case.instances.empirical_value)
    margins, scales = [], []
    for spread in ("pp", "sa"):
        weights = case.weights(spread)
        chosen = (gain[:, None] - case.alpha * case.cost(weights)[:, None]).argmax(-1)
        bound = case.bound(weights, repaired, mass).total
        margins.append(bound - np.take_along_axis(case.instances.gap, chosen, 1))
        scales.append(bound)
    bound = np.stack(scales, -1)
    met = np.asarray((case.alpha > 0) & (repaired | (case.alpha < 1)))
    return _result(met, np.stack(margins, -1), bound, bound >= 2 * case.total)


# --- Theorems 1 and 5: the comparison of the two bounds -------------------------------------------------------------


def _comparison(case: Case, spread: str, repaired: bool) -> tuple[Floats, Floats, Floats, UpperBound, UpperBound]:
    """UB(PP) − UB(spread), the condition's two sides, and the two bounds."""
    weights = case.weights(spread)
    plain, aware = case.bound(case.weights("pp"), repaired), case.bound(weights, repaired)
    excess = case.cost(weights) - case.cost(case.weights("pp"))
    left, right = (np.take_along_axis(excess, index, 1) for index in (aware.arg_sup, plain.arg_inf))
    return plain.total - aware.total, left, right, plain, aware


def _theorem1(case: Case, spread: str, repaired: bool, bare: bool) -> Result:
    """Left side ≥ right side ⇒ UB(SA) ≤ UB(PP); ``bare``: without a condition. Vacuous: the bounds coincide."""
    room, left, right, plain, aware = _comparison(case, spread, repaired)
    scale = np.abs(plain.total) + np.abs(aware.total)
    met = np.ones_like(room, bool) if bare else left >= right
    same = np.abs(room) <= TOLERANCE * (1 + scale)
    return _result(met, room, scale, same, case.below_any_loss(plain.total, aware.total))


def _theorem5_if(case: Case) -> Result:
    """Condition ⇒ UB(f) < UB(PP), strictly."""
    room, left, right, plain, aware = _comparison(case, "f", False)
    scale = np.abs(plain.total) + np.abs(aware.total)
    says = case.below_any_loss(plain.total, aware.total)
    result = _result(left >= right, room, scale, np.zeros_like(room, bool), says)
    equal = (result.outcome == Outcome.HOLDS) & (np.abs(room) <= TOLERANCE * (1 + scale))
    return Result(np.where(equal, Outcome.VIOLATED, result.outcome).astype(np.int8), result.margin, says)


def _theorem5_only_if(case: Case) -> Result:
    """UB(f) < UB(PP) ⇒ condition; the margin is left − right side of the condition, times α."""
    room, left, right, plain, aware = _comparison(case, "f", False)
    scale = np.abs(plain.total) + np.abs(aware.total)
    margin = case.alpha[..., 0] * (left - right)
    says = case.below_any_loss(plain.total, aware.total)
    return _result(room > TOLERANCE * (1 + scale), margin, scale, np.zeros_like(room, bool), says)


# --- Theorems 2 and 6: small α --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rare:
    """Theorem 2's quantities: s₁ and what the assumptions say of it."""

    visits: Floats  # d^D(s₁) [N]
    count: Floats  # n(s₁) [N]
    next_count: Floats  # the second smallest n(s) [N]
    smallest: Floats  # ε_β [N]
    occupancy: Floats  # d_D^π(s₁) [N, K]
    distance: Floats  # Dis(π, β̂)(s₁) [N, K]


def _rare(case: Case) -> _Rare:
    model = case.instances.model
    first = model.visits.argmin(-1)
    counts = np.sort(model.pairs.sum(-1), -1)
    smallest = np.where(model.behaviour > 0, model.behaviour, np.inf).min((-1, -2))
    index = first[:, None, None]
    return _Rare(
        model.visits.min(-1), counts[:, 0], counts[:, 1] if model.states > 1 else counts[:, 0] * np.inf, smallest,
        np.take_along_axis(case.instances.occupancy, index, 2)[..., 0],
        np.take_along_axis(case.distance, index, 2)[..., 0],
    )


def _theorem2_printed(case: Case, spread: str, step: bool = False, generous: bool = False) -> Result:
    """As printed, with the constant of the proof: C'_M = C_M²/Δ_β, C_M = C₀ε_d − α'Δ_β > 1, for any π₀ ∈ Π that serves.

    ``step``: checks instead the proof's d^{π̄₁}(s₁) ≥ C_M√ε_β. ``generous``: Δ_β bounds the divergences of π̄₁ and π̄₂
    too, which the proof uses and Assumption 2 does not say. With normalised w the occupancies in the assumptions are
    normalised too, as the proof's Σd = 1 wants.
    """
    rare, model = _rare(case), case.instances.model
    room, _, _, plain, aware = _comparison(case, spread, False)
    c0, size = case.c0(False), model.size[:, None, None]
    scaled = case.alpha * size  # α' [N, L, 1]
    near = np.minimum(case.factor * rare.occupancy, 1.0)[:, None] * (1 - 1e-9)  # ε_d for each π₀ [N, 1, K]
    largest = case.distance.max(-1)
    spread_of = largest[:, None]  # Δ_β [N, 1, K]
    if generous:
        both = np.maximum(case.at(largest, aware.arg_sup), case.at(largest, plain.arg_inf))
        spread_of = np.maximum(spread_of, both[..., None])
    constant = c0 * near - scaled * spread_of  # C_M
    cover = case.at(case.weights(spread).max(-1), plain.arg_inf) - 1
    c = np.maximum(cover, TOLERANCE)[..., None]
    beta, visits = rare.smallest[:, None, None], rare.visits[:, None, None]
    reach = np.sqrt(visits) if spread == "f" else visits
    away = case.at(rare.distance, aware.arg_sup)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        pull = constant**2 / spread_of * (beta / reach - np.sqrt(beta)) * away
    met_by = (near > 0) & (constant > 1) & (np.nan_to_num(pull, nan=0.0, posinf=np.inf) > 1 + c)
    met = met_by.any(-1)
    scale = np.abs(plain.total) + np.abs(aware.total)
    if step:
        claimed = np.where(met_by, constant * np.sqrt(beta), -np.inf).max(-1)
        there = case.factor * case.at(rare.occupancy, aware.arg_sup)
        return _result(met, np.where(met, there - claimed, 0.0), there, np.zeros_like(met))
    same = np.abs(room) <= TOLERANCE * (1 + scale)
    return _result(met, room, scale, same, case.below_any_loss(plain.total, aware.total))


def _theorem2_repaired(case: Case, spread: str) -> Result:
    """s₁ logged so little that π̄₁ must go there, and enough gained there to pay for all other states.

    With N = 1/(1−γ), θ = √(n(s₁)/n(s₂)), s₂ the second least logged state:
    X = max over π₀ of √ε_β·(d^{π₀}(s₁) − √n(s₁)·(α/C₀)·⟨d^{π₀}, f(w)Dis⟩) and κ = (X − θN)/(1 − θ) ≤ d^{π̄₁}(s₁).
    Condition: κ·(f(w_κ) − 1)·Dis(π̄₁)(s₁) ≥ ((1+c)N − κ)·Δ with w_κ the ratio at κ, f(w_κ) ≥ 1, f(w^{π̄₂}) ≤ 1 + c, and
    Δ the largest Dis of π̄₁ and π̄₂.
    """
    rare = _rare(case)
    room, _, _, plain, aware = _comparison(case, spread, True)
    n1, n2, total = rare.count[:, None], rare.next_count[:, None], case.total
    theta = np.sqrt(n1 / n2)
    spent = case.cost(case.weights(spread))[:, None]
    root = np.sqrt(rare.smallest)[:, None, None]
    serve = root * (rare.occupancy[:, None] - np.sqrt(n1)[..., None] * case.alpha / case.c0(True) * spent)
    kappa = (serve.max(-1) - theta * total) / np.maximum(1 - theta, 1e-12)
    ratio = case.factor * np.maximum(kappa, 0.0) / rare.visits[:, None]
    weight = {"sa": ratio, "f": np.sqrt(ratio), "log": np.ones_like(ratio)}[spread]  # log–min–max: its largest
    largest = case.distance.max(-1)
    delta = np.maximum(case.at(largest, aware.arg_sup), case.at(largest, plain.arg_inf))
    c = np.maximum(case.at(case.weights(spread).max(-1), plain.arg_inf) - 1, 0.0)
    pull = kappa * (weight - 1) * case.at(rare.distance, aware.arg_sup)
    met = (theta < 1) & (kappa > 0) & (weight >= 1) & (pull >= ((1 + c) * total - kappa) * delta)
    scale = np.abs(plain.total) + np.abs(aware.total)
    same = np.abs(room) <= TOLERANCE * (1 + scale)
    return _result(met, room, scale, same, case.below_any_loss(plain.total, aware.total))


# --- Theorems 3 and 7: large α, clipped weights ---------------------------------------------------------------------


def _exists_level(met: NDArray[np.bool_], case: Case, spread: str, repaired: bool) -> Result:
    """Whether some clipping level C > 1 gives UB(clipped at C) ≤ UB(PP); the margin is the best room a level leaves.

    It does if a level of a grid serves, or if the bound is strictly lower at C = 1, being continuous in C. It does not
    if no interval between levels can serve: clipping higher raises INF and lowers SUP, so between two levels the bound
    is at least INF at the lower plus SUP at the upper one; and between 1 and the first level, where the same policies
    attain INF and SUP at both ends and no ratio lies between, it is linear, so that it exceeds UB(PP) inside if it does
    at the end and is not below it at 1 (then no C > 1 serves, though the loss vanishes as C → 1). What is left
    undecided counts as holding, with margin 0.
    """
    shape = met.shape
    if not met.any():
        return _result(met, np.zeros(shape), np.zeros(shape), np.zeros(shape, bool))
    weights = case.weights(spread)
    top = np.maximum(weights.max((-1, -2)), 1 + 1e-3)
    levels = np.exp(np.linspace(0, 1, CEILINGS)[:, None] ** 2 * np.log(top)) * (1 + 1e-4)
    bounds = [case.bound(np.minimum(weights, level[:, None, None]), repaired) for level in levels]
    inf = np.array([bound.inf.min(-1) for bound in bounds])
    sup = np.array([bound.sup.max(-1) for bound in bounds])
    one, first = case.bound(np.minimum(weights, 1.0), repaired), bounds[0]
    plain = case.bound(case.weights("pp"), repaired).total
    slack = 1e-12 * (1 + np.abs(plain))
    room = plain - (inf + sup).min(0)
    room = np.where(plain - one.total > slack, np.maximum(room, plain - one.total), room)
    later = np.concatenate([inf[:-1] + sup[1:], (inf[-1] + sup[-1])[None]]).min(0)
    crossed = np.any((weights > 1) & (weights < levels[0][:, None, None]), axis=(-1, -2))[:, None]
    linear = (one.arg_inf == first.arg_inf) & (one.arg_sup == first.arg_sup) & ~crossed
    none = (room < -slack) & (later > plain + slack) & linear & (one.total >= plain - slack)
    none |= (room < -slack) & (np.minimum(later, one.inf.min(-1) + sup[0]) > plain + slack)
    outcome = np.where(none, Outcome.VIOLATED, np.where(np.abs(room) <= slack, Outcome.VACUOUS, Outcome.HOLDS))
    outcome = np.where(met, outcome, Outcome.NOT_MET).astype(np.int8)
    says = case.below_any_loss(plain, plain - np.maximum(room, 0.0))
    return Result(outcome, np.where(met, np.where(none, room, np.maximum(room, 0.0)), np.nan), says)


def _theorem3_printed(case: Case, spread: str) -> Result:
    """α > C₀·max_{π, s} (weights·Dis·n^{-1/2}) ⇒ some clipping level C > 1 gives UB(SA) ≤ UB(PP)."""
    product = case.weights(spread) * case.distance * case.instances.visits_root
    met = case.alpha[..., 0] > case.c0(False) * product.max((-1, -2))[:, None]
    return _exists_level(met, case, spread, False)


def _theorem3_repaired(case: Case, spread: str) -> Result:
    """Clipping cannot raise SUP, and lowers INF strictly.

    β̂ ∈ Π; α is so large that SUP is attained at β̂ alone even with weights clipped at 1; and π̄₂ is β̂, or leaves β̂ in a
    state that it visits with weight below 1. Then some C > 1 gives UB(SA) ≤ UB(PP).
    """
    plain = case.bound(case.weights("pp"), True)
    clipped = case.bound(np.minimum(case.weights(spread), 1.0), True)
    free = np.asarray(case.cost(case.weights("pp")) <= 1e-14 * case.total)  # never off β̂ where they go [N, K]
    anchor = np.where(free[:, None], clipped.sup, -np.inf).max(-1)
    others = np.where(free[:, None], -np.inf, clipped.sup).max(-1)
    saved = case.cost(case.weights("pp")) - case.cost(np.minimum(case.weights(spread), 1.0))
    second = plain.arg_inf
    gains = np.take_along_axis(saved, second, 1) > 1e-9 * case.total
    stays = np.take_along_axis(free, second, 1)
    met = np.asarray(free.any(-1))[:, None] & (others < anchor - 1e-9 * (1 + np.abs(anchor))) & (gains | stays)
    return _exists_level(met, case, spread, True)


# --- Theorem 4: underestimation -------------------------------------------------------------------------------------


def _pessimistic_value(case: Case) -> tuple[Floats, Floats]:
    """V̂ under SA-PP [N, L, K, S], and the propagated penalty (I − γAᵖP_D)⁻¹αw·Dis."""
    pushed = case.alpha[..., None] * case.instances.propagate(case.ratio * case.distance)[:, None]
    return case.instances.empirical_value[:, None] - pushed, pushed


def _theorem4_pointwise(case: Case, repaired: bool) -> Result:
    """V̂ ≤ V − αw·Dis + C₀n^{-1/2} in every state.

    Repaired: V̂ ≤ V − (I−γAᵖP_D)⁻¹(αw·Dis − C₀n^{-1/2}), with the repaired C₀ for this π alone. Vacuous: the right side
    is at least 1/(1−γ) in every state.
    """
    estimate, pushed = _pessimistic_value(case)
    found, truth = case.instances, case.instances.value[:, None]
    if repaired:
        c0 = c0_repaired(found.model.states, 1, case.discount, case.delta)
        right = truth - pushed + c0 * found.propagate(found.uncertainty)[:, None]
    else:
        charge = case.alpha[..., None] * (case.ratio * case.distance)[:, None]
        right = truth - charge + case.c0(False) * found.uncertainty[:, None]
    margin = (right - estimate).min(-1)
    met = np.ones(margin.shape, bool)
    return _result(met, margin, np.abs(estimate).max(-1), np.asarray((right >= case.total).all(-1)))


def _theorem4_threshold(case: Case, repaired: bool) -> Result:
    """α above its threshold ⇒ V̂ ≤ V in every state that π reaches.

    Printed: α > C₀·max_s w·Dis·n^{-1/2}. Repaired: α ≥ C₀·max_s n^{-1/2}_{D,π}/(w·Dis) over the reached states.
    """
    estimate, _ = _pessimistic_value(case)
    found = case.instances
    reached = found.occupancy > 1e-12
    penalty = case.ratio * case.distance
    if repaired:
        c0 = c0_repaired(found.model.states, 1, case.discount, case.delta)
        some = penalty > 0
        quotient = np.where(some, found.uncertainty / np.where(some, penalty, 1.0), np.inf)
        met = case.alpha >= c0 * np.where(reached, quotient, 0.0).max(-1)[:, None]
    else:
        met = case.alpha > case.c0(False) * np.where(reached, penalty * found.visits_root, 0.0).max(-1)[:, None]
    margin = np.where(reached[:, None], found.value[:, None] - estimate, np.inf).min(-1)
    says = np.any(reached[:, None] & (estimate > -case.total), axis=-1)  # V̂ could be a value at all
    return _result(met, margin, np.abs(estimate).max(-1), np.zeros(margin.shape, bool), says)


# --- the list -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Statement:
    """One statement in one version: ``key`` is what the audit and its replays call it."""

    key: str
    title: str
    hypotheses: str
    claim: str
    check: Callable[[Case], Result]
    probabilistic: bool = False
    proved: bool = False


GOAL = "UB(SA-PP) ≤ UB(PP)"
STATEMENTS: dict[str, Statement] = {
    statement.key: statement
    for statement in [
        Statement("lemma1-printed", "Lemma 1", "0 < α < 1", "SUBOPT ≤ SUBOPT-UB, printed C₀",
                  lambda case: _lemma1(case, False), probabilistic=True),
        Statement("lemma1-repaired", "Lemma 1", "α > 0", "SUBOPT ≤ SUBOPT-UB, C₀ = 2/(1−γ)·√(½ln(2|S||Π|/δ))",
                  lambda case: _lemma1(case, True), probabilistic=True, proved=True),
        Statement("lemma1-normalised", "Lemma 1, Σd = 1", "α > 0", "as repaired, d in the bound summing to 1",
                  lambda case: _lemma1(case, True, 1 - case.discount)),
        Statement("theorem1-unconditional", "The goal, no condition", "none", GOAL,
                  lambda case: _theorem1(case, "sa", False, True)),
        Statement("theorem1-repaired", "Theorem 1, its sign restored", "⟨d¹,(w¹−1)Dis¹⟩ ≥ ⟨d²,(w²−1)Dis²⟩", GOAL,
                  lambda case: _theorem1(case, "sa", True, False), proved=True),
        Statement("theorem2-printed", "Theorem 2", "Assumptions 1–3, α' < C₀ε_d/Δ_β, its condition, C_M > 1", GOAL,
                  lambda case: _theorem2_printed(case, "sa")),
        Statement("theorem2-generous", "Theorem 2, Δ_β for π̄₁, π̄₂ too", "the same with that Δ_β", GOAL,
                  lambda case: _theorem2_printed(case, "sa", generous=True)),
        Statement("theorem2-step", "Theorem 2, its proof", "the same", "d^{π̄₁}(s₁) ≥ C_M√ε_β",
                  lambda case: _theorem2_printed(case, "sa", step=True)),
        Statement("theorem2-repaired", "Theorem 2", "κ > 0 and κ(w_κ−1)Dis¹(s₁) ≥ ((1+c)/(1−γ) − κ)Δ", GOAL,
                  lambda case: _theorem2_repaired(case, "sa"), proved=True),
        Statement("theorem3-printed", "Theorem 3", "α > C₀·max(w·Dis·n^{-1/2})",
                  "some C > 1: " + GOAL + " clipped at C", lambda case: _theorem3_printed(case, "sa")),
        Statement("theorem3-repaired", "Theorem 3", "β̂ ∈ Π attains SUP alone at w∧1; π̄₂ is β̂ or gains from w∧1",
                  "some C > 1: " + GOAL + " clipped at C", lambda case: _theorem3_repaired(case, "sa"), proved=True),
        Statement("theorem4-printed", "Theorem 4, pointwise", "none", "V̂ ≤ V − αw·Dis + C₀n^{-1/2}",
                  lambda case: _theorem4_pointwise(case, False), probabilistic=True),
        Statement("theorem4-repaired", "Theorem 4, pointwise", "none", "V̂ ≤ V − (I−γAP_D)⁻¹(αw·Dis − C₀n^{-1/2})",
                  lambda case: _theorem4_pointwise(case, True), probabilistic=True, proved=True),
        Statement("theorem4-threshold-printed", "Theorem 4, threshold", "α > C₀·max(w·Dis·n^{-1/2})", "V̂ ≤ V",
                  lambda case: _theorem4_threshold(case, False), probabilistic=True),
        Statement("theorem4-threshold-repaired", "Theorem 4, threshold", "α ≥ C₀·max(n^{-1/2}/(w·Dis))", "V̂ ≤ V",
                  lambda case: _theorem4_threshold(case, True), probabilistic=True, proved=True),
        Statement("theorem5-if-printed", "Theorem 5, if", "its condition with f", "UB(f) < UB(PP)", _theorem5_if),
        Statement("theorem5-only-if-printed", "Theorem 5, only if", "UB(f) < UB(PP)", "its condition with f",
                  _theorem5_only_if),
        Statement("theorem5-repaired", "Theorem 5", "its condition with f", "UB(f) ≤ UB(PP)",
                  lambda case: _theorem1(case, "f", True, False), proved=True),
        Statement("theorem6-printed", "Theorem 6", "as Theorem 2 with f", "UB(f) ≤ UB(PP)",
                  lambda case: _theorem2_printed(case, "f")),
        Statement("theorem6-repaired", "Theorem 6", "as Theorem 2 repaired, with f", "UB(f) ≤ UB(PP)",
                  lambda case: _theorem2_repaired(case, "f"), proved=True),
        Statement("theorem7-printed", "Theorem 7", "α > C₀·max(f(w)·Dis·n^{-1/2})", "some C > 1: UB(f∧C) ≤ UB(PP)",
                  lambda case: _theorem3_printed(case, "f")),
        Statement("theorem7-repaired", "Theorem 7", "as Theorem 3 repaired, with f", "some C > 1: UB(f∧C) ≤ UB(PP)",
                  lambda case: _theorem3_repaired(case, "f"), proved=True),
        Statement("theorem5-log", "Theorem 5, f log–min–max", "its condition", "UB(f) ≤ UB(PP)",
                  lambda case: _theorem1(case, "log", True, False), proved=True),
        Statement("theorem6-log", "Theorem 6, f log–min–max", "as Theorem 6 repaired, f(w_κ) at most 1",
                  "UB(f) ≤ UB(PP)", lambda case: _theorem2_repaired(case, "log"), proved=True),
        Statement("theorem7-log", "Theorem 7, f log–min–max", "as Theorem 7 repaired", "some C > 1: UB(f∧C) ≤ UB(PP)",
                  lambda case: _theorem3_repaired(case, "log"), proved=True),
    ]
}
"""The statements by key."""


def statement(key: str) -> Statement:
    """The statement of that key."""
    if key not in STATEMENTS:
        raise SappError(f"statement {key!r} is unknown: use {', '.join(STATEMENTS)}")
    return STATEMENTS[key]
