"""Learning curves of an online run, from its evaluations.csv.

python -m studies.benchmark_data.curves RUN curves.png
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sapp.collect.online_run import EVALUATIONS
from sapp.core.errors import SappError
from sapp.core.files import write_aside
from sapp.runs import metric_tables as tables
from studies.benchmark_data.levels import EXPERT, MEDIUM


def plot(folder: str | Path, path: str | Path) -> Path:
    """Returns (or normalised scores) of every snapshot of every seed, an axis per environment.

    Args:
        folder: of the run, or any that holds its evaluations.csv.
        path: of the picture.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    file = Path(folder) / EVALUATIONS
    if not file.is_file():
        raise SappError(f"{folder}: no {EVALUATIONS}; evaluate the run's snapshots first")
    rows = tables.read(file)
    members = list(dict.fromkeys(row["member"] for row in rows))
    environments = list(dict.fromkeys(member.rpartition("/")[0] for member in members))
    figure = Figure(figsize=(4.6 * len(environments), 3.9), layout="constrained")
    FigureCanvasAgg(figure)  # a canvas of its own: pyplot would keep global state
    for axis, environment in zip(figure.subplots(1, len(environments), squeeze=False)[0], environments, strict=True):
        own = [member for member in members if member.rpartition("/")[0] == environment]
        _draw(axis, environment, {member: [row for row in rows if row["member"] == member] for member in own})
    target = Path(path)
    write_aside(target, lambda aside: figure.savefig(aside, format=target.suffix.lstrip(".") or "png", dpi=130))
    return target


def _draw(axis: Any, environment: str, members: dict[str, list[dict[str, str]]]) -> None:
    scored = all(row["stochastic_score"] for rows in members.values() for row in rows)
    unit = "score" if scored else "mean"
    for number, (member, rows) in enumerate(members.items()):
        steps = [int(row["step"]) / 1e6 for row in rows]
        seed = member.rpartition("/")[2]
        axis.plot(steps, [float(row[f"stochastic_{unit}"]) for row in rows], color=f"C{number}", label=f"seed {seed}")
        axis.plot(steps, [float(row[f"deterministic_{unit}"]) for row in rows], color=f"C{number}", linewidth=0.7,
                  linestyle="--", alpha=0.7)  # fmt: skip
    if scored and environment in EXPERT:
        for level, name in ((EXPERT[environment], "expert"), (MEDIUM[environment], "medium")):
            axis.axhline(level, color="#666666", linewidth=1, linestyle=":")
            axis.annotate(name, (1.0, level), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=8)
    axis.set(title=environment, xlabel="environment steps (millions)",
             ylabel="normalised score" if scored else "return")  # fmt: skip
    axis.legend(frameon=False, fontsize=8, title="solid: stochastic\ndashed: deterministic", title_fontsize=7)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


def main(arguments: Sequence[str]) -> None:
    """Draw the curves of the run that is named first into the file that is named second."""
    if len(arguments) != 2:
        raise SystemExit(__doc__)
    print(plot(*arguments))


if __name__ == "__main__":
    main(sys.argv[1:])
