"""The rows of the study: one per problem, policy, draw of the logs and estimator."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sapp.ope.calibration import EXACT, NETWORKS, students_factor
from sapp.ope.doubly_robust import ESTIMATORS
from sapp.ope.offline import Offline

Row = dict[str, Any]

COLUMNS = (
    "problem", "policy", "draw", "estimator", "truth", "truth_error", "estimate", "low", "high", "verdict", "off_data",
    "effective_episodes", "episodes", "seconds", "spread", "disagreement", "difference", "drift", "outside", "horizons",
    "unhealthy", "scale", "possible_low", "possible_high", "steps", "exact",
)  # fmt: skip
"""``low`` and ``high`` are those of the replicates, before ``sapp.ope.calibration`` widens them."""


def rows_of(problem: str, report: Offline, truth: np.ndarray, error: np.ndarray, draw: int = 0) -> list[dict[str, Any]]:
    """One row per policy and estimator; values are normalised, (1−γ) × discounted return."""
    rows = []
    factor = EXACT if report.settings.exact else NETWORKS
    for policy, name in enumerate(report.names):
        diagnosis = report.diagnoses[policy]
        measures = diagnosis.measures
        assert measures is not None
        for estimator in report.values:
            found = report.interval(policy, estimator)
            wider = (factor if estimator in ESTIMATORS else 1.0) * students_factor(diagnosis.episodes)
            low, high = (found.estimate + (end - found.estimate) / wider for end in (found.low, found.high))
            numbers = (
                problem, name, draw, estimator, truth[policy], error[policy], found.estimate, low, high,
                diagnosis.verdict if estimator == diagnosis.chosen else "", diagnosis.off_data,
                diagnosis.effective_episodes, diagnosis.episodes, report.seconds, report.spread,
                measures.disagreement, measures.difference, measures.drift, measures.outside, measures.horizons,
                measures.unhealthy, measures.scale, *measures.possible, measures.steps, report.settings.exact,
            )  # fmt: skip
            rows.append(dict(zip(COLUMNS, numbers, strict=True)))
    return rows


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """A table of results, numbers to six digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float | np.floating) else v for k, v in row.items()})

def read(folder: Path) -> list[Row]:
    """All rows of a folder of results, numbers as numbers."""
    rows: list[Row] = []
    for file in sorted(folder.glob("*.csv")):
        with file.open(newline="", encoding="utf-8") as handle:
            for row in csv.DictReader(handle):
                rows.append({k: number(v) for k, v in row.items()})
    return rows


def number(text: str) -> Any:
    """A cell as a number where it is one."""
    try:
        return float(text)
    except ValueError:
        return text
