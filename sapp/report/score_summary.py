"""The numbers of a report: scores with intervals, differences in families, aggregates; final first, best second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sapp.core.comparisons import (
    Comparison,
    Corrected,
    Profile,
    Scores,
    compare,
    family,
    iqm_over_tasks,
    mean_over_tasks,
    performance_profile,
    probability_of_improvement,
)
from sapp.core.statistics import Interval, average, spearman, student
from sapp.experiments.paper import published
from sapp.report.records import Experiment, Member


@dataclass(frozen=True)
class Cell:
    """A method on a dataset.

    Attributes:
        dataset: by name.
        variant: the method.
        unit: "score" or "return".
        step: of the final checkpoint.
        final: mean over the seeds at the final checkpoint, with its interval.
        seeds: mean of the final checkpoint, by seed.
        recent: mean of the last three evaluations.
        best: the highest evaluation along training, a mean over the seeds.
        best_step: where that was.
        paper: the paper's number, if it prints one.
        runs: keys of the runs behind the numbers, by seed.
    """

    dataset: str
    variant: str
    unit: str
    step: int
    final: Interval
    seeds: dict[int, float]
    recent: float
    best: float
    best_step: int
    paper: float | None
    runs: dict[int, str]


@dataclass(frozen=True)
class Difference:
    """The focus minus another variant: on a dataset, or (no dataset) the mean over all that both have.

    Attributes:
        dataset: by name; empty for the mean.
        datasets: how many.
        other: the other variant.
        comparison: which seeds were compared, and how.
        corrected: its intervals, as one of the family of differences that were looked at.
        seeds: of the focus and of the other.
    """

    dataset: str
    datasets: int
    other: str
    comparison: Comparison
    corrected: Corrected
    seeds: tuple[int, int]

    @property
    def verdict(self) -> str:
        """In words, by Holm's correction; what the raw interval alone would say is said as that."""
        raw, held = self.corrected.raw, self.corrected.holm
        if not raw.known:
            return "unknown (too few seeds)"
        if held.low > 0 or held.high < 0:
            return "higher" if held.low > 0 else "lower"
        if raw.low > 0 or raw.high < 0:
            return f"{'higher' if raw.low > 0 else 'lower'} only before correction"
        return "no significant difference"

    @property
    def basis(self) -> str:
        """Which seeds it rests on."""
        if self.comparison.paired:
            return f"{self.comparison.pairs} pairs"
        return f"unpaired, {self.seeds[0]} and {self.seeds[1]} seeds"


@dataclass(frozen=True)
class Aggregate:
    """A variant over all datasets of the focus."""

    variant: str
    datasets: int
    mean: Interval
    iqm: Interval
    paper: float | None
    improvement: Interval | None


@dataclass(frozen=True)
class Quality:
    """How well the estimated reward of one member follows its true return over training (Figure 2).

    ``correlation`` is that of the plain estimate E[wr], ``normalised`` that of Σwr/Σw, or None where it was not logged.
    """

    dataset: str
    variant: str
    seed: int
    correlation: float
    points: int
    normalised: float | None = None


def cells(experiment: Experiment) -> list[Cell]:
    """Every method on every dataset."""
    found = []
    for dataset in experiment.datasets:
        last = common_step(experiment, dataset)
        for variant in experiment.variants:
            members = [member for member in experiment.of(dataset, variant) if member.evaluations]
            steps = [step for step in shared_steps(members) if last is None or step <= last]
            if not steps:
                continue
            means = {step: float(np.mean([member.mean(step) for member in members])) for step in steps}
            seeds = {member.seed: member.mean(steps[-1]) for member in members}
            best = max(steps, key=lambda step: means[step])
            found.append(
                Cell(
                    dataset, variant, members[0].unit, steps[-1], student(list(seeds.values())).interval(), seeds,
                    float(np.mean([means[step] for step in steps[-3:]])), means[best], best,
                    published(experiment.name, variant, dataset), {member.seed: member.run for member in members},
                )
            )  # fmt: skip
    return found


def shared_steps(members: Sequence[Member]) -> list[int]:
    """Steps at which all of them were evaluated."""
    return sorted(set.intersection(*(set(member.evaluations) for member in members))) if members else []


def common_step(experiment: Experiment, dataset: str) -> int | None:
    """The last step at which all variants of a dataset were evaluated; None if there is none."""
    shared = shared_steps([each for each in experiment.members if each.dataset == dataset and each.evaluations])
    return shared[-1] if shared else None


def differences(experiment: Experiment, found: Sequence[Cell]) -> list[Difference]:
    """The focus against every other variant on every dataset, at a step that both have: one family."""
    by_place = {(cell.dataset, cell.variant): cell for cell in found}
    made: list[tuple[Cell, Cell, Comparison]] = []
    for cell in found:
        mine = by_place.get((cell.dataset, experiment.focus))
        if mine is not None and cell.variant != experiment.focus and cell.step == mine.step:
            made.append((mine, cell, _compared(experiment, mine, cell)))
    held = family([comparison for *_, comparison in made])
    return [
        Difference(cell.dataset, 1, cell.variant, comparison, corrected, (len(mine.seeds), len(cell.seeds)))
        for (mine, cell, comparison), corrected in zip(made, held, strict=True)
    ]


