"""The tables of the page, from the study's rows: python -m studies.state_ratios.page"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from sapp.report.marked_sections import write_sections
from sapp.report.report_tables import table

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
LABELS = {
    "ceiling": "ceiling", "now": "**OccupancyModel**", "occupancy": "its model before it was fixed",
    "occupancy, half noise": "… half noise", "occupancy, mean model": "… mean model", "infonce": "TD-InfoNCE",
    "dualdice regression": "DualDICE, regression", "dualdice ζ": "DualDICE, ζ", "dualdice ζβ/π": "DualDICE, ζ·β̂/π",
}  # fmt: skip
SHIFTS = (0.0, 1.0, 2.0, 4.0)
Row = dict[str, str]


def rows() -> list[Row]:
    """All rows; those of the estimator as it is now are called so."""
    found = []
    for name, now in (("corridors-pendulum", False), ("occupancy-now", True)):
        with open(HERE / "rows" / f"{name}.csv", encoding="utf-8", newline="") as file:
            found += [row | {"estimator": "now"} if now else row for row in csv.DictReader(file)]
    return found


def cell(made: list[Row], problem: str, estimator: str, shift: float, field: str) -> list[float]:
    """A quantity by seed."""
    return [
        float(row[field])
        for row in made
        if (row["problem"], row["estimator"], float(row["shift"])) == (problem, estimator, shift)
    ]


def sections() -> dict[str, str]:
    """The marked sections of the page: a table per problem."""
    made = rows()
    found = {}
    for problem in ("corridors", "pendulum", "halfcheetah"):
        lines = []
        for estimator, label in LABELS.items():
            by = [cell(made, problem, estimator, shift, "spearman") for shift in SHIFTS]
            if not all(by):
                continue
            weights = (np.mean(cell(made, problem, estimator, shift, "weights")) for shift in SHIFTS)
            lines.append([
                label, *(f"{np.mean(each):.2f} ({min(each):.2f} to {max(each):.2f})".replace("-", "−") for each in by),
                " ".join(f"{value:.2f}" for value in weights).replace("-", "−"),
            ])  # fmt: skip
        head = (problem, *(f"k = {shift:g}" for shift in SHIFTS), "weights' correlation, by k")
        caption = "Mean (lowest to highest of three seeds)."
        found[problem] = table("Spearman's correlation", caption, head, lines).markdown()
    return {name: text.strip() for name, text in found.items()}


if __name__ == "__main__":
    write_sections(PAGE, sections())
