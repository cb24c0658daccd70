"""The tables of the page, from the study's rows: python -m studies.uneven_coverage.page"""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from sapp.core.comparisons import alone_only
from sapp.core.statistics import Interval, student
from sapp.report.marked_sections import write_sections
from sapp.report.report_tables import Cell, family_caption, family_cell, table

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
ROWS = HERE / "rows"
CASES = ("uneven coverage", "even coverage", "ignorant behaviour")


def scaled(interval: Interval) -> Interval:
    """In thousandths."""
    return Interval(*(1e3 * value for value in interval))


def sections() -> dict[str, str]:
    """The marked sections of the page."""
    return {"exact": exact(), "learned": learned()}


def exact() -> str:
    """What the exact minimiser loses, by the way the penalty is spread, in each case."""
    files = [ROWS / f"exact-{case.replace(' ', '-')}.json" for case in CASES]
    records = [json.loads(file.read_text(encoding="utf-8"))["rows"] for file in files]
    gaps = {(place, row["variant"]): row["p"] for place, rows in enumerate(records) for row in rows[1:]}
    fallen = dict(zip(gaps, alone_only(list(gaps.values())), strict=True))
    lines: list[list[Cell]] = []
    for rows in zip(*records, strict=True):
        first = rows[0]["variant"] == records[0][0]["variant"]
        cells: list[Cell] = []
        for place, row in enumerate(rows):
            gap = "" if first else family_cell(scaled(Interval(*row["difference"])), fallen[place, row["variant"]])
            cells += [f"{1e3 * row['lost']:.1f}", gap]
        lines.append([rows[0]["variant"], *cells])
    head = ("penalty spread by", *(text for case in CASES for text in (f"{case}, ‰", "− CQL")))
    caption = (
        "Reward lost per step, in thousandths; α tuned on 200 worlds, tested on 200 others, paired by world. "
        + family_caption(list(gaps.values()))
    )
    return table("Exact", caption, head, lines).markdown().strip()


def learned() -> str:
    """What networks lose on the worlds that α was not tuned on."""
    losses: dict[str, dict[float, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    with open(ROWS / "learned.csv", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            losses[row["column"]][float(row["alpha"])][int(row["world"])] = float(row["lost"])
    grids = {
        name: (sorted(by), np.array([[by[alpha][world] for world in range(400)] for alpha in sorted(by)]))
        for name, by in losses.items()
        if all(len(each) == 400 for each in by.values())
    }
    made = {}
    for name, (alphas, values) in grids.items():
        best = int(values[:, :200].mean(1).argmin())
        made[name] = (alphas[best], values[best, 200:])
    plain = made["CQL"][1]
    given = losses["SA-CQL, DualDICE"]
    alpha, worlds = min(given.items())
    made["SA-CQL, DualDICE"] = (alpha, np.array([worlds[world] for world in range(200, 400)]))
    lines: list[list[Cell]] = []
    gaps = {name: student(values - plain) for name, (_, values) in made.items() if name != "CQL"}
    p = [gap.p for gap in gaps.values()]
    fallen = dict(zip(gaps, alone_only(p), strict=True))
    for name, (alpha, values) in made.items():
        gap = "" if name == "CQL" else family_cell(scaled(gaps[name].interval()), fallen[name])
        lines.append([name, f"{alpha:.3g}", f"{1e3 * values.mean():.1f}", gap])
    caption = (
        "Lost on 200 worlds, α tuned on 200 others (DualDICE's is the true ratio's); differences paired by world. "
        + family_caption(p)
    )
    return table("Networks", caption, ("", "α", "lost, ‰", "− CQL"), lines).markdown().strip()


if __name__ == "__main__":
    write_sections(PAGE, sections())
