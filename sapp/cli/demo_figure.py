"""The demonstration's figure: where data are and where policies go, and what each way of being pessimistic costs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sapp.cli.demo_problem import EVEN, UNEVEN, VARIANTS
from sapp.core.extras import require
from sapp.core.figures import write_figure
from sapp.core.statistics import student

if TYPE_CHECKING:
    from sapp.tabular.uneven_coverage import Floats, World

COLOURS = {"CQL": "#4c78a8", "SA-CQL": "#e45756", "shuffled": "#9a9a9a"}
LABELS = {
    "CQL": "CQL\nequally pessimistic\nin every state",
    "SA-CQL": "SA-CQL\nmore pessimistic in\nrarely logged states",
    "shuffled": "control: shuffled\nSA-CQL's weights\nat the wrong states",
}
Regrets = Mapping[str, Mapping[str, "Floats"]]


def draw(world: World, exact: Regrets, learned: Regrets, path: Path) -> Path:
    """Draw the data of one world, and regrets in both cases.

    Args:
        world: of uneven coverage.
        exact: regret [worlds] by case and variant, of the exact minimiser.
        learned: the same of networks.
        path: a PNG file.
    """
    require("matplotlib", "drawing figures")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.4, 4.9), layout="constrained")
    FigureCanvasAgg(figure)  # a canvas of its own: pyplot would pick a back end and keep global state
    data, uneven, even = figure.subplots(1, 3, width_ratios=(0.66, 1, 1))
    _draw_shares(data, world)
    _draw_regrets(uneven, exact[UNEVEN], learned[UNEVEN])
    _draw_regrets(even, exact[EVEN], learned[EVEN])
    uneven.set_title("Data cover states unevenly", fontweight="bold")
    even.set_title("Data cover states evenly", fontweight="bold")
    uneven.set_ylabel("regret, % of a random policy's\n(lower is better)")
    tallest = max(uneven.get_ylim()[1], even.get_ylim()[1])
    for axis in (uneven, even):
        axis.set_ylim(0, tallest)
        axis.legend(frameon=False, loc="upper left", fontsize=9)
    figure.supxlabel(
        "Bars: mean regret over problems, with 95 % intervals. Above them: the difference from CQL, paired by problem "
        "(first line: solved exactly; second: learned).",
        fontsize=9,
    )
    write_figure(figure, path)
    return path


def _draw_shares(axis: Any, world: World) -> None:
    """What share of the data, and of a policy's discounted visits, episodes' first step has, and all later ones."""
    doors = world.data.observation[0].size - int((world.occupancy == world.occupancy[-1]).sum())
    rows = {
        "share of the\nlogged steps": (world.share[:doors].sum(), world.share[doors:].sum()),
        "weight in the\ndiscounted return": (world.occupancy[:doors].sum(), world.occupancy[doors:].sum()),
    }
    for position, values in enumerate(rows.values()):
        bottom = 0.0
        for name, share, colour in zip(("first step", "later steps"), values, ("#f2b701", "#c9d3df"), strict=True):
            axis.bar(
                position, 100 * share, bottom=bottom, color=colour, width=0.8, label=name if not position else None
            )
            axis.text(
                position, bottom + 50 * share, f"{name} {100 * share:.0f} %", ha="center", va="center", fontsize=9
            )
            bottom += 100 * share
    axis.set(ylabel="percent", xlim=(-0.5, 1.5))
    axis.set_title("Uneven: what matters is rarely logged", fontweight="bold", fontsize=11)
    axis.set_xticks(range(len(rows)), list(rows))
    axis.spines[["top", "right"]].set_visible(False)


def _draw_regrets(axis: Any, exact: Mapping[str, Floats], learned: Mapping[str, Floats]) -> None:
    """Means with 95 % intervals over worlds, exact and learned side by side, and differences from CQL above."""
    looks = ((-0.2, exact, 1.0, "white", "solved exactly"), (0.2, learned, 0.45, "#222222", "learned by networks"))
    for offset, regrets, alpha, ink, label in looks:
        for position, name in enumerate(VARIANTS):
            found = student(regrets[name]).interval()
            error = np.maximum([[found.estimate - found.low], [found.high - found.estimate]], 0.0)
            where = position + offset
            axis.bar(where, found.estimate, width=0.36, color=COLOURS[name], alpha=alpha)
            axis.errorbar(where, found.estimate, yerr=error, color="#333333", linewidth=1.2, capsize=3)
            axis.text(where, 0.4, f"{found.estimate:.1f}", ha="center", va="bottom", fontsize=8.5, color=ink)
        axis.bar(0, 0, color="#555555", alpha=alpha, label=label)
    top = max(student(regrets[name]).interval().high for _, regrets, *_ in looks for name in VARIANTS)
    for position, name in enumerate(VARIANTS[1:], start=1):
        gaps = [student(regrets[name] - regrets["CQL"]).interval() for _, regrets, *_ in looks]
        lines = [f"{gap.estimate:+.1f} ({gap.low:+.1f} to {gap.high:+.1f})" for gap in gaps]
        axis.text(position, 1.03 * top, "minus CQL:\n" + "\n".join(lines), ha="center", va="bottom", fontsize=8)
    axis.set_xticks(range(len(VARIANTS)), [LABELS[name] for name in VARIANTS], fontsize=9)
    axis.set_ylim(0, 1.32 * top)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", alpha=0.25)
    axis.set_axisbelow(True)
