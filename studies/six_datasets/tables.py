"""The study's tables, from its rows and those of the earlier runs: python -m studies.six_datasets.tables"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sapp.core.comparisons import family_told
from sapp.core.statistics import student
from sapp.report.marked_sections import report_sections, write_sections
from sapp.report.report_tables import table
from sapp.report.score_summary import cells
from sapp.report.sources import read

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
ROWS = HERE / "rows" / "scores.csv"
EARLIER = HERE.parent / "medium_datasets" / "rows"
OTHERS = ("CQL", "shuffled", "matched", "random")
MEDIUM = ("halfcheetah-medium", "hopper-medium", "walker2d-medium")


def sections() -> dict[str, str]:
    """The marked sections of the page."""
    return report_sections([ROWS]) | {"both": both()}


def both() -> str:
    """SA-CQL minus its controls over both runs of the same seeds: each counts once, with the mean of its two."""
    sources = ([ROWS], [EARLIER / "hopper", EARLIER / "halfcheetah-walker2d"])
    runs = [
        {(each.dataset.removesuffix("-v2"), each.variant): each.seeds for each in cells(read(paths)[0])}
        for paths in sources
    ]
    found = {
        (dataset, other): student(
            [np.mean([run[dataset, "SA-CQL"][s] - run[dataset, other][s] for run in runs]) for s in (0, 1, 2)]
        )
        for dataset in MEDIUM
        for other in OTHERS
    }
    lines = [[dataset, *(found[dataset, other].interval() for other in OTHERS)] for dataset in MEDIUM]
    caption = f"SA-CQL minus each control, both runs together. {family_told([each.p for each in found.values()])}"
    return table("Both runs", caption, ("dataset", *OTHERS), lines).markdown().strip()


if __name__ == "__main__":
    write_sections(PAGE, sections())
