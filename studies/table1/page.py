"""The tables and curves of the page, from the study's rows: python -m studies.table1.page"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sapp.core.comparisons import Comparison, family
from sapp.core.statistics import average, student
from sapp.experiments import text_store
from sapp.experiments.paper import METHODS as PAPERS
from sapp.experiments.paper import published
from sapp.experiments.parts import Block, Part, Study, done, seconds
from sapp.experiments.shares import shares
from sapp.report.curves import learning_curves
from sapp.report.marked_sections import write_sections
from sapp.report.records import Experiment, Member
from sapp.report.report_tables import Cell, Entry, best, cell, ends, fixed, table
from sapp.report.score_summary import Cell as Score
from sapp.report.score_summary import Difference, cells, differences
from sapp.report.score_tables import differences as differences_table
from sapp.report.sources import read
from sapp.runs.events import EventKind, RatioHealth
from sapp.runs.members import MemberId
from studies.table1.part import METHODS, SEEDS, STUDY

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
FIGURE = "curves.svg"
SECTIONS = ("standing", "cluster", "layout", "averages", "differences", "means", "curves", "diagnostics")
PRINTED = {"CQL": 75.5, "SA-CQL": 80.3}
"""Averages as the paper prints them; of its CQL column the printed scores average 76.1."""
COLOURS = {"CQL": "#0b62c4", "SA-CQL": "#c4320a", "matched": "#13795b", "shuffled": "#8a3ffc"}


def sections(rows: Path = STUDY.rows, *, rehearse: bool = False) -> dict[str, str]:
    """The marked sections of the page; only the first two have text where there are no rows."""
    made = dict.fromkeys(SECTIONS, "") | {"standing": standing(STUDY, rows, rehearse=rehearse), "cluster": cluster()}
    experiment = experiment_of(STUDY, rows, rehearse=rehearse)
    if experiment is None:
        return made
    found = cells(experiment)
    gaps = differences(experiment, found)
    made |= {
        "layout": layout(experiment, found),
        "averages": averages(experiment, found),
        "curves": f"![Scores along training, by dataset]({FIGURE})",
        "diagnostics": diagnostics(experiment),
    }
    if gaps:
        made["differences"] = differences_table(experiment, gaps, ()).markdown().strip()
        made["means"] = means(gaps)
    return made


def cluster(gpus: Sequence[int] = (1, 8, 64)) -> str:
    """How long the main methods take on so many GPUs, by the costs that parts are sized by."""
    grid = STUDY.whole().only(None, METHODS)
    rows = []
    for count in gpus:
        divided = shares(grid, count)
        runs = [share.grid.runs(share.family, share.names) for share in divided]
        free = [0.0] * count
        for each in runs:  # in this order, each to the GPU that is free first
            free[free.index(min(free))] += seconds(STUDY, Part(tuple(map(_block, each))))
        rows.append((f"{count}", f"{len(runs)}", f"{max(map(len, runs))}", f"{max(free) / 3600:.1f}"))
    caption = "How long CQL, SA-CQL and matched take with `--on ray`, by the same `COSTS`: not measured."
    return table("On a cluster", caption, ("GPUs", "jobs", "runs in the largest", "hours"), rows).markdown().strip()


def _block(run: MemberId) -> Block:
    return Block((run.algorithm,), (run.dataset,), (run.seed,))


def experiment_of(study: Study, rows: Path, *, rehearse: bool = False) -> Experiment | None:
    """What the rows hold of the study; None where they hold nothing."""
    grid = study.whole(rehearse)
    found = read([rows]) if text_store.is_text_store(rows) else []
    own = (each for each in found if (each.name, each.scale) == (grid.name, grid.scale.label))
    return next(own, None)


def standing(study: Study, rows: Path, *, rehearse: bool = False) -> str:
    """How many runs are complete, by method, and what is known of the others."""
    grid = study.whole(rehearse)
    wanted = frozenset[Any]().union(*(part.members for part in study.parts))
    there = done(rows, grid) & wanted
    main = [run for run in wanted if run.algorithm in METHODS]
    whole = [
        name
        for name in grid.datasets
        if all(run in there for run in main if run.dataset == name)
    ]  # fmt: skip
    others = sorted({run.algorithm for run in wanted} - set(METHODS))
    lines = [
        f"**{len(there & set(main))} of {len(main)} runs** of {', '.join(METHODS[:-1])} and {METHODS[-1]} are done; "
        f"{len(whole)} of {len(grid.datasets)} datasets are complete."
    ]
    for name in others:
        of = [run for run in wanted if run.algorithm == name]
        lines.append(f"Control *{name}*: {len(there & set(of))} of {len(of)} runs.")
    stopped = rows / text_store.UNFINISHED
    if text_store.is_text_store(stopped):
        (experiment,) = read([stopped])
        told = ", ".join(
            f"{each.variant} on {each.dataset}, seed {each.seed} (to step {max(each.evaluations):,})"
            for each in experiment.members
        )
        lines.append(f"Stopped before their end and in no table below: {told}.")
    mixed = other_bits(rows)
    if mixed:
        lines.append(f"Seeds learned from the same recipe's data of other bits on {', '.join(mixed)}.")
    return " ".join(lines)


def other_bits(rows: Path) -> list[str]:
    """Datasets whose runs have several fingerprints."""
    if not text_store.is_text_store(rows):
        return []
    prints: dict[str, set[str]] = {}
    for _, dataset, fingerprint, *_ in text_store.read(rows).rows["runs"]:
        prints.setdefault(dataset, set()).add(fingerprint)
    return sorted(name for name, found in prints.items() if len(found) > 1)


def layout(experiment: Experiment, found: Sequence[Score]) -> str:
    """The paper's table beside ours, in its own layout."""
    by_place = {(each.dataset, each.variant): each for each in found}
    ours = [name for name in experiment.variants if any(each.variant == name for each in found)]
    lines: list[list[Cell]] = []
    whole = complete(found)
    for name in experiment.datasets:
        mine = best([told(by_place.get((name, variant))) for variant in ours])
        paper = best([cell(published("table1", variant, name)) for variant in PAPERS])
        lines.append([name, *mine, *paper])
    if whole:
        mine = best([cell(mean_of([by_place.get((name, variant)) for name in whole])) for variant in ours])
        paper = best([cell(paper_mean(variant, whole)) for variant in PAPERS])
        lines.append([Entry(f"average of {len(whole)}", bold=True), *mine, *paper])
    caption = (
        "Left ours: final checkpoints at a million steps, mean over three seeds (fewer where a number says so) and "
        "Student's 95 % interval. Right the paper's table. The two best of either side in bold. Averages are over the "
        f"datasets that have every seed of {', '.join(METHODS)}."
    )
    head = ("dataset", *ours, *(f"{name}, the paper" for name in PAPERS))
    return table("Table 1", caption, head, lines).markdown().strip()


