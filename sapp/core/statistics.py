"""Means with intervals that hold what they say, also with a handful of seeds.

The interval of a mean is Student's, however many values there are: the percentiles of a bootstrap of a handful of
normal values cover the truth too seldom. The tests hold every interval here to its word by simulation and say how far
it falls short where it must: at the mean of one method some of whose seeds collapse, not at differences of two such
methods.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sapp.core.errors import SappError

Values = npt.NDArray[np.float64]


class Interval(NamedTuple):
    """An estimate and the ends of its confidence interval; the ends are NaN where a single value allows none."""

    estimate: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether there is an interval at all."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))


class Estimate(NamedTuple):
    """A number whose error is distributed as Student's t: standard error and degrees of freedom, NaN and 0 if unknown.

    Example: ``student([1.0, 2.0, 4.0]).interval()``.
    """

    value: float
    error: float
    freedom: float

    def interval(self, confidence: float = 0.95) -> Interval:
        """Student's interval."""
        from scipy.stats import t

        low, _ = _ends(confidence)
        if not self.freedom > 0:
            return Interval(self.value, float("nan"), float("nan"))
        half = -float(t.ppf(low, self.freedom)) * self.error if self.error > 0 else 0.0
        return Interval(self.value, self.value - half, self.value + half)

    @property
    def p(self) -> float:
        """Two-sided p-value against 0; NaN if the error is unknown."""
        from scipy.stats import t

        if not self.freedom > 0:
            return float("nan")
        if self.error == 0:
            return float(self.value == 0)
        return float(2 * t.sf(abs(self.value) / self.error, self.freedom))


def mean(values: npt.ArrayLike) -> float:
    """The mean of all values."""
    return float(_flat(values).mean())


def standard_error(values: npt.ArrayLike) -> float:
    """The standard error of the mean, with n − 1 in the variance; NaN for a single value."""
    flat = _flat(values)
    return float(flat.std(ddof=1) / np.sqrt(len(flat))) if len(flat) > 1 else float("nan")


def iqm(values: npt.ArrayLike) -> float:
    """The interquartile mean: the mean of what is left when int(n / 4) values are cut off at each end."""
    from scipy.stats import trim_mean

    return float(trim_mean(_flat(values), 0.25))


def spearman(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Spearman's rank correlation, ties at their mean rank; NaN where one does not vary or is not finite."""
    from scipy.stats import ConstantInputWarning, spearmanr

    one, other = (np.asarray(values, np.float64).ravel() for values in (first, second))
    if len(one) != len(other):
        raise SappError(f"curves have {len(one)} and {len(other)} points: give as many of each")
    if len(one) < 2 or not (np.isfinite(one).all() and np.isfinite(other).all()):
        return float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantInputWarning)
        return float(spearmanr(one, other).statistic)


def student(values: npt.ArrayLike) -> Estimate:
    """The mean of independent values (one per seed, say) with its standard error and n − 1 degrees of freedom."""
    flat = _flat(values)
    return Estimate(float(flat.mean()), standard_error(flat), float(len(flat) - 1))


def welch(first: npt.ArrayLike, second: npt.ArrayLike) -> Estimate:
    """The difference of two independent means, first − second, whose spreads may differ (Welch's)."""
    one, other = student(first), student(second)
    return average([one, other._replace(value=-other.value)], total=1)


def average(estimates: Sequence[Estimate], total: int | None = None) -> Estimate:
    """The mean of independent estimates, one per dataset say; degrees of freedom by Welch and Satterthwaite.

    m = (1/G)·Σ_g x_g with variance (1/G²)·Σ_g e_g² and freedom (Σ e_g²)² / Σ(e_g⁴/f_g): estimates may differ in size,
    mean and spread. ``total`` replaces G, so that 1 gives the sum.
    """
    if not estimates:
        raise SappError("no values to summarise: run at least one episode or seed")
    count = total or len(estimates)
    value = float(sum(each.value for each in estimates)) / count
    if not all(each.freedom > 0 for each in estimates):
        return Estimate(value, float("nan"), 0.0)
    shares = np.array([each.error**2 for each in estimates])
    freedoms = np.array([each.freedom for each in estimates])
    if not shares.any():
        return Estimate(value, 0.0, float(freedoms.sum()))
    # scaled, so that the fourth power of a very small error is not lost
    scaled = shares / shares.max()
    freedom = scaled.sum() ** 2 / np.sum(scaled**2 / freedoms)
    return Estimate(value, float(np.sqrt(shares.sum())) / count, float(freedom))


def wilson(share: float, count: float, confidence: float = 0.95) -> Interval:
    """Wilson's interval of a share of ``count`` independent trials: it has a width even at 0 and at 1."""
    from scipy.stats import norm

    if not (0 <= share <= 1 and count > 0):
        raise SappError(f"a share of {share} in {count} trials: give a share between 0 and 1 of at least one trial")
    z = float(norm.ppf(_ends(confidence)[1]))
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * float(np.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2))
    return Interval(share, min(share, max(0.0, centre - half)), max(share, min(1.0, centre + half)))


def _flat(values: npt.ArrayLike) -> Values:
    flat = np.asarray(values, np.float64).ravel()
    if not len(flat):
        raise SappError("no values to summarise: run at least one episode or seed")
    if not np.isfinite(flat).all():
        raise SappError(f"value {int(np.argmin(np.isfinite(flat)))} is not finite: find the run that diverged")
    return flat


def _ends(confidence: float) -> tuple[float, float]:
    if not 0 < confidence < 1:
        raise SappError(f"confidence {confidence} must lie between 0 and 1")
    return 0.5 - confidence / 2, 0.5 + confidence / 2
