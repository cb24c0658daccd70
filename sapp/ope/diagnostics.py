"""Whether an off-policy estimate deserves trust, in plain words."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from sapp.ope.doubly_robust import Values, dice_of_bags, fqe_of_bags
from sapp.ope.estimators import Fitted, Settings
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
        width: width of the interval, in spreads (5 % to 95 %) of the logged episodes' own discounted returns.
    """

    episodes: tuple[int, int] = (30, 4)
    effective_episodes: float = 8.0
    off_data: tuple[float, float] = (0.15, 0.6)
    drift: tuple[float, float] = (1.0, 5.0)
    outside: tuple[float, float] = (0.02, 0.2)
    horizons: tuple[float, float] = (5.0, 0.5)
    width: tuple[float, float] = (1.0, 3.0)


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
        chosen: the estimator to quote, "dr" or "fqe".
        verdict: the worst of the reasons', trusted where there are none.
        reasons: what speaks against it, and what to try.
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


def diagnose(
    fitted: Fitted, values: dict[str, Values], off_data: np.ndarray, rewards: tuple[float, float], spread: float,
    limits: Limits | None = None,
) -> list[Diagnosis]:  # fmt: skip
    """Judge the estimates of every policy.

    Args:
        fitted: what the estimates were made of.
        values: the estimates.
        off_data: share of each policy's actions off the data [P].
        rewards: smallest and largest logged reward.
        spread: 5 % to 95 % width of the logged episodes' normalised discounted returns.
        limits: where trust ends.
    """
    limits = limits or Limits()
    return [
        _one(fitted, values, float(off_data[policy]), rewards, spread, limits, policy)
        for policy in range(fitted.start_value.shape[0])
    ]


def _one(
    fitted: Fitted, values: dict[str, Values], off_data: float, rewards: tuple[float, float], spread: float,
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
    width = max(float(np.ptp(np.quantile(values["fqe"].replicates[:, policy], (0.025, 0.975)))), 1e-12)
    drift = float(abs(history[-1].mean() - history[-3].mean()) / width) if np.isfinite(history).all() else float("inf")
    gain = 1 / (1 - settings.discount)
    low, high = value_bounds(rewards, fitted.terminals, settings.discount)
    slack = SLACK * (high - low)
    horizons = None if settings.exact else settings.rates()["target_rate"] * settings.steps / gain
    start = fitted.start_value[policy]
    outside = float(np.mean((start < low - slack) | (start > high + slack) | ~np.isfinite(start)))
    healthy, why = _health(fitted, policy, effective, zeta_mean, limits)
    chosen = "dr" if healthy else "fqe"
    interval = values[chosen].interval(policy)
    relative = (interval.high - interval.low) / max(spread, 1e-12)
    reasons = _reasons(limits, settings, episodes, off_data, outside, drift, horizons, relative)
    if not low - slack <= interval.estimate * gain <= high + slack:
        reaches = interval.low * gain <= high and interval.high * gain >= low
        reasons.append(
            Reason(
                Verdict.DOUBTFUL if reaches else Verdict.REFUSED,
                f"the estimate, {interval.estimate:.3g} per step, is impossible for these rewards",
                "more fit steps, or more logs of such policies",
            )
        )  # fmt: skip
    if not healthy:
        reasons.append(
            Reason(
                Verdict.DOUBTFUL, f"DualDICE cannot check FQE ({why})",
                "more episodes, or a policy nearer to the logs; until then FQE stands alone",
            )
        )  # fmt: skip
    elif disagreement > 4.0 and abs(difference.mean()) > 0.25 * spread:
        reasons.append(
            Reason(
                Verdict.DOUBTFUL, f"FQE and DualDICE disagree by {disagreement:.1f} standard errors",
                "more fit steps; if it stays, one of them is wrong and only playing can tell",
            )
        )  # fmt: skip
    verdict = max((each.verdict for each in reasons), key=lambda each: each.order, default=Verdict.TRUSTED)
    return Diagnosis(
        rows, effective, episodes, zeta_mean, off_data, disagreement, drift, outside, horizons, healthy, chosen,
        verdict, reasons,
    )  # fmt: skip


def _reasons(
    limits: Limits, settings: Settings, episodes: int, off_data: float, outside: float, drift: float,
    horizons: float | None, relative: float,
) -> list[Reason]:  # fmt: skip
    """What measures beyond their limits say."""
    found: list[Reason] = []

    def measure(value: float, pair: tuple[float, float], what: str, do: str) -> None:
        if not value <= pair[0]:
            found.append(Reason(Verdict.DOUBTFUL if value <= pair[1] else Verdict.REFUSED, what, do))

    measure(
        -episodes, (-limits.episodes[0], -limits.episodes[1]),
        f"only {episodes} episodes are logged, too few to say how far off the estimate may be",
        f"log at least {limits.episodes[0]}",
    )  # fmt: skip
    measure(
        off_data, limits.off_data, f"{off_data:.0%} of the policy's actions are ones the logs (nearly) never take",
        "train it with more pessimism (a larger --alpha), or log such actions",
    )  # fmt: skip
    measure(
        outside, limits.outside, f"{outside:.0%} of FQE's values at the starts are impossible for these rewards",
        "more --fit-steps, or a smaller --discount; check that terminals are marked",
    )  # fmt: skip
    measure(
        drift, limits.drift, f"FQE has not settled, it still moved by {drift:.1f} interval widths",
        f"give it more than --fit-steps {settings.steps}",
    )  # fmt: skip
    if horizons is not None:
        measure(
            -horizons, (-limits.horizons[0], -limits.horizons[1]),
            f"FQE was fitted for {settings.steps:,} steps, {horizons:.1f} times the horizon",
            f"give it at least {limits.horizons[0]:.0f} times, by --fit-steps, or a smaller --discount",
        )  # fmt: skip
    measure(
        relative, limits.width,
        f"the interval is {relative:.1f} times as wide as the spread of the logged episodes' returns",
        "more episodes, more --bags",
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
        f"effective sample: {diagnosis.effective_episodes:.0f} of {diagnosis.episodes} episodes ({share:.0%}), "
        f"{diagnosis.effective_rows:.0f} steps",
        f"off the data: {diagnosis.off_data:.0%} of the policy's actions (the logs themselves: 1 %)",
        f"FQE and DualDICE differ by {diagnosis.disagreement:.1f} standard errors",
    ]
    return lines + [f"{reason.verdict}: {reason}" for reason in diagnosis.reasons]
