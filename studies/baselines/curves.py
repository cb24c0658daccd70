"""Learning curves of several columns as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from sapp.core.files import write_aside

Curve = Sequence[tuple[int, float]]
"""(steps, value) of one seed."""
Panel = Mapping[str, Mapping[int, Curve]]
"""Curves by column and seed."""


def colours(rows: Sequence[Mapping[str, Panel]]) -> dict[str, str]:
    """A colour a column, the same in all panels, also where a panel lacks some of them."""
    names = dict.fromkeys(name for panels in rows for columns in panels.values() for name in columns)
    return {name: f"C{number}" for number, name in enumerate(names)}


def draw(rows: Sequence[Mapping[str, Panel]], path: Path, across: str, up: str) -> None:
    """Rows of titled panels, a colour a column: the mean over seeds and their range, where all seeds were played.

    A machine lent for training may lack matplotlib: then nothing is drawn.
    """
    if find_spec("matplotlib") is None:
        return
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    width = max(len(row) for row in rows)
    figure = Figure(figsize=(4.2 * width, 3.6 * len(rows)), layout="constrained")
    FigureCanvasAgg(figure)  # a canvas of its own: pyplot would keep global state
    axes = figure.subplots(len(rows), width, squeeze=False)
    colour = colours(rows)
    for panels, places in zip(rows, axes, strict=True):
        shown = {}
        for axis, (title, columns) in zip(places, panels.items(), strict=False):
            for name, seeds in columns.items():
                steps = sorted(set.intersection(*({at for at, _ in curve} for curve in seeds.values())))
                values = np.array([[dict(curve)[at] for at in steps] for curve in seeds.values()])
                thousands = np.array(steps) / 1e3
                (shown[name],) = axis.plot(thousands, values.mean(0), color=colour[name], marker=".")
                axis.fill_between(thousands, values.min(0), values.max(0), color=colour[name], alpha=0.12, linewidth=0)
            axis.set(title=title, xlabel=f"{across} (thousands)", ylabel=up)
            axis.grid(alpha=0.3)
        places[0].legend(list(shown.values()), list(shown), fontsize=8)
    write_aside(path, lambda aside: figure.savefig(aside, format="png", dpi=80))
