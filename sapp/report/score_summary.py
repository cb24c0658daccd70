"""The numbers of a report: scores with intervals, paired differences, aggregates; final first, best second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sapp.core.comparisons import (
    Profile,
    Scores,
    compare,
    compare_over_tasks,
    iqm_over_tasks,
    mean_over_tasks,
    performance_profile,
    probability_of_improvement,
)
from sapp.core.statistics import Interval, seeds_and_episodes, spearman
from sapp.experiments.paper import published
from sapp.report.records import Experiment, Member

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """A method on a dataset.

    Attributes:
        dataset: by name.
        column: the method.
        unit: "score" or "return".
        step: of the final checkpoint.
        seeds: which.
        final: mean of the final checkpoint with its interval (seeds and episodes drawn anew).
        by_seed: mean of the final checkpoint of each seed.
        recent: mean of the last three evaluations.
        best: the highest evaluation along training, a mean over the seeds.
        best_step: where that was.
        paper: the paper's number, if it prints one.
        runs: keys of the runs behind the numbers.
    """

    dataset: str
    column: str
    unit: str
    step: int
    seeds: tuple[int, ...]
    final: Interval
    by_seed: tuple[float, ...]
    recent: float
    best: float
    best_step: int
    paper: float | None
    runs: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """The focus minus another column on a dataset, paired by seed and start state."""

    dataset: str
    focus: str
    other: str
    value: Interval
    pairs: int
    step: int

    @property
    def verdict(self) -> str:
        """In words; with fewer than three pairs no interval deserves a verdict."""
        if self.pairs < 3:
            return "unknown (too few seeds)"
        if self.value.low > 0:
            return "higher"
        return "lower" if self.value.high < 0 else "no significant difference"


@dataclass(frozen=True)
class Aggregate:
    """A column over all datasets of the focus, and how the focus compares with it there."""

    column: str
    tasks: int
    mean: Interval
    iqm: Interval
    paper: float | None
    difference: Interval | None
    improvement: Interval | None


@dataclass(frozen=True)
class Curve:
    """A mean over seeds along training, with the range of the interval or of the seeds."""

    column: str
    steps: Values
    mean: Values
    low: Values
    high: Values


def cells(experiment: Experiment) -> list[Cell]:
    """Every method on every dataset."""
    found = []
    for dataset in experiment.datasets:
        last = common_step(experiment, dataset)
        for column in experiment.columns:
            members = [member for member in experiment.of(dataset, column) if member.evaluations]
            if not members:
                continue
            steps = sorted(set.intersection(*(set(member.evaluations) for member in members)))
            steps = [step for step in steps if last is None or step <= last]
            if not steps:
                continue
            means = {step: float(stacked(members, step).mean()) for step in steps}
            final = stacked(members, steps[-1])
            best = max(steps, key=lambda step: means[step])
            found.append(
                Cell(
                    dataset,
                    column,
                    members[0].unit,
                    steps[-1],
                    tuple(member.seed for member in members),
                    seeds_and_episodes(final, seed=0),
                    tuple(float(value) for value in final.mean(1)),
                    float(np.mean([means[step] for step in steps[-3:]])),
                    means[best],
                    best,
                    published(experiment.name, column, dataset),
                    tuple(member.run for member in members),
                )
            )
    return found


def common_step(experiment: Experiment, dataset: str) -> int | None:
    """The last step at which all columns of a dataset were evaluated; None if there is none."""
    steps = [
        set(member.evaluations) for member in experiment.members if member.dataset == dataset and member.evaluations
    ]
    shared = set.intersection(*steps) if steps else set()
    return max(shared) if shared else None


def stacked(members: Sequence[Member], step: int) -> Values:
    """Scores [seeds, episodes] of a cell at a step."""
    episodes = min(len(member.evaluations[step]) for member in members)
    return np.stack([member.evaluations[step][:episodes] for member in members])


def differences(experiment: Experiment, found: Sequence[Cell]) -> list[Difference]:
    """The focus against every other column, where both have a seed and a step in common."""
    out = []
    by_place = {(cell.dataset, cell.column): cell for cell in found}
    for cell in found:
        mine = by_place.get((cell.dataset, experiment.focus))
        if mine is None or cell.column == experiment.focus or cell.step != mine.step:
            continue
        ours, theirs = (dict(zip(each.seeds, each.by_seed, strict=True)) for each in (mine, cell))
        gap = compare(ours, theirs)
        out.append(Difference(cell.dataset, experiment.focus, cell.column, gap.interval, gap.pairs, cell.step))
    return out


def aggregates(experiment: Experiment, found: Sequence[Cell]) -> list[Aggregate]:
    """Every column that has all datasets of the focus, on the scale of scores."""
    scores = common_scores(experiment, found)
    if not scores:
        return []
    papers = {(cell.dataset, cell.column): cell.paper for cell in found}
    out = []
    for column, tasks in scores.items():
        known = [papers[dataset, column] for dataset in tasks]
        numbers = [value for value in known if value is not None]
        paper = float(np.mean(numbers)) if len(numbers) == len(known) else None
        difference = improvement = None
        if column != experiment.focus and experiment.focus in scores:
            mine = scores[experiment.focus]
            difference = compare_over_tasks(mine, tasks).interval
            improvement = probability_of_improvement(mine, tasks)
        out.append(
            Aggregate(column, len(tasks), mean_over_tasks(tasks), iqm_over_tasks(tasks), paper, difference, improvement)
        )
    return out


def common_scores(experiment: Experiment, found: Sequence[Cell]) -> dict[str, Scores]:
    """Final scores of the seeds, by column and dataset, of the columns that have all datasets of the focus.

    A column that lacks some is left out: averages over different datasets cannot be compared.
    """
    by_column: dict[str, dict[str, dict[int, float]]] = {column: {} for column in experiment.columns}
    for cell in found:
        if cell.unit == "score":
            by_column[cell.column][cell.dataset] = dict(zip(cell.seeds, cell.by_seed, strict=True))
    names = list(by_column.get(experiment.focus, ()))
    return {
        column: {name: tasks[name] for name in names}
        for column, tasks in by_column.items()
        if names and all(name in tasks for name in names)
    }


def profiles(experiment: Experiment, found: Sequence[Cell]) -> dict[str, Profile]:
    """Performance profiles of all columns on common thresholds."""
    scores = common_scores(experiment, found)
    if not scores:
        return {}
    everything = [value for tasks in scores.values() for seeds in tasks.values() for value in seeds.values()]
    low, high = min(everything), max(everything)
    margin = max(1.0, 0.05 * (high - low))
    thresholds = np.linspace(low - margin, high + margin, 61)
    return {column: performance_profile(tasks, thresholds) for column, tasks in scores.items()}


def learning_curves(experiment: Experiment, dataset: str) -> list[Curve]:
    """Scores along training: means with bootstrap intervals over seeds and episodes."""
    out = []
    for column in experiment.columns:
        members = [member for member in experiment.of(dataset, column) if member.evaluations]
        if not members:
            continue
        steps = sorted(set.intersection(*(set(member.evaluations) for member in members)))
        intervals = [seeds_and_episodes(stacked(members, step), seed=0, resamples=2_000) for step in steps]
        if steps:
            table = np.array(intervals, np.float64)
            out.append(Curve(column, np.array(steps, np.float64), table[:, 0], table[:, 1], table[:, 2]))
    return out


def metric_curves(experiment: Experiment, dataset: str, name: str) -> list[Curve]:
    """A metric along training: the mean over seeds and their range."""
    out = []
    for column in experiment.columns:
        series = [dict(m.metrics[name]) for m in experiment.of(dataset, column) if name in m.metrics and weighted(m)]
        steps = sorted(set.intersection(*map(set, series))) if series else []
        if steps:
            table = np.array([[one[step] for step in steps] for one in series], np.float64)
            x = np.array(steps, np.float64)
            out.append(thinned(Curve(column, x, table.mean(0), table.min(0), table.max(0))))
    return out


def thinned(curve: Curve, most: int = 60) -> Curve:
    """A curve of at most so many points: means of stretches, and the whole range that each stretch visits.

    A page draws no more than its pixels, and a long run's every thousandth step would make it megabytes.
    """
    if len(curve.steps) <= most:
        return curve
    cuts = np.linspace(0, len(curve.steps), most + 1).astype(int)[:-1]
    widths = np.diff(np.append(cuts, len(curve.steps)))
    return Curve(
        curve.column,
        np.add.reduceat(curve.steps, cuts) / widths,
        np.add.reduceat(curve.mean, cuts) / widths,
        np.minimum.reduceat(curve.low, cuts),
        np.maximum.reduceat(curve.high, cuts),
    )


def weighted(member: Member) -> bool:
    """Whether a member has state weights worth showing: an estimator, or weights other than 1."""
    constant = all(value == 1.0 for _, value in member.metrics.get("weights/mean", ()))
    return not constant or any(name.startswith("ratio/") for name in member.metrics)


@dataclass(frozen=True)
class Quality:
    """How well the estimated reward of one member follows its true return over training (Figure 2)."""

    dataset: str
    column: str
    seed: int
    correlation: float
    points: int


def ratio_quality(experiment: Experiment) -> list[Quality]:
    """Rank correlation of ζ-weighted reward and played return over a member's evaluations."""
    out = []
    for member in experiment.members:
        reward = dict(member.metrics.get("ratio/reward", ()))
        steps = [step for step in sorted(member.evaluations) if step in reward]
        if len(steps) >= 3:
            played = [float(member.evaluations[step].mean()) for step in steps]
            value = spearman([reward[step] for step in steps], played)
            out.append(Quality(member.dataset, member.column, member.seed, value, len(steps)))
    return out
