"""Each checker on instances whose answer is known by hand, and against loops over the printed formulas."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sapp import SappError
from sapp.tabular import FiniteMDP, Log, c0_printed, empirical
from sapp.theory.families import Instances, instances
from sapp.theory.statements import STATEMENTS, Case, Outcome, statement

HOLDS, VIOLATED, NOT_MET, VACUOUS = Outcome


def bandit(policies: list[list[float]], draws: int = 10**12, others: int | None = None) -> Instances:
    """One state, rewards 1 and 0, actions logged ``draws`` times each; γ = 0.9, so d = 10, w = 10 or, normalised, 1."""
    mdp = FiniteMDP(np.ones((1, 1, 2, 1)), np.array([[[1.0, 0.0]]]), np.ones((1, 1)), 0.9)
    counts = np.array([[[[draws], [others or draws]]]])
    model = empirical(Log(counts, np.array([[[draws, 0.0]]])), np.ones((1, 1)), 0.9)
    return Instances("bandit", (0,), mdp, model, np.array(policies)[None, :, None, :])


def check(
    key: str, made: Instances, name: str = "cql", normalised: bool = False, alpha: float = 0.1
) -> tuple[Any, Any]:
    result = statement(key).check(Case(made, name, normalised, np.array([alpha])))
    return [Outcome(x) for x in result.outcome[0, 0].ravel()], result.margin[0, 0].ravel()


BETA, GREEDY = [0.5, 0.5], [1.0, 0.0]


def test_lemma_1_by_hand() -> None:
    """PP picks the greedy policy (10 − 1 against 5) and loses nothing; UB = 10·α·χ² = 1. SA-PP at w = 10: β̂, 5 ≤ 5."""
    outcome, margin = check("lemma1-printed", bandit([BETA, GREEDY]))
    assert outcome == [HOLDS, HOLDS]
    np.testing.assert_allclose(margin, [1, 0], atol=1e-3)
    assert check("lemma1-printed", bandit([BETA, GREEDY]), alpha=2.0)[0] == [NOT_MET, NOT_MET]
    assert check("lemma1-repaired", bandit([BETA, GREEDY]), alpha=2.0)[0] == [HOLDS, HOLDS]
    assert check("lemma1-printed", bandit([BETA, GREEDY], draws=4))[0] == [VACUOUS, VACUOUS]


def test_theorem_1_by_hand() -> None:
    """UB(PP) = min(10α, 5) = 1, UB(SA-PP) = min(100α, 5) = 5: the goal fails by 4, and the condition reads 0 ≥ 90."""
    made = bandit([BETA, GREEDY])
    outcome, margin = check("theorem1-unconditional", made)
    assert outcome == [VIOLATED]
    assert margin[0] == pytest.approx(-4, abs=1e-4)
    assert check("theorem1-repaired", made)[0] == [NOT_MET]
    assert check("theorem1-unconditional", made, normalised=True)[0] == [VACUOUS]  # w = 1: SA-PP is PP
    assert check("theorem1-repaired", made, normalised=True)[0] == [VACUOUS]


def test_theorem_1_holds_by_hand() -> None:
    """A barely logged action makes SUP count: α·⟨d, (w − 1)·TV⟩ = 0.1·10·9·1 is taken off it, INF stays at β̂."""
    made = bandit([GREEDY, [0.0, 1.0]], draws=4, others=10**12)
    for key in ("theorem1-repaired", "theorem1-unconditional"):
        outcome, margin = check(key, made, "tv")
        assert outcome == [HOLDS]
        assert margin[0] == pytest.approx(9, abs=1e-3)


def test_theorem_5_by_hand() -> None:
    """Equality: the condition 0 ≥ 0 holds, and the bounds are equal, so a strict claim fails by exactly nothing."""
    same = bandit([BETA])
    outcome, margin = check("theorem5-if-printed", same)
    assert outcome == [VIOLATED]
    assert margin[0] == 0
    assert check("theorem5-repaired", same)[0] == [VACUOUS]
    assert check("theorem5-only-if-printed", same)[0] == [NOT_MET]


def test_theorem_3_by_hand() -> None:
    """The threshold is nearly 0; UB(clipped at C) = 1·C for 1 < C < 5 exceeds UB(PP) = 1 for every C > 1."""
    made = bandit([BETA, GREEDY])
    outcome, margin = check("theorem3-printed", made)
    assert outcome == [VIOLATED]
    assert margin[0] == pytest.approx(-1e-4, rel=0.01)  # at the first level tried, C = 1.0001
    assert check("theorem3-repaired", made)[0] == [NOT_MET]  # π̄₂ gains nothing from clipping at 1
    assert check("theorem3-printed", made, normalised=True)[0] == [VACUOUS]
    assert check("theorem3-printed", bandit([BETA, GREEDY], draws=4))[0] == [NOT_MET]
    assert check("theorem3-repaired", bandit([BETA]))[0] == [VACUOUS]
    assert check("theorem7-printed", made)[0] == [VIOLATED]


def test_theorem_4_by_hand() -> None:
    """SA-PP values the greedy policy at 10 − 10·α·w·χ² = 0; the printed bound allows 10 − 1, the repaired one 0."""
    made = bandit([BETA, GREEDY])
    outcome, margin = check("theorem4-printed", made)
    assert outcome == [HOLDS, HOLDS]
    np.testing.assert_allclose(margin, [0, 9], atol=1e-3)
    outcome, margin = check("theorem4-repaired", made)
    assert outcome == [HOLDS, HOLDS]
    np.testing.assert_allclose(margin, [0, 0], atol=1e-3)
    outcome, margin = check("theorem4-threshold-repaired", made)
    assert outcome == [NOT_MET, HOLDS]  # at β̂ no α is enough: there is no penalty
    assert margin[1] == pytest.approx(10)
    outcome, margin = check("theorem4-threshold-printed", made)
    assert outcome == [HOLDS, HOLDS]
    np.testing.assert_allclose(margin, [0, 10])


def test_theorem_4_fails_behind_a_state_seen_once() -> None:
    """Both samples of the lottery won: V̂ = γ²/(1−γ) at a state whose printed allowance is C₀/100; the truth is 0."""
    made = instances("feeder", range(40), 0.9)
    won = np.flatnonzero(made.model.transition[:, 1, :, 2].sum(-1) == 2)
    assert len(won) > 3
    case = Case(made, "cql", False, np.array([0.001]))
    printed, repaired = statement("theorem4-printed").check(case), statement("theorem4-repaired").check(case)
    assert made.policies[0, 0, 0, 0] == 0.5  # policy 0 is β̂: no penalty
    allowance = c0_printed(4, 2, 12, 0.9, 0.05) / 100
    np.testing.assert_allclose(printed.margin[won, 0, 0], allowance - 0.81 / 0.1, rtol=1e-9)
    assert np.all(printed.outcome[won, 0, 0] == VIOLATED)
    assert np.all(repaired.outcome[won, 0, 0] != VIOLATED)


def test_theorem_2_against_loops() -> None:
    """The printed hypotheses and claim, recomputed one number at a time."""
    made, alpha, name = instances("rare", range(25), 0.9), 0.01, "tv"
    for normalised in (False, True):
        result = statement("theorem2-printed").check(Case(made, name, normalised, np.array([alpha])))
        step = statement("theorem2-step").check(Case(made, name, normalised, np.array([alpha])))
        seen = []
        for i in range(25):
            model, factor = made.model, 0.1 if normalised else 1.0
            counts, behaviour = model.pairs[i], model.behaviour[i]
            n, size, c0 = counts.sum(-1), counts.sum(), c0_printed(4, 2, 12, 0.9, 0.05)
            d = made.occupancy[i]
            w = factor * d * size / n
            dis = 0.5 * np.abs(made.policies[i] - behaviour).sum(-1)
            width = (made.policies[i] / np.sqrt(counts)).sum(-1)
            doubt, plain, aware = c0 * (d * width).sum(-1), alpha * (d * dis).sum(-1), alpha * (d * w * dis).sum(-1)
            first, second = np.argmax(doubt - aware), np.argmin(made.gap[i] + doubt + plain)
            room = (np.min(made.gap[i] + doubt + plain) + np.max(doubt - plain)
                    - np.min(made.gap[i] + doubt + aware) - np.max(doubt - aware))
            s1, smallest, c = n.argmin(), behaviour.min(), max(w[second].max() - 1, 1e-9)
            met, claimed = False, -np.inf
            for k in range(12):
                near, delta = min(factor * d[k, s1], 1.0) * (1 - 1e-9), dis[k].max()
                constant = c0 * near - alpha * size * delta
                pull = (smallest * size / n[s1] - math.sqrt(smallest)) * dis[first, s1]
                strength = constant**2 / delta * pull if delta > 0 else math.inf * pull if pull else 0.0
                if near > 0 and constant > 1 and strength > 1 + c:
                    met, claimed = True, max(claimed, constant * math.sqrt(smallest))
            expected = NOT_MET if not met else VIOLATED if room < 0 else HOLDS
            assert result.outcome[i, 0] == expected
            if met:
                assert result.margin[i, 0] == pytest.approx(room, rel=1e-9)
                assert step.margin[i, 0] == pytest.approx(factor * d[first, s1] - claimed, rel=1e-9)
            seen.append(expected)
        assert HOLDS in seen
        assert NOT_MET in seen


def test_theorem_2_repaired_bounds_the_occupancy_it_needs() -> None:
    """Wherever its hypotheses are met, the left side of Theorem 1's condition is the larger."""
    made = instances("rare", range(100), 0.9)
    for spread, key in (("sa", "theorem2-repaired"), ("f", "theorem6-repaired")):
        case = Case(made, "kl", False, np.array([0.001, 0.1]))
        result = statement(key).check(case)
        condition = statement("theorem1-repaired" if spread == "sa" else "theorem5-repaired").check(case)
        met = result.outcome != NOT_MET
        assert met.mean() > 0.1
        assert np.all(condition.outcome[met] != NOT_MET)


def test_unknown_names() -> None:
    with pytest.raises(SappError, match="statement 'theorem9' is unknown"):
        statement("theorem9")
    with pytest.raises(SappError, match="family 'maze' is unknown"):
        instances("maze", [0], 0.9)
    assert len(STATEMENTS) == 25
