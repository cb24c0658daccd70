"""The tables and the figure of the experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sapp.core.comparisons import alone_only
from sapp.core.errors import SappError
from sapp.core.statistics import Estimate, Interval
from sapp.report.report_tables import Entry, Table, family_caption, family_cell, table
from sapp.tabular.mdp import Floats
from studies.sepsis.experiment import Summary, summarise
from studies.sepsis.methods import METHODS, REFERENCES
from studies.sepsis.rows import Row


def label(method: str) -> str:
    """How a method is called in tables and figures."""
    return METHODS.get(method) or REFERENCES[method]


def tables(summary: Sequence[Summary]) -> list[Table]:
    """One table per size of the log; suboptimality and its difference to PP in thousandths.

    Differences of all methods and sizes are one family; those that Holm's correction takes away are marked.
    """
    compared = [each for each in summary if each.method in METHODS]
    gaps = {(each.size, each.method): each.against_pp.p for each in compared if each.against_pp is not None}
    fallen = {key for key, falls in zip(gaps, alone_only(list(gaps.values())), strict=True) if falls}
    told = f" Student's 95 % intervals. {family_caption(list(gaps.values()), 'differences of methods over all sizes')}"
    found = []
    for size in sorted({line.size for line in summary}):
        lines = [line for line in summary if line.size == size]
        rows = [
            (
                label(line.method), f"{line.alpha:g}" if line.alpha else "–", _thousandths(line.suboptimality),
                _thousandths(line.against_pp, (size, line.method) in fallen),
            )
            for line in lines
        ]
        head = ("method", "α (tuned)", "suboptimality ×10³", "minus PP ×10³")
        caption = f"{lines[0].logs} logs.{'' if found else told}"
        found.append(table(f"{size:,} transitions", caption, head, rows, digits=2))
    return found


def _thousandths(found: Estimate | None, fallen: bool = False) -> Entry | str:
    return "–" if found is None else family_cell(Interval(*(1e3 * value for value in found.interval())), fallen, 2)


COLOURS = {
    "none": "#9a9a9a", "pp": "#1f1f1f", "w": "#c8102e", "sqrt-w": "#e8743b", "clipped-w": "#e0a100",
    "w-held": "#ff7f9e", "log-min-max": "#8c3fa0", "random": "#74b3ce", "shuffled": "#2a6f97", "count": "#2e8b57",
}

def plot(path: str | Path, rows: Sequence[Row]) -> None:
    """Suboptimality against the size of the log, paired differences to PP, and the tuning curves, as one figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator

    summary = summarise(rows)
    if not summary:
        raise SappError("there are no evaluation rows to plot: run the experiment first")
    sizes = sorted({line.size for line in summary})
    methods = [name for name in METHODS if any(line.method == name for line in summary)]
    by = {(line.size, line.method): line for line in summary}
    figure = Figure(figsize=(14, 5.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1.25, 1))
    for place, name in enumerate(methods):
        kept = [size for size in sizes if (size, name) in by]
        shift = 1.035 ** (place - (len(methods) - 1) / 2)
        lost = [by[size, name].suboptimality.interval() for size in kept]
        _errors(left, np.array(kept) * shift, lost, name, line=True)
        others = [(i, by[size, name].against_pp) for i, size in enumerate(sizes) if (size, name) in by]
        offset = 0.085 * (place - (len(methods) - 1) / 2)
        drawn = [(i + offset, difference.interval()) for i, difference in others if difference is not None]
        if drawn:
            _errors(middle, np.array([x for x, _ in drawn]), [d for _, d in drawn], name, line=False)
    if (sizes[0], "clinicians") in by:
        left.axhline(1e3 * by[sizes[0], "clinicians"].suboptimality.value, color="#555555", ls=":", lw=1.2,
                     label=REFERENCES["clinicians"])
    left.set(xscale="log", xlabel="transitions in the log", ylabel="suboptimality ⟨ρ, V* − V⟩ × 1000")
    left.set_ylim(bottom=0)
    left.set_title("what is lost", loc="left")
    middle.axhline(0, color="#1f1f1f", lw=1)
    middle.set_xticks(range(len(sizes)), [_power(size) for size in sizes])
    middle.set(xlabel="transitions in the log", ylabel="suboptimality minus PP's on the same logs × 1000")
    middle.set_yscale("symlog", linthresh=1.0, linscale=1.0)
    differences = [line.against_pp.interval() for line in summary if line.against_pp and line.method in METHODS]
    ends = [1e3 * x for interval in differences for x in interval[1:]]
    ticks = [sign * size for size in (1, 2, 5, 10, 20, 50) for sign in (-1, 1)]
    low, high = 1.4 * min(ends, default=-1.0), 1.4 * max(ends, default=1.0)
    middle.set_yticks([0, *(tick for tick in ticks if low < tick < high)])
    middle.set_ylim(min(low, -0.2), max(high, 0.2))
    middle.yaxis.set_major_formatter(lambda value, _: f"{value:+g}" if value else "0")
    middle.yaxis.set_minor_locator(NullLocator())
    middle.set_title("against PP (below 0: better)", loc="left")
    size = sizes[len(sizes) // 2]
    for name in methods:
        points: dict[float, list[float]] = {}
        for row in rows:
            if row.role == "tuning" and row.size == size and row.method == name:
                points.setdefault(row.alpha, []).append(row.suboptimality)
        if name == "none" and points:
            right.axhline(1e3 * np.mean(points[0.0]), color=COLOURS[name], lw=1.5)
        elif points:
            grid = sorted(points)
            right.plot(grid, [1e3 * np.mean(points[alpha]) for alpha in grid], "o-", ms=3, lw=1.5, color=COLOURS[name])
    right.set(xscale="log", xlabel="α at mean weight 1 (counts: C)", ylabel="mean suboptimality × 1000, tuning logs")
    right.set_title(f"tuning at {_power(size)} transitions", loc="left")
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.2)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    figure.savefig(Path(path), dpi=150)

def _power(size: int) -> str:
    exponent = np.log10(size)
    return f"$10^{{{exponent:.0f}}}$" if exponent == round(exponent) else f"{size:,}"

def _errors(axes: Any, x: Floats, intervals: Sequence[Interval], name: str, line: bool) -> None:
    low, middle, high = (1e3 * np.array([i[k] for i in intervals]) for k in (1, 0, 2))
    axes.errorbar(
        x, middle, yerr=np.maximum([middle - low, high - middle], 0), fmt="o-" if line else "o", ms=4, lw=1.4,
        capsize=2, color=COLOURS[name], label=METHODS[name],
    )
