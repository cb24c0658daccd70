"""Whether an off-policy estimate deserves trust, in plain words."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from sapp.core.statistics import Interval
from sapp.ope.calibration import EXACT, NETWORKS, students_factor
from sapp.ope.doubly_robust import Values, dice_of_bags, fqe_of_bags
from sapp.ope.estimators import Fitted
from sapp.ope.fqe import SLACK, value_bounds


class Verdict(StrEnum):
    """Whether to act on an estimate."""

    TRUSTED = "trusted"
    DOUBTFUL = "doubtful"
    REFUSED = "refused"

    @property
    def order(self) -> int:
        """For sorting verdicts: 0 is the best."""
        return list(Verdict).index(self)


@dataclass(frozen=True)
class Reason:
    """One thing that speaks against an estimate.

    Attributes:
        verdict: what this alone would make of it.
        what: is wrong, in a sentence.
        do: what to try.
    """

    verdict: Verdict
    what: str
    do: str

    def __str__(self) -> str:
        return f"{self.what}: {self.do}"


@dataclass(frozen=True)
class Limits:
    """Where trust ends. The first of each pair makes an estimate doubtful, the second makes it refused.

    Attributes:
        episodes: at least so many logged episodes.
        effective_episodes: episodes that the ratios effectively rest on (DualDICE healthy above the first; no refusal,
            as FQE does without ratios).
        off_data: share of the policy's actions off the data.
        drift: change of FQE's value over the last fifth of fitting, in widths of its interval.
        outside: share of starts whose value lies outside what the rewards allow, r_min/(1−γ) to r_max/(1−γ).
        horizons: τ·steps·(1−γ), how often FQE's fitting has carried values over the horizon 1/(1−γ); here *fewer* make
            an estimate doubtful. A fit that was hardly begun has not drifted, either.
        disagreement: of FQE and DualDICE, in standard errors; beyond it, and beyond a quarter of the scale of returns,
            an estimate is doubtful.
        width: width of the interval, on the scale of returns: the spread (5 % to 95 %) of the logged episodes' own
            discounted returns, or a fifth of that of returns from all logged states where that is more.
    """

    episodes: tuple[int, int] = (30, 4)
    effective_episodes: float = 8.0
    off_data: tuple[float, float] = (0.15, 0.6)
    drift: tuple[float, float] = (1.0, 5.0)
    outside: tuple[float, float] = (0.02, 0.2)
    horizons: tuple[float, float] = (5.0, 0.5)
    disagreement: float = 4.0
    width: tuple[float, float] = (1.0, 3.0)


@dataclass(frozen=True)
class Measures:
    """What a verdict rests on, beside the interval itself; values are normalised, reward per step.

    Attributes:
        episodes: logged.
        off_data: share of the policy's actions off the data.
        disagreement: |FQE − DualDICE| in standard errors of their difference.
        difference: |FQE − DualDICE|.
        drift: see ``Limits``.
        outside: see ``Limits``.
        horizons: see ``Limits``; None where the equations are solved exactly.
        unhealthy: why the ratios cannot be used; empty where they can.
        scale: of returns, see ``Limits``.
        possible: least and largest value that the rewards allow.
        steps: of fitting.
    """

    episodes: int
    off_data: float
    disagreement: float
    difference: float
    drift: float
    outside: float
    horizons: float | None
    unhealthy: str
    scale: float
    possible: tuple[float, float]
    steps: int


@dataclass(frozen=True)
class Diagnosis:
    """What is known of one policy's estimates.

    Attributes:
        effective_rows: (Σζ)²/Σζ², in logged steps.
        effective_episodes: the same over episodes, the independent pieces of evidence.
        episodes: logged.
        zeta_mean: E_D[ζ]: what the discounted occupancy has left after terminals; at most 1, and 1 where nothing ends.
        off_data: share of the policy's actions off the data.
        disagreement: |FQE − DualDICE| in standard errors of their difference.
        drift: see ``Limits``.
        outside: see ``Limits``.
        horizons: see ``Limits``; None where the equations are solved exactly.
        dice_healthy: whether the ratios can be used.
        chosen: the estimator to quote: "fqe", or "dr" where equations were solved exactly and the ratios are healthy.
            Networks' ratios add more error to FQE than they take away (studies/ope).
        verdict: the worst of the reasons', trusted where there are none.
        reasons: what speaks against it, and what to try.
        measures: what the reasons are made of.
    """

    effective_rows: float
    effective_episodes: float
    episodes: int
    zeta_mean: float
    off_data: float
    disagreement: float
    drift: float
    outside: float
    horizons: float | None
    dice_healthy: bool
    chosen: str
    verdict: Verdict
    reasons: list[Reason] = field(default_factory=list)
    measures: Measures | None = None


def diagnose(
    fitted: Fitted, values: dict[str, Values], off_data: np.ndarray, rewards: tuple[float, float], scale: float,
    limits: Limits | None = None,
) -> list[Diagnosis]:  # fmt: skip
    """Judge the estimates of every policy.

    Args:
        fitted: what the estimates were made of.
        values: the estimates.
        off_data: share of each policy's actions off the data [P].
        rewards: smallest and largest logged reward.
        scale: of normalised returns, see ``Limits``.
        limits: where trust ends.
    """
    limits = limits or Limits()
    return [
        _one(fitted, values, float(off_data[policy]), rewards, scale, limits, policy)
        for policy in range(fitted.start_value.shape[0])
    ]


def _one(
    fitted: Fitted, values: dict[str, Values], off_data: float, rewards: tuple[float, float], scale: float,
    limits: Limits, policy: int,
) -> Diagnosis:  # fmt: skip
    settings, episodes = fitted.settings, fitted.counts.shape[1]
    weight, squared = fitted.weight[policy].mean(0), fitted.weight_squared[policy].mean(0)
    rows = float(weight.sum() ** 2 / max(squared.sum(), 1e-12))
    effective = float(weight.sum() ** 2 / max(np.square(weight).sum(), 1e-12))
    zeta_mean = float(weight.sum() / fitted.lengths.sum())
    difference = fqe_of_bags(fitted)[policy] - dice_of_bags(fitted)[policy]
    disagreement = float(abs(difference.mean()) / max(float(difference.std(ddof=1)), 1e-12))
    history = fitted.history[:, policy] * (1 - settings.discount)
    width = float(np.ptp(np.quantile(values["fqe"].replicates[:, policy], (0.025, 0.975))))
    width = max(width / ((EXACT if settings.exact else NETWORKS) * students_factor(episodes)), 1e-12)
    drift = float(abs(history[-1].mean() - history[-3].mean()) / width) if np.isfinite(history).all() else float("inf")
    gain = 1 / (1 - settings.discount)
    low, high = (bound / gain for bound in value_bounds(rewards, fitted.terminals, settings.discount))
    slack = SLACK * (high - low)
    start = fitted.start_value[policy] / gain
    healthy, why = _health(fitted, policy, effective, zeta_mean, limits)
    chosen = "dr" if healthy and settings.exact else "fqe"
    measures = Measures(
        episodes=episodes, off_data=off_data, disagreement=disagreement, difference=float(abs(difference.mean())),
        drift=drift, outside=float(np.mean((start < low - slack) | (start > high + slack) | ~np.isfinite(start))),
        horizons=None if settings.exact else settings.rates()["target_rate"] * settings.steps / gain,
        unhealthy=why, scale=scale, possible=(low, high), steps=settings.steps,
    )  # fmt: skip
    reasons = reasons_of(measures, values[chosen].interval(policy), limits)
    return Diagnosis(
        rows, effective, episodes, zeta_mean, off_data, disagreement, drift, measures.outside, measures.horizons,
        healthy, chosen, verdict_of(reasons), reasons, measures,
    )  # fmt: skip


def verdict_of(reasons: list[Reason]) -> Verdict:
    """The worst of the reasons'; trusted where there are none."""
    return max((each.verdict for each in reasons), key=lambda each: each.order, default=Verdict.TRUSTED)


