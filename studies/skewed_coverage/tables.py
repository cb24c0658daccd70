"""The study's tables, from its rows: python -m studies.skewed_coverage.tables"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from sapp.core.comparisons import family_told, holm
from sapp.core.statistics import Estimate, average, student
from sapp.report.marked_sections import report_sections, write_sections
from sapp.report.records import Experiment
from sapp.report.report_tables import table
from sapp.report.sources import read

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
ROWS = HERE / "rows"
DATASETS = (
    "halfcheetah-medium-v2", "hopper-medium-v2", "walker2d-medium-v2", "halfcheetah-random95-medium5",
    "hopper-random95-medium5",
)  # fmt: skip
ESTIMATORS = ("occupancy", "infonce", "dualdice")
SEEDS = (0, 1, 2, 3, 4)
Gaps = Mapping[tuple[str, str], list[Estimate]]
"""Paired differences by estimator and what it is compared with, one per dataset."""


def sections() -> dict[str, str]:
    """The marked sections of the page."""
    (experiment,) = read([ROWS / "scores.csv"])
    final, late = (gaps(experiment, share) for share in (None, 0.5))
    return {
        "layout": report_sections([ROWS / "scores.csv"])["layout"],
        "late": differences(late, "the mean of the evaluations in the second half of training"),
        "final": differences(final, "the last evaluation"),
        "critics": critics(),
    }


def score(experiment: Experiment, dataset: str, variant: str, seed: int, last: int, share: float | None) -> float:
    """A run's score at its last step, or the mean over the later share of its evaluations up to there."""
    (member,) = (each for each in experiment.of(dataset, variant) if each.seed == seed)
    steps = [step for step in sorted(member.evaluations) if step <= last]
    late = steps[-1:] if share is None else steps[int(len(steps) * share) :]
    return float(np.mean([member.mean(step) for step in late]))


def gaps(experiment: Experiment, share: float | None) -> Gaps:
    """Each estimator at its own last step minus CQL and its controls, paired by seed."""
    found: dict[tuple[str, str], list[Estimate]] = defaultdict(list)
    for name in ESTIMATORS:
        for other in ("CQL", "random", f"{name}-shuffled", f"{name}-frozen"):
            for dataset in DATASETS:
                last = min(max(each.evaluations) for each in experiment.of(dataset, name))
                values = [
                    score(experiment, dataset, name, seed, last, share)
                    - score(experiment, dataset, other, seed, last, share)
                    for seed in SEEDS
                ]
                found[name, other.removeprefix(f"{name}-")].append(student(values))
    return found


def differences(found: Gaps, what: str) -> str:
    """By dataset and over all five, with the p-values of the means and Holm's correction over them."""
    means = {key: average(each) for key, each in found.items()}
    corrected = dict(zip(means, holm([each.p for each in means.values()]), strict=True))
    lines = [
        [f"{name} − {other}", *(each.interval() for each in found[name, other]), means[name, other].interval(),
         f"{means[name, other].p:.3f}", f"{corrected[name, other]:.2f}"]
        for name, other in found
    ]  # fmt: skip
    told = family_told([each.p for row in found.values() for each in row], "differences by dataset")
    caption = f"Differences of {what}. {told} p is that of the mean of five, Holm's over the {len(means)} means."
    head = ("SA-CQL with", *(name.removesuffix("-v2") for name in DATASETS), "mean of five", "p", "Holm's p")
    return table("Differences", caption, head, lines).markdown().strip()


def critics() -> str:
    """Mean squared TD error and mean value over the joint steps that all have, relative to CQL's of the same seed."""
    sums: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for name in ("common", *ESTIMATORS):
        with open(ROWS / "metrics" / f"{name}.csv", encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["phase"] == "joint" and int(row["step"]) <= 40_000:
                    both = float(row["critic/td"]), float(row["critic/value"])
                    sums[row["algorithm"], row["dataset"], row["seed"]].append(both)
    means = {key: np.mean(values, 0) for key, values in sums.items()}
    variants = ("random", *(f"{name}{end}" for name in ESTIMATORS for end in ("", "-shuffled", "-frozen")))
    changes: dict[tuple[str, str, int], Estimate] = {}
    for variant in variants:
        for dataset in DATASETS:
            plain, own = (np.array([means[name, dataset, str(seed)] for seed in SEEDS]) for name in ("CQL", variant))
            changes |= {(variant, dataset, what): student(100 * (own / plain - 1)[:, what]) for what in (0, 1)}
    p = [each.p for each in changes.values()]
    stands = {key: corrected < 0.05 for key, corrected in zip(changes, holm(p), strict=True)}
    lines = []
    for variant in variants:
        cells = []
        for dataset in DATASETS:
            td, value = (
                f"{changes[variant, dataset, what].value:+.0f}{unit}{'‡' if stands[variant, dataset, what] else ''}"
                for what, unit in enumerate((" %", ""))
            )
            cells.append(f"{td} ({value})".replace("-", "−"))
        lines.append([variant, *cells])
    caption = (
        "Mean squared TD error, in brackets mean value, over 40,000 joint steps: change from CQL's in percent, mean of "
        f"five seeds. Same batches, same seeds. {family_told(p, 'changes')} ‡: after it."
    )
    head = ("weights", *(name.removesuffix("-v2") for name in DATASETS))
    return table("Critics", caption, head, lines).markdown().strip()


if __name__ == "__main__":
    write_sections(PAGE, sections())