def told(score: Score | None) -> Entry:
    """A cell of the table; with the number of seeds where some are to come."""
    if score is None:
        return Entry("")
    made = cell(score.final)
    count = len(score.seeds)
    return made if count == len(SEEDS) else replace(made, detail=f"{made.detail}, {count} of {len(SEEDS)} seeds")


def complete(found: Sequence[Score]) -> list[str]:
    """Datasets on which each of the three methods has every seed."""
    names = dict.fromkeys(each.dataset for each in found)
    full = {(each.dataset, each.variant) for each in found if len(each.seeds) == len(SEEDS)}
    return [name for name in names if all((name, method) in full for method in METHODS)]


def mean_of(scores: Sequence[Score | None]) -> Any:
    """The mean over datasets with its interval; None where one lacks a seed."""
    known = [each for each in scores if each is not None and len(each.seeds) == len(SEEDS)]
    if not known or len(known) < len(scores):
        return None
    return average([student(list(each.seeds.values())) for each in known]).interval()


def paper_mean(variant: str, datasets: Sequence[str]) -> float | None:
    """The paper's mean over some datasets."""
    values = [published("table1", variant, name) for name in datasets]
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known and len(known) == len(values) else None


def averages(experiment: Experiment, found: Sequence[Score]) -> str:
    """Averages over the complete datasets: final, the last three evaluations, and the best one."""
    whole = complete(found)
    if not whole:
        return ""
    lines: list[list[Cell]] = []
    for variant in experiment.variants:
        own = [each for each in found if each.variant == variant and each.dataset in whole]
        if len(own) < len(whole) or mean_of(own) is None:
            continue
        inside = [each.final.low <= each.paper <= each.final.high for each in own if each.paper is not None]
        lines.append([
            variant, mean_of(own), float(np.mean([each.recent for each in own])),
            float(np.mean([each.best for each in own])), paper_mean(variant, whole), PRINTED.get(variant),
            f"{sum(inside)} of {len(inside)}" if inside else "",
        ])  # fmt: skip
    caption = (
        f"Over {len(whole)} dataset{'s' if len(whole) > 1 else ''}. Last three: the mean of the last three "
        "evaluations. Best: the highest evaluation of each dataset, chosen after the fact. Printed: the paper's own "
        "average of all eighteen. In the interval: datasets on which the paper's score lies in ours."
    )
    head = ("method", "final", "last three", "best", "the paper, same datasets", "printed", "in the interval")
    return table("Averages", caption, head, lines).markdown().strip()