def _compared(experiment: Experiment, mine: Cell, other: Cell) -> Comparison:
    """By seed; where both played from the same start states, over the episodes that both have."""
    ours, theirs = (
        {member.seed: member for member in experiment.of(cell.dataset, cell.variant) if member.seed in cell.seeds}
        for cell in (mine, other)
    )
    first, second = dict(mine.seeds), dict(other.seeds)
    for seed in ours.keys() & theirs.keys():
        one, two = ours[seed], theirs[seed]
        episodes = one.evaluations[mine.step].keys() & two.evaluations[other.step].keys()
        if one.starts == two.starts and episodes:
            first[seed], second[seed] = one.mean(mine.step, episodes), two.mean(other.step, episodes)
    return compare(first, second)


def mean_differences(experiment: Experiment, found: Sequence[Difference]) -> list[Difference]:
    """The mean over datasets of the focus minus every variant that has all datasets of the focus: one family."""
    datasets = {gap.dataset for gap in found}
    made = []
    for other in dict.fromkeys(gap.other for gap in found):
        own = [gap for gap in found if gap.other == other]
        if len(own) == len(datasets) > 1 and all(_scored(experiment, gap.dataset) for gap in own):
            joined = Comparison(
                average([gap.comparison.estimate for gap in own]),
                sum(gap.comparison.pairs for gap in own),
                all(gap.comparison.paired for gap in own),
            )
            made.append((other, joined, (sum(gap.seeds[0] for gap in own), sum(gap.seeds[1] for gap in own))))
    held = family([joined for _, joined, _ in made])
    return [
        Difference("", len(datasets), other, joined, corrected, seeds)
        for (other, joined, seeds), corrected in zip(made, held, strict=True)
    ]


def _scored(experiment: Experiment, dataset: str) -> bool:
    return all(member.unit == "score" for member in experiment.members if member.dataset == dataset)


def aggregates(experiment: Experiment, found: Sequence[Cell]) -> list[Aggregate]:
    """Every variant that has all datasets of the focus, on the scale of scores."""
    scores = common_scores(experiment, found)
    papers = {(cell.dataset, cell.variant): cell.paper for cell in found}
    out = []
    for variant, tasks in scores.items():
        known = [papers[dataset, variant] for dataset in tasks]
        numbers = [value for value in known if value is not None]
        paper = float(np.mean(numbers)) if len(numbers) == len(known) else None
        improvement = None
        if variant != experiment.focus and experiment.focus in scores:
            improvement = probability_of_improvement(scores[experiment.focus], tasks)
        out.append(Aggregate(variant, len(tasks), mean_over_tasks(tasks), iqm_over_tasks(tasks), paper, improvement))
    return out


def common_scores(experiment: Experiment, found: Sequence[Cell]) -> dict[str, Scores]:
    """Final scores by variant, dataset and seed, of the variants that have all datasets of the focus.

    A variant that lacks some is left out: averages over different datasets cannot be compared.
    """
    by_variant: dict[str, dict[str, dict[int, float]]] = {variant: {} for variant in experiment.variants}
    for cell in found:
        if cell.unit == "score":
            by_variant[cell.variant][cell.dataset] = cell.seeds
    names = list(by_variant.get(experiment.focus, ()))
    return {
        variant: {name: tasks[name] for name in names}
        for variant, tasks in by_variant.items()
        if names and all(name in tasks for name in names)
    }


def profiles(experiment: Experiment, found: Sequence[Cell]) -> dict[str, Profile]:
    """Performance profiles of all variants on common thresholds."""
    scores = common_scores(experiment, found)
    if not scores:
        return {}
    everything = [value for tasks in scores.values() for seeds in tasks.values() for value in seeds.values()]
    low, high = min(everything), max(everything)
    margin = max(1.0, 0.05 * (high - low))
    thresholds = np.linspace(low - margin, high + margin, 61)
    return {variant: performance_profile(tasks, thresholds) for variant, tasks in scores.items()}


def ratio_quality(experiment: Experiment) -> list[Quality]:
    """Rank correlation of ζ-weighted reward and played return over a member's evaluations."""
    out = []
    for member in experiment.members:
        plain, normalised = (_correlation(member, name) for name in ("ratio/reward", "ratio/reward_normalised"))
        if plain is not None:
            other = None if normalised is None else normalised[0]
            out.append(Quality(member.dataset, member.variant, member.seed, *plain, other))
    return out


def _correlation(member: Member, metric: str) -> tuple[float, int] | None:
    """Of a metric and the played return over the evaluations that have both, and how many; None below three."""
    values = dict(member.metrics.get(metric, ()))
    steps = [step for step in sorted(member.evaluations) if step in values]
    if len(steps) < 3:
        return None
    return spearman([values[step] for step in steps], [member.mean(step) for step in steps]), len(steps)


@dataclass(frozen=True)
class Beyond:
    """A member whose critic's mean value went beyond what any policy can earn.

    Attributes:
        dataset: by name.
        variant: the method.
        seed: of the learner.
        first: the first step at which it was beyond.
        share: of the steps on record.
        value: the one furthest out.
        limit: at that step.
    """

    dataset: str
    variant: str
    seed: int
    first: int
    share: float
    value: float
    limit: float


def beyond_limit(experiment: Experiment) -> list[Beyond]:
    """Members with ``critic/value`` beyond ``critic/value_limit``, on either side of 0, at some step."""
    out = []
    for member in experiment.members:
        values = dict(member.metrics.get("critic/value", ()))
        limits = {step: limit for step, limit in member.metrics.get("critic/value_limit", ()) if step in values}
        over = {step: abs(values[step]) - limit for step, limit in limits.items() if abs(values[step]) > limit}
        if over:
            worst = max(over, key=lambda step: over[step])
            out.append(
                Beyond(member.dataset, member.variant, member.seed, min(over), len(over) / len(limits), values[worst],
                       limits[worst])
            )  # fmt: skip
    return out
