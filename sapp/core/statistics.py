"""Means, standard errors, seeded bootstrap intervals (the same seed gives the same interval) and Student's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sapp.core.errors import SappError

Values = npt.NDArray[np.float64]
Statistic = Callable[[Values], Values]
"""Reduces the last axis."""

_CHUNK = 2_000_000  # numbers resampled at a time, to bound memory


class Interval(NamedTuple):
    """An estimate and the ends of its confidence interval."""

    estimate: float
    low: float
    high: float


def mean(values: npt.ArrayLike) -> float:
    """The mean of all values."""
    return float(_flat(values).mean())


def standard_error(values: npt.ArrayLike) -> float:
    """The standard error of the mean, with n − 1 in the variance; NaN for a single value."""
    flat = _flat(values)
    return float(flat.std(ddof=1) / np.sqrt(len(flat))) if len(flat) > 1 else float("nan")


def iqm(values: npt.ArrayLike) -> float:
    """The interquartile mean: the mean of what is left when the lowest and the highest quarter are cut off."""
    return float(_iqm(_flat(values)))


def bootstrap_interval(
    values: npt.ArrayLike,
    seed: int,
    strata: npt.ArrayLike | None = None,
    statistic: Statistic | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
) -> Interval:
    """The percentile bootstrap interval of the mean, or of another statistic.

    Args:
        values: the sample; any shape, taken flat.
        seed: of the resampling.
        strata: a group label per value (a task, say); values are resampled within their group only, so that every
            resample keeps the size of each group. By default all are one group.
        statistic: reduces the last axis; by default the mean. `iqm_statistic` is another.
        confidence: coverage, between 0 and 1.
        resamples: how many.
    """
    flat = _flat(values)
    if not 0 < confidence < 1 or resamples < 1:
        raise SappError(f"confidence {confidence} must lie between 0 and 1 and resamples {resamples} be at least 1")
    labels = np.zeros(len(flat), np.int64) if strata is None else np.unique(np.ravel(strata), return_inverse=True)[1]
    if len(labels) != len(flat):
        raise SappError(f"{len(labels)} strata labels for {len(flat)} values: give one label per value")
    groups = [np.flatnonzero(labels == label) for label in range(labels.max() + 1)]
    reduce = statistic or (lambda sample: sample.mean(-1))
    rng = np.random.default_rng(seed)
    draws: list[Values] = []
    size = max(1, _CHUNK // len(flat))
    for first in range(0, resamples, size):
        count = min(size, resamples - first)
        picked = [group[rng.integers(len(group), size=(count, len(group)))] for group in groups]
        draws.append(reduce(flat[np.concatenate(picked, -1)]))
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.concatenate(draws), (tail, 1 - tail))
    return Interval(float(reduce(flat)), float(low), float(high))


def iqm_statistic(sample: Values) -> Values:
    """The interquartile mean along the last axis, for `bootstrap_interval`."""
    return _iqm(sample)


def paired_difference(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    seed: int,
    strata: npt.ArrayLike | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
) -> Interval:
    """The mean of first − second, pair by pair, with its bootstrap interval: pairs are resampled, never split."""
    one, other = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if one.shape != other.shape:
        raise SappError(f"paired values have shapes {one.shape} and {other.shape}: use the same seeds for both")
    return bootstrap_interval(one - other, seed, strata, None, confidence, resamples)


def seeds_and_episodes(values: npt.ArrayLike, seed: int, confidence: float = 0.95, resamples: int = 10_000) -> Interval:
    """The mean of scores [seeds, episodes] with a bootstrap interval that draws both seeds and episodes anew.

    Episodes of one policy are not independent evidence about the algorithm: drawing over all of them alike gives
    intervals that are far too narrow. Episodes are drawn in common to all seeds, because episode e starts in the same
    state for each.
    """
    scores = np.asarray(values, np.float64)
    if scores.ndim != 2 or not scores.size:
        raise SappError(f"scores have shape {scores.shape}: give [seeds, episodes] with at least one of each")
    rng = np.random.default_rng(seed)
    rows, columns = (rng.integers(count, size=(resamples, count)) for count in scores.shape)
    draws = scores[rows[:, :, None], columns[:, None, :]].mean((1, 2))
    low, high = np.quantile(draws, (0.5 - confidence / 2, 0.5 + confidence / 2))
    return Interval(float(scores.mean()), float(low), float(high))


def mean_of_groups(groups: Sequence[npt.ArrayLike], confidence: float = 0.95) -> Interval:
    """The mean of the means of independent groups (one number a seed, say, and a group a dataset), Student's interval.

    m = (1/G)·Σ_g x̄_g with variance (1/G²)·Σ_g s_g²/n_g, degrees of freedom by Welch and Satterthwaite: groups may
    differ in size, mean and spread. For a handful of values a bootstrap's percentiles are too narrow; this is not.
    """
    from scipy.stats import t

    values = [_flat(group) for group in groups]
    if not values or min(len(group) for group in values) < 2:
        raise SappError("an interval of a mean of groups needs at least two values in every group")
    shares = np.array([group.var(ddof=1) / len(group) for group in values])
    estimate = float(np.mean([group.mean() for group in values]))
    if not shares.any():
        return Interval(estimate, estimate, estimate)
    freedom = shares.sum() ** 2 / np.sum(shares**2 / [len(group) - 1 for group in values])
    half = float(t.ppf(0.5 + confidence / 2, freedom) * np.sqrt(shares.sum()) / len(values))
    return Interval(estimate, estimate - half, estimate + half)


def _flat(values: npt.ArrayLike) -> Values:
    flat = np.asarray(values, np.float64).ravel()
    if not len(flat):
        raise SappError("no values to summarise: run at least one episode or seed")
    if not np.isfinite(flat).all():
        raise SappError(f"value {int(np.argmin(np.isfinite(flat)))} is not finite: find the run that diverged")
    return flat


def _iqm(sample: Values) -> Values:
    """As scipy.stats.trim_mean with 25 %: int(n / 4) values are cut at each end."""
    cut = sample.shape[-1] // 4
    return np.sort(sample, -1)[..., cut : sample.shape[-1] - cut].mean(-1)
