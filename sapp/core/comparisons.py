"""Comparisons of methods, on one task and over several: differences, families of them, aggregates, profiles.

Scores come by task and by seed, ``{"hopper-medium": {0: 61.2, 1: 58.9}, …}``. What two methods share is found by the
seed itself, never by its place in a list: order does not matter, and a seed that one of them lacks is in no pair. A key
may also be a pair (seed, start state).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sapp.core.errors import SappError
from sapp.core.statistics import Estimate, Interval, Values, average, iqm, student, welch, wilson

Seeds = Mapping[Any, float]
"""A score per seed."""
Scores = Mapping[str, Seeds]
"""Scores of the seeds, by task."""


class Profile(NamedTuple):
    """A performance profile: the share of runs that score above each threshold, with a pointwise interval."""

    thresholds: Values
    share: Values
    low: Values
    high: Values


@dataclass(frozen=True)
class Comparison:
    """A difference first − second of two methods.

    Attributes:
        estimate: the difference with its error.
        pairs: seeds that both have, over all tasks.
        paired: whether the difference is over those pairs; else it is Welch's, over all seeds of either side. Over
            several tasks: whether it is so on every one.
    """

    estimate: Estimate
    pairs: int
    paired: bool

    @property
    def interval(self) -> Interval:
        """At 95 %, as if this were the only comparison."""
        return self.estimate.interval()


class Corrected(NamedTuple):
    """A comparison as one of a family.

    Attributes:
        raw: the 95 % interval, as if it were the only one.
        p: against no difference, as if it were the only one.
        holm: the interval at the level at which Holm's procedure tests it; excludes 0 just where ``holm_p`` < 5 %.
        holm_p: p-value with Holm's correction.
        looked_at: how many comparisons with an interval the family has.
    """

    raw: Interval
    p: float
    holm: Interval
    holm_p: float
    looked_at: int


def compare(first: Seeds, second: Seeds) -> Comparison:
    """First − second: over the seeds that both have, if these are two or more, else Welch's over all seeds of each."""
    shared = [seed for seed in first if seed in second]
    if len(shared) > 1:
        return Comparison(student([first[seed] - second[seed] for seed in shared]), len(shared), True)
    return Comparison(welch(list(first.values()), list(second.values())), len(shared), False)


def family(comparisons: Sequence[Comparison], confidence: float = 0.95) -> list[Corrected]:
    """Comparisons that were looked at together, each with Holm's correction beside its own interval.

    Sorted by p, the k-th of m is tested at (1 − confidence)/(m − k + 1), until one fails; those behind it are given
    that one's level, since Holm stops there. Those without an interval (a single seed) take no part.
    """
    p = [each.estimate.p for each in comparisons]
    adjusted = holm(p)
    tested = sorted((i for i, value in enumerate(p) if np.isfinite(value)), key=lambda i: p[i])
    count, size, levels = len(tested), 1 - confidence, {}
    stopped = 0.0
    for place, index in enumerate(tested):
        levels[index] = stopped or size / (count - place)
        if not stopped and p[index] >= levels[index]:
            stopped = levels[index]
    out = []
    for i, each in enumerate(comparisons):
        raw, wider = (each.estimate.interval(level) for level in (confidence, 1 - levels.get(i, size)))
        out.append(Corrected(raw, p[i], wider, adjusted[i], count))
    return out


def holm(p: Sequence[float]) -> list[float]:
    """P-values with Holm's correction for having looked at all of them; NaN stays NaN and does not count."""
    order = sorted((i for i, value in enumerate(p) if np.isfinite(value)), key=lambda i: p[i])
    found, highest = [float("nan")] * len(p), 0.0
    for place, index in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - place) * p[index]))
        found[index] = highest
    return found


def alone_only(p: Sequence[float]) -> list[bool]:
    """Which of a family are significant at 5 % before Holm's correction and not after it."""
    return [bool(raw < 0.05 <= held) for raw, held in zip(p, holm(p), strict=True)]


def family_told(p: Sequence[float], what: str = "differences") -> str:
    """How many a family has, and how many are significant at 5 %: before Holm's correction, by chance, after it."""
    known = [value for value in p if np.isfinite(value)]
    alone, held = (sum(value < 0.05 for value in each) for each in (known, holm(known)))
    verb = "is" if alone == 1 else "are"
    return (
        f"Of {len(known)} {what}, {alone or 'none'} {verb} significant at the 5 % level before Holm's correction "
        f"({0.05 * len(known):.1f} expected by chance) and {held or 'none'} after it."
    )


