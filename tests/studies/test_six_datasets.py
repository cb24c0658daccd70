"""The study's tables are what its rows say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sapp.core.statistics import Interval, mean_interval
from sapp.report.records import Experiment
from sapp.report.report_tables import cell
from sapp.report.score_summary import cells, differences, mean_differences
from sapp.report.sources import read

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "studies" / "six_datasets"
OTHERS = ("CQL", "shuffled", "matched", "random")


def told(interval: Interval) -> str:
    return cell(interval).joined


def page() -> list[list[str]]:
    """Cells of all lines of its tables, without bold marks."""
    text = (STUDY / "README.md").read_text(encoding="utf-8").replace("**", "")
    return [[part.strip() for part in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]


@pytest.fixture(scope="module")
def ours() -> Experiment:
    (found,) = read([STUDY / "rows" / "scores.csv"])
    return found


def test_scores_and_differences(ours: Experiment) -> None:
    found = cells(ours)
    gaps = differences(ours, found)
    finals = {(each.dataset, each.variant): told(each.final) for each in found}
    held = {(each.dataset or "mean of six", each.other): told(each.corrected.raw)
            for each in (*gaps, *mean_differences(ours, gaps))}  # fmt: skip
    lines = page()
    for dataset in ours.datasets:
        scores = next(line for line in lines if line[0] == dataset and len(line) == 7)
        assert scores[1:6] == [finals[dataset, variant] for variant in ("CQL", "SA-CQL", *OTHERS[1:])]
    for dataset in (*ours.datasets, "mean of six"):
        line = next(line for line in lines if line[0] == dataset and len(line) == 6)
        assert line[1:5] == [held[dataset, other] for other in OTHERS]
    assert sum(each.corrected.p < 0.05 for each in gaps) == 1
    assert not any(each.corrected.holm_p < 0.05 for each in gaps)


def test_both_runs_of_the_same_seeds_together(ours: Experiment) -> None:
    rows = ROOT / "studies" / "medium_datasets" / "rows"
    (earlier,) = read([rows / "hopper", rows / "halfcheetah-walker2d"])
    both = [cells(each) for each in (ours, earlier)]
    runs = [{(each.dataset.removesuffix("-v2"), each.variant): each.seeds for each in found} for found in both]
    for dataset in ("halfcheetah-medium", "hopper-medium", "walker2d-medium"):
        line = next(line for line in page() if line[0] == dataset and len(line) == 5)
        for text, other in zip(line[1:], OTHERS, strict=True):
            gaps = [[run[dataset, "SA-CQL"][s] - run[dataset, other][s] for run in runs] for s in (0, 1, 2)]
            assert text == told(mean_interval(np.mean(gaps, axis=1)))