def reasons_of(measures: Measures, interval: Interval, limits: Limits | None = None) -> list[Reason]:
    """What speaks against an estimate."""
    limits = limits or Limits()
    reasons = _beyond(measures, (interval.high - interval.low) / max(measures.scale, 1e-12), limits)
    low, high = measures.possible
    slack = SLACK * (high - low)
    if not low - slack <= interval.estimate <= high + slack:
        reaches = interval.low <= high and interval.high >= low
        reasons.append(
            Reason(
                Verdict.DOUBTFUL if reaches else Verdict.REFUSED,
                f"the estimate, {interval.estimate:.3g} per step, is impossible for these rewards",
                "more fit steps, or more logs of such policies",
            )
        )  # fmt: skip
    if measures.unhealthy:
        reasons.append(
            Reason(
                Verdict.DOUBTFUL, f"DualDICE cannot check FQE ({measures.unhealthy})",
                "more episodes, or a policy nearer to the logs; until then FQE stands alone",
            )
        )  # fmt: skip
    elif measures.disagreement > limits.disagreement and measures.difference > 0.25 * measures.scale:
        reasons.append(
            Reason(
                Verdict.DOUBTFUL, f"FQE and DualDICE disagree by {measures.disagreement:.1f} standard errors",
                "fit for more steps; if they still disagree, one of them is wrong, and only playing can tell which",
            )
        )  # fmt: skip
    return reasons


