"""Off-policy evaluation of any policies on logs: estimates with intervals, diagnostics, and a verdict."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sapp.core.errors import SappError
from sapp.core.statistics import Interval, student
from sapp.data import Dataset
from sapp.ope.calibration import EXACT, NETWORKS, students_factor, widened
from sapp.ope.diagnostics import Diagnosis, Limits, Verdict, diagnose
from sapp.ope.doubly_robust import Values, estimate
from sapp.ope.estimators import Fitted, Settings, fit
from sapp.ope.exact import fit_exactly, off_data_exactly
from sapp.ope.fqe import returns_to_go
from sapp.ope.importance import importance
from sapp.ope.support import fit_behaviour, off_data
from sapp.ope.targets import TargetPolicy, Targets

NAMES = {
    "fqe": "fitted Q evaluation", "dice": "DualDICE", "dr": "doubly robust", "wis": "weighted importance sampling",
    "pdis": "per-decision importance sampling",
}  # fmt: skip

SHARE = 0.2
"""Of the spread of returns from all logged states: where those from starts differ by less, that is the yardstick."""


@dataclass(frozen=True)
class Offline:
    """Off-policy estimates of P policies on one dataset.

    Values are normalised, (1−γ)·E[Σ γᵗ r], in units of reward per step; ``discounted_return`` is E[Σ γᵗ r]. Both count
    the task as going on after a time-out.

    Attributes:
        names: of the policies.
        data: name of the dataset.
        fingerprint: of the dataset.
        values: by estimator ("fqe", "dice", "dr"; "wis", "pdis" where the logs say how probable actions were), with
            intervals as wide as ``sapp.ope.calibration`` says.
        diagnoses: one per policy.
        behaviour: normalised value of the logged behaviour itself, from its episodes' own discounted returns.
        settings: of the estimators.
        seconds: that it all took.
        weighted_episodes: that importance sampling effectively rests on, [P], where it can be done.
        spread: 5 % to 95 % width of the logged episodes' own normalised discounted returns.
    """

    names: tuple[str, ...]
    data: str
    fingerprint: str
    values: dict[str, Values]
    diagnoses: list[Diagnosis]
    behaviour: Interval
    settings: Settings
    seconds: float
    weighted_episodes: np.ndarray | None = None
    spread: float = float("nan")

    @property
    def gain(self) -> float:
        """From normalised value to discounted return: 1/(1−γ)."""
        return 1.0 / (1.0 - self.settings.discount)

    def interval(self, policy: int, estimator: str | None = None, confidence: float = 0.95) -> Interval:
        """Normalised value of a policy by an estimator (default: the one its diagnosis chose), with its interval."""
        return self.values[estimator or self.diagnoses[policy].chosen].interval(policy, confidence)

    def row(self, policy: int) -> dict[str, Any]:
        """One policy's results as plain data; a refused estimate is None, what it was made of is still there."""
        diagnosis = self.diagnoses[policy]
        refused = diagnosis.verdict == Verdict.REFUSED
        quoted = self.interval(policy)
        row: dict[str, Any] = {
            "policy": self.names[policy],
            "verdict": diagnosis.verdict,
            "estimator": diagnosis.chosen,
            "value": None if refused else quoted.estimate,
            "value_low": None if refused else quoted.low,
            "value_high": None if refused else quoted.high,
            "discounted_return": None if refused else quoted.estimate * self.gain,
            "discounted_return_low": None if refused else quoted.low * self.gain,
            "discounted_return_high": None if refused else quoted.high * self.gain,
        }
        for name in self.values:
            found = self.interval(policy, name)
            numbers = {name: found.estimate, f"{name}_low": found.low, f"{name}_high": found.high}
            row |= {key: number if np.isfinite(number) else None for key, number in numbers.items()}
        if self.weighted_episodes is not None:
            row["importance_effective_episodes"] = float(self.weighted_episodes[policy])
        return row | {"diagnosis": asdict(diagnosis)}

    def to_json(self) -> dict[str, Any]:
        """The whole report as JSON values."""
        return {
            "data": self.data,
            "fingerprint": self.fingerprint,
            "discount": self.settings.discount,
            "units": "value: (1-discount) x discounted return, reward per step; discounted_return: sum of discounted "
            "rewards of an episode that no time limit ends",
            "behaviour": {
                "value": self.behaviour.estimate, "value_low": self.behaviour.low, "value_high": self.behaviour.high,
            },
            "policies": [self.row(policy) for policy in range(len(self.names))],
            "settings": asdict(self.settings),
            "seconds": self.seconds,
        }  # fmt: skip


def evaluate_offline(
    policies: Sequence[TargetPolicy],
    data: Dataset,
    settings: Settings | None = None,
    limits: Limits | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Offline:
    """Estimate what policies are worth from logs alone.

    Args:
        policies: to evaluate, all at once; see ``sapp.ope.targets``.
        data: the logs.
        settings: of the estimators, γ among them.
        limits: where trust ends.
        progress: called with (steps done, steps in all).
    """
    settings = settings or Settings()
    if data.num_episodes < 2:
        raise SappError(
            f"{data.name}: one episode is logged; an estimate needs at least 2, and 30 or more to be worth having"
        )
    began = time.perf_counter()
    targets = Targets.of(policies, data, settings.draws, seed=settings.seed)
    if settings.exact:
        fitted = fit_exactly(data, targets, settings)
        share = off_data_exactly(data, targets)
    else:
        fitted = fit(data, targets, settings, progress)
        behaviour = fit_behaviour(data, min(3_000, max(200, settings.steps // 4)), seed=settings.seed)
        share = off_data(behaviour, data, targets)
    values, diagnoses, own, spread = judge(fitted, data, share, limits)
    weighted = importance(data, targets, settings.discount, settings.seed)
    return Offline(
        targets.names, data.name, data.fingerprint, values | (weighted.values if weighted else {}), diagnoses, own,
        settings, time.perf_counter() - began, weighted.effective_episodes if weighted else None, spread,
    )  # fmt: skip


def judge(
    fitted: Fitted, data: Dataset, share: np.ndarray, limits: Limits | None = None
) -> tuple[dict[str, Values], list[Diagnosis], Interval, float]:
    """Estimates, diagnoses, the logged behaviour's own normalised value, and the spread of its episodes'."""
    discount = fitted.settings.discount
    values = estimate(fitted, fitted.settings.seed)
    to_go = (1 - discount) * returns_to_go(data, data.reward, discount)
    own = to_go[data.episode_starts]
    spread, scale = scales(to_go, own)
    rewards = float(data.reward.min()), float(data.reward.max())
    factor = (EXACT if fitted.settings.exact else NETWORKS) * students_factor(data.num_episodes)
    values = {name: widened(each, factor) for name, each in values.items()}
    diagnoses = diagnose(fitted, values, share, rewards, scale, limits)
    return values, diagnoses, student(own).interval(), spread


def scales(to_go: np.ndarray, own: np.ndarray) -> tuple[float, float]:
    """The spread (5 % to 95 %) of episodes' normalised returns, and the yardstick of intervals that it gives."""
    spread, anywhere = (float(np.ptp(np.quantile(each, (0.05, 0.95)))) for each in (own, to_go))
    return spread, max(spread, SHARE * anywhere)
