"""Comparisons over several tasks: paired differences, interquartile means, probability of improvement, profiles.

Scores come as one array of seeds a task: ``{"hopper-medium": [s₀, s₁, …], …}``. Bootstraps are stratified by task
(seeds are drawn anew within each task, tasks never) and seeded, so that the same call always gives the same interval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sapp.core.errors import SappError
from sapp.core.statistics import Interval

Values = npt.NDArray[np.float64]
Scores = Mapping[str, npt.ArrayLike]
"""Scores of the seeds, by task."""
Reduce = Callable[[list[Values]], Values]
"""From one array [resamples, seeds] a task to [resamples] or [resamples, points]."""

RESAMPLES = 4_000


class Profile(NamedTuple):
    """A performance profile: the share of runs that score above each threshold, with a pointwise interval."""

    thresholds: Values
    share: Values
    low: Values
    high: Values


def mean_over_tasks(scores: Scores, seed: int = 0, confidence: float = 0.95, resamples: int = RESAMPLES) -> Interval:
    """The mean over tasks of each task's mean over seeds."""

    def reduce(tasks: list[Values]) -> Values:
        return np.mean([task.mean(-1) for task in tasks], axis=0)

    return _interval(_tasks(scores), reduce, seed, confidence, resamples)


def iqm_over_tasks(scores: Scores, seed: int = 0, confidence: float = 0.95, resamples: int = RESAMPLES) -> Interval:
    """The interquartile mean of all runs of all tasks: a quarter is cut off at each end (int(n / 4) runs)."""
    return _interval(_tasks(scores), _iqm, seed, confidence, resamples)


def paired_over_tasks(
    first: Scores, second: Scores, seed: int = 0, confidence: float = 0.95, resamples: int = RESAMPLES
) -> Interval:
    """The mean over tasks of first − second, seed by seed; pairs are drawn within their task and never split."""
    one, other = _same_tasks(first, second)
    differences = {}
    for name, values in one.items():
        if len(values) != len(other[name]):
            raise SappError(f"{name}: {len(values)} seeds against {len(other[name])}: use the same seeds for both")
        differences[name] = values - other[name]
    return mean_over_tasks(differences, seed, confidence, resamples)


def probability_of_improvement(
    first: Scores, second: Scores, seed: int = 0, confidence: float = 0.95, resamples: int = RESAMPLES
) -> Interval:
    """The mean over tasks of the probability that a run of ``first`` beats one of ``second``; a tie counts half.

    Seeds of both are drawn anew, apart from each other: this is about two runs met at random, not about pairs.
    """
    one, other = _same_tasks(first, second)
    names = list(one)
    count = len(names)

    def reduce(tasks: list[Values]) -> Values:
        return np.mean([_wins(tasks[i], tasks[count + i]) for i in range(count)], axis=0)

    return _interval(
        [one[name] for name in names] + [other[name] for name in names], reduce, seed, confidence, resamples
    )


def performance_profile(
    scores: Scores,
    thresholds: Sequence[float] | Values,
    seed: int = 0,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
) -> Profile:
    """The share of runs above each threshold, the mean over tasks, with pointwise intervals."""
    points = np.asarray(thresholds, np.float64)
    if points.ndim != 1 or not len(points) or not np.isfinite(points).all():
        raise SappError("a performance profile needs finite thresholds: give at least one")

    def reduce(tasks: list[Values]) -> Values:
        return np.mean([(task[..., None] > points).mean(-2) for task in tasks], axis=0)

    tasks = _tasks(scores)
    draws = _draws(tasks, reduce, seed, resamples)
    low, high = np.quantile(draws, _ends(confidence), axis=0)
    return Profile(points, reduce([task[None] for task in tasks])[0], low, high)


def spearman(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Rank correlation of two curves, ties at their mean rank; NaN where one of them does not vary."""
    from scipy.stats import rankdata

    one, other = (np.asarray(rankdata(values), np.float64) for values in (first, second))
    if len(one) != len(other):
        raise SappError(f"curves have {len(one)} and {len(other)} points: give as many of each")
    one, other = one - one.mean(), other - other.mean()
    scale = float(np.sqrt((one**2).sum() * (other**2).sum())) if len(one) else 0.0
    return float((one * other).sum() / scale) if scale else float("nan")


def _interval(tasks: list[Values], reduce: Reduce, seed: int, confidence: float, resamples: int) -> Interval:
    low, high = np.quantile(_draws(tasks, reduce, seed, resamples), _ends(confidence))
    return Interval(float(reduce([task[None] for task in tasks])[0]), float(low), float(high))


def _draws(tasks: list[Values], reduce: Reduce, seed: int, resamples: int) -> Values:
    if resamples < 1:
        raise SappError(f"resamples is {resamples}: it must be at least 1")
    rng = np.random.default_rng(seed)
    return reduce([task[rng.integers(len(task), size=(resamples, len(task)))] for task in tasks])


def _ends(confidence: float) -> tuple[float, float]:
    if not 0 < confidence < 1:
        raise SappError(f"confidence {confidence} must lie between 0 and 1")
    return 0.5 - confidence / 2, 0.5 + confidence / 2


def _iqm(tasks: list[Values]) -> Values:
    runs = np.sort(np.concatenate(tasks, -1), -1)
    cut = runs.shape[-1] // 4
    return runs[..., cut : runs.shape[-1] - cut].mean(-1)


def _wins(one: Values, other: Values) -> Values:
    """Share of pairs [resamples, m] × [resamples, n] in which the first is greater; ties count half."""
    gap = one[..., :, None] - other[..., None, :]
    return ((gap > 0) + 0.5 * (gap == 0)).mean((-2, -1))


def _tasks(scores: Scores) -> list[Values]:
    return list(_checked(scores).values())


def _checked(scores: Scores) -> dict[str, Values]:
    if not scores:
        raise SappError("no tasks to compare: give the scores of at least one")
    found = {}
    for name, values in scores.items():
        array = np.asarray(values, np.float64)
        if array.ndim != 1 or not len(array):
            raise SappError(f"{name}: scores have shape {array.shape}; give one number a seed")
        if not np.isfinite(array).all():
            raise SappError(f"{name}: the score of seed {int(np.argmin(np.isfinite(array)))} is not finite")
        found[name] = array
    return found


def _same_tasks(first: Scores, second: Scores) -> tuple[dict[str, Values], dict[str, Values]]:
    one, other = _checked(first), _checked(second)
    if set(one) != set(other):
        odd = sorted(set(one) ^ set(other))
        raise SappError(f"{odd[0]}: scored by one method only; compare on the tasks that both have")
    return one, other