def _beyond(measures: Measures, relative: float, limits: Limits) -> list[Reason]:
    """What measures beyond their limits say."""
    found: list[Reason] = []

    def measure(value: float, pair: tuple[float, float], what: str, do: str) -> None:
        if not value <= pair[0]:
            found.append(Reason(Verdict.DOUBTFUL if value <= pair[1] else Verdict.REFUSED, what, do))

    measure(
        -measures.episodes, (-limits.episodes[0], -limits.episodes[1]),
        f"only {measures.episodes} episodes are logged, too few to say how far off the estimate may be",
        f"log at least {limits.episodes[0]}",
    )  # fmt: skip
    measure(
        measures.off_data, limits.off_data,
        f"{measures.off_data:.0%} of the policy's actions are ones the logs (nearly) never take",
        "train it with more pessimism (a larger --alpha), or log such actions",
    )  # fmt: skip
    measure(
        measures.outside, limits.outside,
        f"{measures.outside:.0%} of FQE's values at the starts are impossible for these rewards",
        "more --fit-steps, or a smaller --discount; check that terminals are marked",
    )  # fmt: skip
    measure(
        measures.drift, limits.drift, f"FQE has not settled, it still moved by {measures.drift:.1f} interval widths",
        f"give it more than --fit-steps {measures.steps}",
    )  # fmt: skip
    if measures.horizons is not None:
        measure(
            -measures.horizons, (-limits.horizons[0], -limits.horizons[1]),
            f"FQE was fitted for {measures.steps:,} steps, {measures.horizons:.1f} times the horizon",
            f"give it at least {limits.horizons[0]:.0f} times, by --fit-steps, or a smaller --discount",
        )  # fmt: skip
    measure(
        relative, limits.width,
        f"the interval is {relative:.1f} times as wide as the spread of the logged episodes' returns",
        "use more episodes, or more --bags",
    )  # fmt: skip
    return found


def _health(fitted: Fitted, policy: int, effective: float, zeta_mean: float, limits: Limits) -> tuple[bool, str]:
    if not fitted.dice_alive[policy].all():
        return False, "its ratios diverged"
    if not zeta_mean <= 1.25:
        return False, f"its ratios have mean {zeta_mean:.2g}, which can be at most 1"
    if not fitted.terminals and zeta_mean < 0.75:
        return False, f"its ratios have mean {zeta_mean:.2g}, which should be 1"
    if zeta_mean < 0.25 * fitted.mass:
        return False, f"its ratios have mean {zeta_mean:.2g}, where the logs' own is {fitted.mass:.2g}"
    if effective < limits.effective_episodes:
        return False, f"its ratios rest on {effective:.1f} episodes' worth of data"
    return True, ""


def explain(diagnosis: Diagnosis) -> list[str]:
    """The diagnosis as sentences for a reader who knows no ratios."""
    share = diagnosis.effective_episodes / max(diagnosis.episodes, 1)
    lines = [
        f"effective sample: {diagnosis.effective_episodes:.0f} of {diagnosis.episodes} episodes ({100 * share:.0f} %), "
        f"{diagnosis.effective_rows:.0f} steps",
        f"off the data: {100 * diagnosis.off_data:.0f} % of the policy's actions (the logs themselves: 1 %)",
        f"FQE and DualDICE differ by {diagnosis.disagreement:.1f} standard errors",
    ]
    return lines + [f"{reason.verdict}: {reason}" for reason in diagnosis.reasons]
