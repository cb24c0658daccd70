"""The study's tables, from its rows: python -m studies.baselines.tables"""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np

from sapp.core.comparisons import family_told
from sapp.core.statistics import Estimate, student
from sapp.data.normalised_scores import normalized_score
from sapp.report.marked_sections import write_sections
from sapp.report.report_tables import Cell, table

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
DATASETS = ("halfcheetah-medium-v2", "hopper-medium-v2", "walker2d-medium-v2")
HEAD = tuple(name.removesuffix("-v2") for name in DATASETS)
METHODS = {
    "TD3+BC": ("td3bc", "td3bc+iql"), "IQL": ("iql", "td3bc+iql"), "ReBRAC": ("rebrac", "rebrac"),
    "BC": ("bc", "bc+bcq"), "BCQ": ("bcq", "bc+bcq"), "Fisher-BRC": ("fisher-brc", "sa-fisher-brc"),
    "BRAC-v (KL, α = 5)": ("brac", "sa-brac"), "UWAC": ("uwac", "uwac"), "BEAR": ("bear", "sa-bear"),
    "SAC-N": ("sac-n", "sac-n"), "EDAC": ("edac", "edac"), "BRAC-p (KL, α = 5)": ("brac-p", "cpu-brac-p"),
    "brac-mmd (α = 500, policy only)": ("brac-mmd", "cpu-brac-mmd"),
    "brac-mmd, in the values too": ("brac-mmd", "cpu-in-values-brac-mmd"),
}  # fmt: skip
"""What the page calls a method, its name in the rows, and its run; a longer run hopper-NAME takes that run's place."""
PUBLISHED = {
    "TD3+BC": ("CORL, 1M", "48.1", "60.4", "82.7"), "IQL": ("CORL, 1M", "48.3", "67.5", "80.9"),
    "ReBRAC": ("CORL, 1M", "64.0", "102.3", "85.8"), "BC": ("CORL, 1M", "42.4", "53.5", "63.2"),
    "BCQ": ("robomimic, 1M", "46.8", "63.9", "74.6"), "Fisher-BRC": ("the SA-PP paper, 1M", "48.3", "90.9", "81.7"),
    "UWAC": ("the SA-PP paper, 1M", "42.0", "49.7", "78.3"), "BEAR": ("the SA-PP paper, 1M", "42.0", "49.5", "74.6"),
    "SAC-N": ("CORL, 3M", "68.2", "40.8", "87.5"), "EDAC": ("CORL, 3M", "67.7", "101.7", "93.4"),
}  # fmt: skip
"""Whose, and the scores that they print."""
STATE_AWARE = {"TD3+BC": "td3bc", "BRAC": "brac", "Fisher-BRC": "fisher-brc", "BEAR": "bear"}
Scores = dict[tuple[str, str, str], dict[int, dict[int, float]]]
"""By run, method and dataset: by step, by seed, the mean over episodes."""


def scores() -> Scores:
    """The rows as normalised scores."""
    found: Scores = defaultdict(lambda: defaultdict(dict))
    with open(HERE / "rows" / "scores.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            returns = np.array([float(value) for value in row["returns"].split(";")])
            score = float(normalized_score(row["dataset"].split("-")[0], returns).mean())
            found[row["run"], row["method"], row["dataset"]][int(row["step"])][int(row["seed"])] = score
    return found


def sections() -> dict[str, str]:
    """The marked sections of the page."""
    made = scores()
    return {"scores": finals(made), "climb": climb(made), "state-aware": state_aware(made)}


def of(made: Scores, method: str, run: str, dataset: str) -> dict[int, dict[int, float]]:
    """By step and seed, from the run that went furthest."""
    longer = made.get((f"hopper-{method}", method, dataset), {})
    return longer if dataset.startswith("hopper") and longer else made.get((run, method, dataset), {})


def finals(made: Scores) -> str:
    """Final scores beside the published ones."""
    lines: list[list[str]] = []
    for name, (method, run) in METHODS.items():
        found = [of(made, method, run, dataset) for dataset in DATASETS]
        steps = [f"{max(each) / 1000:,.0f}k" if each else "–" for each in found]
        cells = []
        for each in found:
            seeds = [each[max(each)][seed] for seed in sorted(each[max(each)])] if each else []
            mean, low, high = student(seeds).interval() if seeds else (0.0, 0.0, 0.0)
            told = " ".join(f"{value:.1f}" for value in seeds)
            cells.append(f"{mean:.1f} ({low:.1f} to {high:.1f})<br>{told}" if seeds else "")
        same = steps[0] if len(set(steps)) == 1 else "; ".join(steps)
        lines.append([name, same, *(cell.replace("-", "−") for cell in cells)])
        if name in PUBLISHED:
            source, *values = PUBLISHED[name]
            lines.append([f"{source.split(',')[0]}", source.split(", ")[1], *values])
    caption = (
        "Final normalised scores with Student's 95 % intervals over three seeds, then each seed; below them the "
        "published scores. Steps are listed by dataset where they differ."
    )
    return table("Scores", caption, ("method", "steps", *HEAD), lines).markdown().strip()


def climb(made: Scores) -> str:
    """EDAC and SAC-N along training, means over seeds."""
    steps = (50, 100, 150, 200, 300, 400, 500, 600, 700, 800, 900, 1000)
    lines = []
    for method in ("edac", "sac-n"):
        for dataset in DATASETS:
            found = of(made, method, method, dataset)
            values = [found.get(1000 * step, {}).values() for step in steps]
            if any(values):
                cells = [f"{np.mean(list(each)):.1f}".replace("-", "−") if each else "" for each in values]
                lines.append([f"{method.upper()}, {dataset.split('-')[0]}", *cells])
    head = ("thousand steps", *(f"{step:,}" for step in steps))
    return table("During training", "Mean scores over seeds.", head, lines).markdown().strip()


def state_aware(made: Scores) -> str:
    """State-aware variants minus the plain algorithm and their controls, at the last step that all have."""
    gaps: dict[tuple[str, str], dict[str, Estimate]] = {}
    for name, plain in STATE_AWARE.items():
        run = f"sa-{plain}"
        for label, other in (("plain", plain), ("matched", f"matched-{run}"), ("shuffled", f"shuffled-{run}")):
            row = {}
            for dataset in DATASETS:
                mine, theirs = made.get((run, run, dataset), {}), made.get((run, other, dataset), {})
                if mine and theirs:
                    step = max(set(mine) & set(theirs))
                    row[dataset] = student([mine[step][seed] - theirs[step][seed] for seed in sorted(mine[step])])
            gaps[name, label] = row
    each = [gap.p for row in gaps.values() for gap in row.values()]
    lines: list[list[Cell]] = [
        [f"SA-{name} − {label}", *(row[dataset].interval() if dataset in row else "" for dataset in DATASETS)]
        for (name, label), row in gaps.items()
    ]
    caption = f"Paired by seed, Student's 95 % intervals. {family_told(each)}"
    return table("State-aware variants", caption, ("difference", *HEAD), lines).markdown().strip()


if __name__ == "__main__":
    write_sections(PAGE, sections())
