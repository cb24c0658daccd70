"""What a report shows of one experiment: its tables, its charts, and sentences made from their numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sapp.core.comparisons import family_told
from sapp.core.statistics import Interval
from sapp.experiments.paper import published
from sapp.report import run_tables, score_tables
from sapp.report.chart import Chart, Reference
from sapp.report.curves import Curve, learning_curves, metric_curves
from sapp.report.records import Experiment
from sapp.report.report_tables import Table, fixed
from sapp.report.run_tables import DIAGNOSTICS
from sapp.report.score_summary import (
    Aggregate,
    Cell,
    Difference,
    aggregates,
    cells,
    differences,
    mean_differences,
    profiles,
)

VALUE = "critic/value"
LIMIT = "critic/value_limit"


@dataclass(frozen=True)
class Content:
    """Everything a page shows of one experiment; charts by the dataset they are about."""

    experiment: Experiment
    sentences: tuple[str, ...]
    tables: Mapping[str, Table]
    curves: tuple[tuple[str, Chart], ...]
    profile: Chart | None
    diagnostics: tuple[tuple[str, Chart], ...]
    cells: tuple[Cell, ...]


def content(experiment: Experiment) -> Content:
    """Compute an experiment's numbers and put them into tables and charts."""
    found = cells(experiment)
    gaps = differences(experiment, found)
    means = mean_differences(experiment, gaps)
    over_all = aggregates(experiment, found)
    named = {
        "layout": score_tables.layout(experiment, found),
        "scores": score_tables.scores(experiment, found),
        "differences": score_tables.differences(experiment, gaps, means),
        "aggregates": score_tables.aggregates(experiment, over_all),
        "quality": run_tables.quality(experiment),
        "diagnostics": run_tables.estimator(experiment),
        "beyond": run_tables.beyond(experiment),
        "events": run_tables.events(experiment),
        "cost": run_tables.cost(experiment),
        "settings": run_tables.settings(experiment),
        "data": run_tables.data(experiment),
        "runs": run_tables.runs(found),
    }
    return Content(
        experiment,
        tuple(sentences(experiment, gaps, means, over_all)),
        {name: table for name, table in named.items() if table is not None and table.lines},
        tuple(_curves(experiment)),
        _profile(experiment, found),
        tuple(_diagnostics(experiment)),
        tuple(found),
    )


def sentences(
    experiment: Experiment, gaps: Sequence[Difference], means: Sequence[Difference], over_all: Sequence[Aggregate]
) -> list[str]:
    """What the tables say, in words."""
    focus = experiment.focus
    out = []
    mine = next((each for each in over_all if each.variant == focus), None)
    if mine is not None:
        plural = "s" if mine.datasets > 1 else ""
        out.append(f"{focus} scores {_told(mine.mean)} on average over {mine.datasets} dataset{plural}.")
    averaged = {gap.other: gap for gap in means}
    for other in dict.fromkeys(gap.other for gap in gaps):
        own = [gap.verdict for gap in gaps if gap.other == other]
        told = [f"{verdict} on {own.count(verdict)}" for verdict in dict.fromkeys(own)]
        text = f"{focus} against {other}: {', '.join(told)} of {len(own)} dataset{'s' if len(own) > 1 else ''}"
        if other in averaged:
            mean = averaged[other]
            sign = "+" if mean.corrected.raw.estimate > 0 else ""
            text += f"; on average {sign}{_told(mean.corrected.raw)}: {mean.verdict}"
        out.append(f"{text}.")
    known = [gap.corrected for gap in gaps if gap.corrected.raw.known]
    if len(known) > 1:
        out.append(family_told([each.p for each in known], "differences by dataset"))
    if experiment.scale == "smoke":
        out.append("This is the smoke scale: tiny networks, a few hundred steps, to show that every part works.")
    return [*out, *experiment.notes]


def _told(interval: Interval) -> str:
    if not interval.known:
        return fixed(interval.estimate)
    return f"{fixed(interval.estimate)} (95 % interval {fixed(interval.low)} to {fixed(interval.high)})"


def _curves(experiment: Experiment) -> list[tuple[str, Chart]]:
    out = []
    for dataset in experiment.datasets:
        found = learning_curves(experiment, dataset)
        if not found:
            continue
        unit = next(member.unit for member in experiment.members if member.dataset == dataset)
        paper = {name: published(experiment.name, name, dataset) for name in ("CQL", experiment.focus)}
        references = [Reference(f"the paper's {n}", value, n) for n, value in paper.items() if value is not None]
        label = "normalised score" if unit == "score" else "return"
        chart = Chart(
            dataset, "gradient steps", label, found, experiment.variants, references=references, intervals=True
        )
        out.append((dataset, chart))
    return out


def _profile(experiment: Experiment, found: Sequence[Cell]) -> Chart | None:
    made = profiles(experiment, found)
    if not made:
        return None
    curves = [Curve(name, each.thresholds, each.share, each.low, each.high) for name, each in made.items()]
    return Chart("Performance profile", "score", "share of runs that score higher", curves, experiment.variants)


def _diagnostics(experiment: Experiment) -> list[tuple[str, Chart]]:
    out = []
    shown = {VALUE: ("mean value by the critic", False)} | DIAGNOSTICS
    for dataset in experiment.datasets:
        for name, (label, log) in shown.items():
            curves = metric_curves(experiment, dataset, name)
            if curves:
                chart = Chart(
                    f"{dataset}: {label}", "steps; before 0: pre-training", label, curves, experiment.variants, log,
                    limits(experiment, dataset) if name == VALUE else (),
                )  # fmt: skip
                out.append((dataset, chart))
    return out


def limits(experiment: Experiment, dataset: str) -> list[Reference]:
    """The last limit on record of what values can be: one line, or one per variant where they differ."""
    last: dict[str, float] = {}
    for variant in experiment.variants:
        for member in experiment.of(dataset, variant):
            for _, value in member.metrics.get(LIMIT, ())[-1:]:
                last[variant] = max(value, last.get(variant, value))
    if len(set(last.values())) == 1:
        return [Reference("limit", next(iter(last.values())))]
    return [Reference(f"limit of {variant}", value, variant) for variant, value in last.items()]


def configuration_text(experiment: Experiment, variant: str) -> str:
    """The full configuration of a method, as JSON; where it differs between datasets, the first one's."""
    member = next(each for each in experiment.members if each.variant == variant)
    shown = {"algorithm": member.algorithm} | {
        name: member.facts[name] for name in ("phases", "evaluation", "versions") if name in member.facts
    }
    return json.dumps(shown, indent=1, ensure_ascii=False)
