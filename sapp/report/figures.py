"""The page's charts as files for papers: PNG and SVG, drawn by matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sapp.core.extras import require
from sapp.core.files import write_aside
from sapp.report.chart import Chart, place

STYLES = ("-", "--", ":", "-.")
COLOURS = (
    "#0b62c4", "#c4320a", "#13795b", "#8a3ffc", "#8a6100", "#a3186b", "#00707a", "#5b6b00", "#6b4a2b", "#3f51b5",
    "#b0005d", "#555555",
)  # fmt: skip


def draw(chart: Chart, path: Path) -> list[Path]:
    """Write ``path`` with the endings .png and .svg."""
    matplotlib = require("matplotlib", "drawing figures")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    axes: Any = figure.subplots()
    for curve in chart.curves:
        number = place(chart.palette, curve.variant)
        colour, style = COLOURS[number], STYLES[(number // 4) % 4]
        axes.plot(curve.steps, curve.mean, style, color=colour, label=curve.variant, linewidth=1.4)
        axes.fill_between(curve.steps, curve.low, curve.high, color=colour, alpha=0.13, linewidth=0)
    for each in chart.references:
        colour = COLOURS[place(chart.palette, each.variant)]
        axes.axhline(each.value, color=colour, linestyle=(0, (1, 3)), linewidth=1)
    if chart.log_y and all((curve.low > 0).all() for curve in chart.curves):
        axes.set_yscale("log")
    axes.set_title(chart.title, fontsize=9)
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    axes.grid(alpha=0.25)
    axes.legend(fontsize=7)
    written = []
    # a fixed salt and no date, so that the same results give the same bytes
    with matplotlib.rc_context({"svg.hashsalt": "sapp"}):
        for ending, extra in (("png", {"dpi": 160}), ("svg", {"metadata": {"Date": None}})):
            file = path.with_name(f"{path.name}.{ending}")
            write_aside(file, lambda t, e=ending, x=extra: figure.savefig(t, format=e, **x))  # type: ignore[misc]
            written.append(file)
    return written
