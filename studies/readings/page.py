"""The tables of the page, from the study's rows and those of Table 1: python -m studies.readings.page"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sapp.core.comparisons import Comparison, compare, family
from sapp.core.statistics import average, student
from sapp.experiments import text_store
from sapp.experiments.paper import published
from sapp.experiments.parts import done
from sapp.report.marked_sections import write_sections
from sapp.report.records import Experiment
from sapp.report.report_tables import Cell, best, cell, ends, fixed, table
from sapp.report.sources import read
from studies.readings.grid import ALPHAS, LITERAL, MEAN, NARROW, RANGE, WEIGHTS
from studies.readings.part import STEPS, STUDY

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
TABLE1 = HERE.parent / "table1" / "rows"
CQLS = tuple(f"CQL α={alpha:g}" for alpha in ALPHAS)
BASE = ("CQL", "SA-CQL", "matched")
"""From Table 1's runs, at the same step."""
Scores = dict[tuple[str, str], dict[int, float]]
"""By dataset and variant: by seed, the mean over episodes."""


@dataclass(frozen=True)
class Question:
    """What is compared, where: one family of differences."""

    name: str
    title: str
    datasets: tuple[str, ...]
    variants: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]


QUESTIONS = (
    Question(
        "range", "The range of weights", RANGE, (*BASE, "upper", "upper matched", LITERAL, MEAN),
        (("SA-CQL", "upper"), ("SA-CQL", "matched"), ("upper", "upper matched"), ("upper", LITERAL), (LITERAL, MEAN)),
    ),
    Question(
        "weights", "What the weights are", WEIGHTS,
        (*BASE, "zeta", "zeta shuffled", "zeta matched", "density", "density shuffled", "density matched"),
        (
            ("SA-CQL", "matched"), ("zeta", "SA-CQL"), ("zeta", "zeta shuffled"), ("zeta", "zeta matched"),
            ("density", "SA-CQL"), ("density", "density shuffled"), ("density", "density matched"),
        ),
    ),
    Question(
        "alpha", "A larger α in place of b1 = 5", NARROW, (*BASE, *CQLS),
        (("SA-CQL", "CQL"), ("SA-CQL", "matched"), *(("SA-CQL", name) for name in CQLS)),
    ),
)  # fmt: skip


def sections(rows: Path = STUDY.rows, table1: Path = TABLE1, *, rehearse: bool = False) -> dict[str, str]:
    """The marked sections of the page: nothing of a question of which no run is there."""
    steps = STUDY.whole(rehearse).scale.steps
    made = scores(rows, table1, STUDY.whole(rehearse).name, steps)
    found = {"standing": standing(rows, rehearse=rehearse)}
    for each in QUESTIONS:
        own = {place: seeds for place, seeds in made.items() if place[0] in each.datasets and place[1] in each.variants}
        asked = any(variant not in BASE for _, variant in own)
        found[each.name] = score_table(each, own) if asked else ""
        found[f"{each.name}-differences"] = difference_table(each, own) if asked else ""
    return found


def standing(rows: Path, *, rehearse: bool = False) -> str:
    """How many runs are done."""
    wanted = [run for part in STUDY.parts for run in part.members]
    there = done(rows, STUDY.whole(rehearse))
    counts = {}
    for each in QUESTIONS:
        own = [run for run in wanted if run.dataset in each.datasets and run.algorithm in each.variants]
        counts[each.title] = f"{sum(run in there for run in own)} of {len(own)}"
    told = "; ".join(f"{title}: {count}" for title, count in counts.items())
    told = re.sub("; [A-Z]", lambda found: found[0].lower(), told)
    return f"**{len(there & set(wanted))} of {len(wanted)} runs** of this study are done. {told}."


def scores(rows: Path, table1: Path, name: str, steps: int) -> Scores:
    """Scores at the study's last step, of its own runs and of Table 1's."""
    found: Scores = {}
    for experiment in experiments(rows, name) + experiments(table1, "table1"):
        for member in experiment.members:
            if steps in member.evaluations:
                seeds = found.setdefault((member.dataset, member.variant), {})
                seeds[member.seed] = member.mean(steps)
    return found


def experiments(rows: Path, name: str) -> list[Experiment]:
    """The experiment of a name in a folder of rows, at whatever scale."""
    return [each for each in read([rows]) if each.name == name] if text_store.is_text_store(rows) else []


def score_table(asked: Question, made: Scores) -> str:
    """Scores by dataset, the paper's beside them, and the average of datasets that have all."""
    variants = [name for name in asked.variants if any(variant == name for _, variant in made)]
    lines: list[list[Cell]] = []
    for dataset in asked.datasets:
        mine = [student(list(made[dataset, name].values())).interval() if (dataset, name) in made else None
                for name in variants]  # fmt: skip
        paper = [cell(published("table1", name, dataset)) for name in ("CQL", "SA-CQL")]
        lines.append([dataset, *best([cell(each) for each in mine]), *paper])
    caption = (
        f"At {STEPS:,} steps of all together, means over seeds with Student's 95 % intervals; the two best in bold. "
        "The paper's are after a million."
    )
    head = ("dataset", *variants, "CQL, the paper", "SA-CQL, the paper")
    return table(asked.title, caption, head, lines).markdown().strip()


def difference_table(asked: Question, made: Scores) -> str:
    """Differences by dataset, and their means over the datasets, each a family with Holm's correction."""
    single: dict[tuple[str, str, str], Comparison] = {}
    for first, second in asked.pairs:
        for dataset in asked.datasets:
            if (dataset, first) in made and (dataset, second) in made:
                single[first, second, dataset] = compare(made[dataset, first], made[dataset, second])
    joined: dict[tuple[str, str, str], Comparison] = {}
    for first, second in asked.pairs:
        own = [each for key, each in single.items() if key[:2] == (first, second) and each.estimate.freedom > 0]
        if len(own) > 1:
            estimate = average([each.estimate for each in own])
            pairs = sum(each.pairs for each in own)
            joined[first, second, f"mean of {len(own)}"] = Comparison(estimate, pairs, all(o.paired for o in own))
    lines: list[list[Cell]] = []
    for group in (single, joined):
        for (first, second, where), corrected in zip(group, family(list(group.values())), strict=True):
            lines.append([f"{first} − {second}", where, corrected.raw, ends(corrected.holm), fixed_p(corrected.holm_p)])
    if not lines:
        return ""
    caption = (
        "Paired by seed where both have the same, else Welch's; Holm's correction over the differences by dataset, "
        "and over the means."
    )
    head = ("difference", "dataset", "(95 % interval)", "with Holm's correction", "Holm's p")
    return table("Differences", caption, head, lines).markdown().strip()


def fixed_p(value: float) -> Any:
    """A p-value; nothing where there is none."""
    return fixed(value, 3) if value == value else ""


if __name__ == "__main__":
    write_sections(PAGE, sections())
