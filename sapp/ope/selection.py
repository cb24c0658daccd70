"""Choosing between policies by their off-policy estimates: an order, how sure it is, and what the choice may cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sapp.core.errors import SappError
from sapp.core.statistics import Interval
from sapp.ope.diagnostics import Verdict
from sapp.ope.offline import Offline

By = Literal["value", "low"]
"""What to rank by: the estimate, or the lower end of its interval (the cautious choice)."""


@dataclass(frozen=True)
class Candidate:
    """One policy in the order; values are normalised, reward per step.

    Attributes:
        policy: its index in the report.
        name: of the policy.
        verdict: of its diagnosis.
        value: with its interval.
        best: probability that it is the best of the candidates.
        behind: what it is worth less than the first, with the interval of the difference (common replicates).
        reasons: for its verdict, where it is not trusted.
    """

    policy: int
    name: str
    verdict: str
    value: Interval
    best: float
    behind: Interval
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Selection:
    """An order of candidates, best first.

    Attributes:
        order: those that may be chosen.
        refused: names and reasons of those that may not.
        estimator: the one used for all of them.
        regret: expected loss of taking the first instead of the best, normalised; mean over replicates.
        regret_high: its 95 % quantile.
        gain: 1/(1−γ), from normalised to discounted return.
    """

    order: list[Candidate]
    refused: list[tuple[str, str]]
    estimator: str
    regret: float
    regret_high: float
    gain: float

    def to_json(self) -> dict[str, Any]:
        """The selection as JSON values."""
        return {
            "estimator": self.estimator,
            "order": [
                {
                    "policy": each.name, "verdict": each.verdict, "value": each.value.estimate,
                    "value_low": each.value.low, "value_high": each.value.high,
                    "discounted_return": each.value.estimate * self.gain,
                    "discounted_return_low": each.value.low * self.gain,
                    "discounted_return_high": each.value.high * self.gain,
                    "probability_best": each.best, "behind": each.behind.estimate, "behind_low": each.behind.low,
                    "behind_high": each.behind.high, "reasons": list(each.reasons),
                }
                for each in self.order
            ],
            "refused": [{"policy": name, "reason": reason} for name, reason in self.refused],
            "expected_regret": self.regret,
            "expected_regret_discounted_return": self.regret * self.gain,
            "regret_95": self.regret_high,
            "regret_95_discounted_return": self.regret_high * self.gain,
        }  # fmt: skip


def select(report: Offline, by: By = "value", confidence: float = 0.95) -> Selection:
    """Rank the policies of a report; those whose estimates are refused are left out, with the reason.

    One estimator serves all: doubly robust where it is chosen for every candidate, else fitted Q evaluation.
    Replicates are common to all policies, so a difference between two is known better than either value. Regret is the
    mean over replicates of the best candidate's value minus the chosen one's: what the uncertainty in hand can cost,
    not what an error that all estimates share can.
    """
    allowed = [i for i, diagnosis in enumerate(report.diagnoses) if diagnosis.verdict != Verdict.REFUSED]
    refused = [
        (report.names[i], "; ".join(map(str, diagnosis.reasons)))
        for i, diagnosis in enumerate(report.diagnoses)
        if diagnosis.verdict == Verdict.REFUSED
    ]
    if not allowed:
        return Selection([], refused, "none", float("nan"), float("nan"), report.gain)
    if by not in ("value", "low"):
        raise SappError(f"cannot rank by {by!r}; use value or low")
    estimator = "dr" if all(report.diagnoses[i].chosen == "dr" for i in allowed) else "fqe"
    values = report.values[estimator]
    intervals = {i: values.interval(i, confidence) for i in allowed}
    order = sorted(allowed, key=lambda i: -(intervals[i].estimate if by == "value" else intervals[i].low))
    draws = values.replicates[:, order]
    winner = draws.argmax(1)
    regret = draws.max(1) - draws[:, 0]
    tail = (1 - confidence) / 2
    found = []
    for place, policy in enumerate(order):
        gap = draws[:, 0] - draws[:, place]
        low, high = np.quantile(gap, (tail, 1 - tail))
        behind = Interval(float(values.point[order[0]] - values.point[policy]), float(low), float(high))
        found.append(
            Candidate(
                policy, report.names[policy], report.diagnoses[policy].verdict, intervals[policy],
                float(np.mean(winner == place)), behind, tuple(map(str, report.diagnoses[policy].reasons)),
            )
        )  # fmt: skip
    return Selection(found, refused, estimator, float(regret.mean()), float(np.quantile(regret, 0.95)), report.gain)
