"""Curves along training: scores with intervals, metrics with the range of the seeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sapp.core.statistics import Values, student
from sapp.report.records import Experiment, Member
from sapp.report.score_summary import shared_steps


@dataclass(frozen=True)
class Curve:
    """A mean over seeds along training, with the range of the interval or of the seeds; NaN where there is none."""

    variant: str
    steps: Values
    mean: Values
    low: Values
    high: Values


def learning_curves(experiment: Experiment, dataset: str) -> list[Curve]:
    """Scores along training: means over the seeds with their intervals."""
    out = []
    for variant in experiment.variants:
        members = [member for member in experiment.of(dataset, variant) if member.evaluations]
        steps = shared_steps(members)
        if steps:
            found = [student([member.mean(step) for member in members]).interval() for step in steps]
            table = np.array(found, np.float64)
            out.append(Curve(variant, np.array(steps, np.float64), table[:, 0], table[:, 1], table[:, 2]))
    return out


def metric_curves(experiment: Experiment, dataset: str, name: str) -> list[Curve]:
    """A metric along training: the mean over seeds and their range."""
    out = []
    for variant in experiment.variants:
        members = [each for each in experiment.of(dataset, variant) if name in each.metrics]
        series = [dict(each.metrics[name]) for each in members if name.startswith("critic/") or weighted(each)]
        steps = sorted(set.intersection(*map(set, series))) if series else []
        if steps:
            table = np.array([[one[step] for step in steps] for one in series], np.float64)
            x = np.array(steps, np.float64)
            out.append(downsampled(Curve(variant, x, table.mean(0), table.min(0), table.max(0))))
    return out


def downsampled(curve: Curve, most: int = 60) -> Curve:
    """A curve of at most so many points: means of stretches, and the whole range that each stretch visits.

    A page draws no more than its pixels, and a long run's every thousandth step would make it megabytes.
    """
    if len(curve.steps) <= most:
        return curve
    cuts = np.linspace(0, len(curve.steps), most + 1).astype(int)[:-1]
    widths = np.diff(np.append(cuts, len(curve.steps)))
    return Curve(
        curve.variant,
        np.add.reduceat(curve.steps, cuts) / widths,
        np.add.reduceat(curve.mean, cuts) / widths,
        np.minimum.reduceat(curve.low, cuts),
        np.maximum.reduceat(curve.high, cuts),
    )


def weighted(member: Member) -> bool:
    """Whether a member has state weights worth showing: an estimator, or weights other than 1."""
    constant = all(value == 1.0 for _, value in member.metrics.get("weights/mean", ()))
    return not constant or any(name.startswith("ratio/") for name in member.metrics)