def mean_over_tasks(scores: Scores, confidence: float = 0.95) -> Interval:
    """The mean over tasks of each task's mean over seeds; Student's interval by Welch and Satterthwaite."""
    return average([student(list(seeds.values())) for seeds in _checked(scores).values()]).interval(confidence)


def iqm_over_tasks(scores: Scores, confidence: float = 0.95) -> Interval:
    """The interquartile mean of all runs of all tasks, with Yuen's interval taken task by task.

    Runs outside the middle half are moved to its ends (Winsorised); the spread of those values over the seeds of each
    task is the error, since new seeds would be of the same tasks.
    """
    tasks = [np.array(list(seeds.values())) for seeds in _checked(scores).values()]
    runs = np.sort(np.concatenate(tasks))
    count = len(runs)
    cut = count // 4
    kept = count - 2 * cut
    low, high = runs[cut], runs[count - cut - 1]
    error = average([student(np.clip(task, low, high)) for task in tasks])
    # Yuen: the kept runs carry all the weight, and only they have degrees of freedom. Weights by size of the task are
    # left out of account: tasks have as many seeds each.
    scale = float(np.sqrt((count - 1) * count / ((kept - 1) * kept))) if kept > 1 else float("nan")
    freedom = error.freedom * (kept - 1) / (count - 1) if count > 1 else 0.0
    return Estimate(iqm(runs), error.error * scale, freedom).interval(confidence)


def probability_of_improvement(first: Scores, second: Scores, confidence: float = 0.95) -> Interval:
    """The mean over tasks of the probability that a run of ``first`` beats one of ``second``; a tie counts half.

    This is about two runs met at random, not about pairs. The interval is Wilson's for as many trials as the smaller
    side has seeds, which is at least as wide as it must be (the share of wins of m against n runs varies by at most
    p(1 − p)/min(m, n)).
    """
    one, other = _same_tasks(first, second)
    wins = [_wins(np.array(list(seeds.values())), np.array(list(other[name].values()))) for name, seeds in one.items()]
    return wilson(float(np.mean(wins)), _trials([min(len(one[n]), len(other[n])) for n in one]), confidence)


def performance_profile(scores: Scores, thresholds: Sequence[float] | Values, confidence: float = 0.95) -> Profile:
    """The share of runs above each threshold, the mean over tasks, with Wilson's interval at each threshold."""
    points = np.asarray(thresholds, np.float64)
    if points.ndim != 1 or not len(points) or not np.isfinite(points).all():
        raise SappError("a performance profile needs finite thresholds: give at least one")
    tasks = [np.array(list(seeds.values())) for seeds in _checked(scores).values()]
    share = np.mean([(task[:, None] > points).mean(0) for task in tasks], axis=0)
    trials = _trials([len(task) for task in tasks])
    ends = np.array([wilson(min(1.0, float(value)), trials, confidence) for value in share])
    return Profile(points, share, ends[:, 1], ends[:, 2])


def _trials(counts: Sequence[int]) -> float:
    """As many trials as tasks of these sizes are worth together, when every task weighs the same."""
    return len(counts) ** 2 / sum(1 / count for count in counts)


def _wins(one: Values, other: Values) -> float:
    """Share of pairs in which the first is greater; ties count half."""
    gap = one[:, None] - other[None, :]
    return float(((gap > 0) + 0.5 * (gap == 0)).mean())


def _checked(scores: Scores) -> Scores:
    if not scores:
        raise SappError("no tasks to compare: give the scores of at least one")
    for name, seeds in scores.items():
        if not isinstance(seeds, Mapping) or not seeds:
            raise SappError(f"{name}: give one score per seed, as {{seed: score}}, for at least one seed")
        for seed, value in seeds.items():
            if not np.isfinite(value):
                raise SappError(f"{name}: the score of seed {seed} is not finite")
    return scores


def _same_tasks(first: Scores, second: Scores) -> tuple[Scores, Scores]:
    one, other = _checked(first), _checked(second)
    if set(one) != set(other):
        odd = sorted(set(one) ^ set(other))
        raise SappError(f"{odd[0]}: scored by one method only; compare on the tasks that both have")
    return one, other
