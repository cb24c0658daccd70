"""Tables of scores: in the paper's layout, one by one, differences with their families, averages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sapp.core.statistics import Interval, average, student
from sapp.experiments.paper import METHODS, PRESETS, published
from sapp.report.records import Experiment
from sapp.report.report_tables import Entry, Line, Table, best, cell, ends, fixed, line
from sapp.report.score_summary import Aggregate, Cell, Difference

STYLES = {"higher": "higher", "lower": "lower"}


def layout(experiment: Experiment, found: Sequence[Cell]) -> Table | None:
    """The paper's own layout: a row per dataset, a column per method, the paper's columns beside ours, averages."""
    if not found:
        return None
    by_place = {(each.dataset, each.variant): each for each in found}
    datasets = [name for name in experiment.datasets if any(each.dataset == name for each in found)]
    ours = [name for name in experiment.variants if any(each.variant == name for each in found)]
    papers = [name for name in ours if any(by_place[place].paper is not None for place in by_place if place[1] == name)]
    lines = []
    for name in datasets:
        mine = best([cell(by_place[name, v].final if (name, v) in by_place else None) for v in ours])
        lines.append(Line((Entry(name), *mine, *_published(experiment, papers, [name])), name))
    if len(datasets) > 1 and all(each.unit == "score" for each in found):
        averages = best([cell(_average([by_place.get((name, v)) for name in datasets])) for v in ours])
        title = Entry(f"average of {len(datasets)}")
        lines.append(Line((title, *averages, *_published(experiment, papers, datasets)), focus=True))
    caption = "Final checkpoints, mean over seeds and 95 % interval (Student's); the two best in bold"
    caption += ", the paper's among all of its methods" if papers else ""
    caption += ". A method that lacks a dataset has no average." if len(datasets) > 1 else "."
    caption += " The paper's numbers are after one million steps." if papers else ""
    head = ("dataset", *ours, *(f"{name}, the paper" for name in papers))
    return Table("Scores by dataset", caption, head, tuple(lines), ("", *ours, *papers))


def _average(cells: Sequence[Cell | None]) -> Interval | None:
    known = [each for each in cells if each is not None]
    if len(known) < len(cells):
        return None
    return average([student(list(each.seeds.values())) for each in known]).interval()


def _published(experiment: Experiment, variants: Sequence[str], datasets: Sequence[str]) -> list[Entry]:
    """The paper's means of variants over datasets; the two best of all its methods in bold."""

    def mean(variant: str) -> float | None:
        values = [published(experiment.name, variant, name) for name in datasets]
        numbers = [value for value in values if value is not None]
        return float(np.mean(numbers)) if len(numbers) == len(values) else None

    names = [PRESETS.get(variant, variant) for variant in variants]
    others = [name for name in METHODS if name not in names]
    marked = best([cell(mean(name), style="paper") for name in (*variants, *others)])
    return list(marked[: len(variants)])


def scores(experiment: Experiment, found: Sequence[Cell]) -> Table:
    """One row per method and dataset, with everything that is known of it."""
    lines = []
    for each in found:
        gap = None if each.paper is None else each.final.estimate - each.paper
        seeds = " ".join(fixed(value) for value in each.seeds.values())
        row = (
            each.dataset, each.variant, each.final, cell(each.paper, style="paper"), gap, Entry(seeds), each.recent,
            each.best, each.step,
        )  # fmt: skip
        lines.append(line(row, each.dataset, each.variant, each.variant == experiment.focus))
    head = (
        "dataset", "method", "final (95 % interval)", "the paper", "ours − paper", "each seed", "last three", "best",
        "steps",
    )  # fmt: skip
    units = {each.unit for each in found}
    what = "Normalised scores: 0 is a random policy, 100 the reference expert." if units == {"score"} else "Returns."
    caption = (
        f"{what} Final: the last checkpoint, with Student's interval for the mean over all seeds. Last three: the mean "
        "of the last three evaluations. Best: the highest evaluation, chosen after the fact, which flatters every "
        "method. The paper's numbers are after one million steps, three seeds."
    )
    return Table("Scores", caption, head, tuple(lines))


def differences(experiment: Experiment, gaps: Sequence[Difference], means: Sequence[Difference]) -> Table:
    """The focus against every other method, on each dataset and on average."""
    lines = []
    for gap in (*gaps, *means):
        where = gap.dataset or f"mean of {gap.datasets}"
        corrected = gap.corrected
        row = (
            where, gap.other, corrected.raw, ends(corrected.holm), cell(corrected.holm_p, 3),
            Entry(gap.verdict, style=STYLES.get(gap.verdict, "")), Entry(gap.basis),
        )  # fmt: skip
        lines.append(line(row, gap.dataset, gap.other, not gap.dataset))
    focus = experiment.focus
    caption = (
        f"{focus} minus each other method at the final checkpoint, with Student's intervals. Seeds that both have are "
        "compared in pairs, on the same start states; if they share fewer than two, all seeds of either side are "
        "compared as groups (unpaired, Welch's). The verdict uses the interval with Holm's correction"
        f"{_families(gaps, means)}."
    )
    head = (
        "dataset", "compared with", "difference (95 % interval)", "with Holm's correction", "Holm's p",
        "verdict", "seeds",
    )  # fmt: skip
    return Table("Differences", caption, head, tuple(lines))


def _families(gaps: Sequence[Difference], means: Sequence[Difference]) -> str:
    counts = [family[0].corrected.looked_at for family in (gaps, means) if family]
    told = [f"{count} difference{'s' if count != 1 else ''}" for count in counts]
    means_told = f" and {told[1]} of means" if len(told) > 1 else ""
    return f", which allows for the number of comparisons: {told[0]} by dataset{means_told}" if told else ""


def aggregates(experiment: Experiment, found: Sequence[Aggregate]) -> Table | None:
    """Averages over all datasets."""
    if not found:
        return None
    compared = any(each.paper is not None for each in found)
    lines = []
    for each in found:
        chance = None if each.improvement is None else cell(each.improvement, 2)
        paper = (cell(each.paper, style="paper"),) if compared else ()
        row = each.variant, each.iqm, each.mean, *paper, chance
        lines.append(line(row, "", each.variant, each.variant == experiment.focus))
    printed = ("the paper's mean",) if compared else ()
    head = ("method", "interquartile mean", "mean", *printed, f"chance that {experiment.focus} beats it")
    count = found[0].datasets
    caption = (
        f"Over {count} dataset{'s' if count > 1 else ''}, methods that have them all; final checkpoints. Intervals "
        "(95 %) are for all seeds on the same datasets: Student's for means, Yuen's for interquartile means, Wilson's "
        "for the chance, which is that of two runs met at random; 0.5 is even."
    )
    return Table("Over all datasets", caption, head, tuple(lines))