def means(gaps: Sequence[Difference]) -> str:
    """SA-CQL minus each control over the datasets that both have, with Holm's correction."""
    lines: list[list[Cell]] = []
    others = list(dict.fromkeys(gap.other for gap in gaps))
    own = {
        other: [gap for gap in gaps if gap.other == other and gap.comparison.estimate.freedom > 0] for other in others
    }
    joined = {
        other: Comparison(
            average([gap.comparison.estimate for gap in kept]),
            sum(gap.comparison.pairs for gap in kept),
            all(gap.comparison.paired for gap in kept),
        )
        for other, kept in own.items()
        if kept
    }
    for (other, comparison), corrected in zip(joined.items(), family(list(joined.values())), strict=True):
        count = len(own[other])
        lines.append([
            f"SA-CQL − {other}", count, corrected.raw, ends(corrected.holm), fixed(corrected.holm_p, 3),
            f"{comparison.pairs} pairs" if comparison.paired else "unpaired in part",
        ])  # fmt: skip
    if not lines:
        return ""
    caption = "Means over the datasets on which both have at least two seeds in common or each; Student's intervals."
    head = ("difference", "datasets", "mean (95 % interval)", "with Holm's correction", "Holm's p", "seeds")
    return table("On average", caption, head, lines).markdown().strip()


def diagnostics(experiment: Experiment) -> str:
    """Critics against their limits, TD errors, and how long estimates were unreliable: means over seeds."""
    lines: list[list[Cell]] = []
    for dataset in experiment.datasets:
        for variant in experiment.variants:
            members = experiment.of(dataset, variant)
            if not members:
                continue
            events = [kind for each in members for _, kind in each.events]
            lines.append([
                dataset, variant, len(members), last(members, "critic/value"), last(members, "critic/value_limit"),
                last(members, "critic/td"), number(last(members, "weights/mean")),
                100.0 * float(np.mean([unreliable(each) for each in members])) if variant != "CQL" else "",
                sum(events.count(kind) for kind in (EventKind.VALUE_BEYOND, EventKind.VALUE_STOPPED)),
                events.count(EventKind.TARGETS_LOST), events.count(EventKind.DIVERGED),
            ])  # fmt: skip
    caption = (
        "At the last evaluation, means over seeds: the critics' mean value, the largest that rewards and discount "
        "allow, and the mean squared TD error; the mean weight; the share of the million steps in which the ratio "
        "estimate failed its health checks; and how often values left their limit, critics lost their targets, or a "
        "run diverged."
    )
    head = (
        "dataset", "method", "runs", "value", "limit", "TD error", "mean weight", "% unreliable", "beyond limit",
        "targets lost", "diverged",
    )  # fmt: skip
    return table("Diagnostics", caption, head, lines).markdown().strip()


def last(members: Sequence[Member], name: str) -> float | None:
    """A metric at each member's last row, the mean over members; None where none logged it."""
    values = [each.metrics[name][-1][1] for each in members if each.metrics.get(name)]
    return float(np.mean(values)) if values else None


def number(value: float | None) -> Cell:
    """With two decimals."""
    return None if value is None else cell(value, 2)


def unreliable(member: Member) -> float:
    """The share of its steps in which a member's ratio estimate was unreliable, by its events."""
    end, since, total = max(member.evaluations), None, 0
    for step, kind in sorted(member.events, key=lambda event: event[0]):
        if kind.health is RatioHealth.UNRELIABLE and since is None:
            since = max(0, step)
        elif kind.health is RatioHealth.RELIABLE and since is not None:
            total, since = total + max(0, step) - since, None
    return (total + (end - since if since is not None else 0)) / end


def draw(experiment: Experiment, path: Path) -> None:
    """Learning curves, a panel per dataset: means over seeds with their range, and the paper's two scores as lines."""
    import matplotlib
    from matplotlib.figure import Figure

    columns = 3
    rows = -(-len(experiment.datasets) // columns)
    figure = Figure(figsize=(3.4 * columns, 2.3 * rows), layout="constrained")
    panels: Any = figure.subplots(rows, columns, squeeze=False)
    for index, dataset in enumerate(experiment.datasets):
        axes = panels[index // columns, index % columns]
        for curve in learning_curves(experiment, dataset):
            members = experiment.of(dataset, curve.variant)
            scores = np.array([[each.mean(int(step)) for step in curve.steps] for each in members])
            colour = COLOURS.get(curve.variant, "#555555")
            axes.plot(curve.steps / 1000, curve.mean, color=colour, label=curve.variant, linewidth=1.2)
            axes.fill_between(curve.steps / 1000, scores.min(0), scores.max(0), color=colour, alpha=0.13, linewidth=0)
        for variant in PRINTED:
            value = published("table1", variant, dataset)
            if value is not None:
                axes.axhline(value, color=COLOURS[variant], linestyle=(0, (1, 3)), linewidth=1)
        axes.set_title(dataset, fontsize=8)
        axes.tick_params(labelsize=7)
        axes.grid(alpha=0.25)
    for spare in panels.flat[len(experiment.datasets) :]:
        spare.set_axis_off()
    for axes in panels[-1]:
        axes.set_xlabel("thousand steps", fontsize=7)
    panels[0, 0].legend(fontsize=6)
    with matplotlib.rc_context({"svg.hashsalt": "sapp"}):  # the same rows give the same bytes
        figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Write the page's sections, and its figure where there is something to draw."""
    write_sections(PAGE, sections())
    experiment = experiment_of(STUDY, STUDY.rows)
    if experiment is not None:
        draw(experiment, HERE / FIGURE)


if __name__ == "__main__":
    main()
