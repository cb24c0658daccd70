"""The demonstration's figure: learning curves, the data, and SA-CQL's weights over states."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sapp.core.extras import require
from sapp.core.figures import write_figure

if TYPE_CHECKING:
    from sapp.data import Dataset
    from sapp.runs.run import Run


def draw(run: Run, dataset: Dataset, weights: np.ndarray, colours: Mapping[str, str], path: Path) -> Path:
    """Draw learning curves, where the data are, and where SA-CQL puts its pessimism.

    Args:
        run: of the demonstration.
        dataset: that it was trained on.
        weights: SA-CQL's at every state of the data.
        colours: of the algorithms, by name.
        path: a PNG file.
    """
    require("matplotlib", "drawing figures")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from sapp.data.normalised_scores import normalized_score

    figure = Figure(figsize=(14, 4.6), layout="constrained")
    FigureCanvasAgg(figure)  # a canvas of its own: pyplot would pick a back end and keep global state
    curves, density, where = figure.subplots(1, 3, width_ratios=(1.15, 1, 1))
    behaviour = float(np.mean(normalized_score("point", dataset.episode_returns)))
    _draw_curves(curves, run, behaviour, colours)
    counts, edges = _binned(dataset, None)
    _draw_map(figure, density, np.where(counts > 0, counts, np.nan), edges, "Where the data are", "transitions", True)
    _draw_paths(where, run)
    mean, _ = _binned(dataset, weights)
    title = "SA-CQL's pessimism (lines: its policies)"
    _draw_map(figure, where, mean, edges, title, "weight f(ω(s)), mean over seeds", False)
    write_figure(figure, path)
    return path


def _draw_curves(axis: Any, run: Run, behaviour: float, colours: Mapping[str, str]) -> None:
    rows = run.evaluations()
    for name, colour in colours.items():
        points: dict[int, list[float]] = {}
        for row in rows:
            if row["algorithm"] == name:
                points.setdefault(int(row["updates"]), []).append(float(row["score_mean"]))
        x, values = list(points), [np.asarray(each) for each in points.values()]
        low, mean, high = ([reduce(each) for each in values] for reduce in (np.min, np.mean, np.max))
        axis.plot(x, mean, color=colour, label=name, linewidth=2, marker="o", markersize=3.5)
        axis.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
    axis.axhline(behaviour, color="#555555", linestyle="--", linewidth=1.2, label="behaviour (the logs)")
    weighted = sum(phase.steps for phase in run.plan.phases if phase.base and not phase.weighted)
    axis.axvline(weighted, color="#999999", linestyle=":", linewidth=1)
    axis.annotate(
        "weights count from here", (weighted, 0.02), xycoords=("data", "axes fraction"), xytext=(4, 0),
        textcoords="offset points", fontsize=8, color="#666666",
    )  # fmt: skip
    axis.set(title="Learning (band: range over seeds)", xlabel="gradient steps", ylabel="normalised score")
    axis.legend(loc="lower right", frameon=False, bbox_to_anchor=(1.0, 0.08))
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)


def _draw_paths(axis: Any, run: Run, episodes: int = 4) -> None:
    """Where the final policies of SA-CQL go."""
    from sapp.envs.point import Point

    for member in (each for each in run.members if each.algorithm == "SA-CQL"):
        point = Point()
        path, active = [point.reset(episodes, seed=1).copy()], np.ones(episodes, bool)
        for _ in range(point.max_episode_steps):
            position, _, terminal = point.step(run.predict(path[-1], member), active)
            path.append(position)
            active &= ~terminal
        axis.plot(*np.stack(path).transpose(2, 0, 1), color="white", linewidth=1.6, alpha=0.9, zorder=2.5)
        axis.plot(*np.stack(path).transpose(2, 0, 1), color="black", linewidth=0.6, alpha=0.9, zorder=2.6)


def _binned(dataset: Dataset, values: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Counts, or the mean of values, in cells of the square; cells without data are NaN in a mean."""
    edges = np.linspace(-1.0, 1.0, 41)
    x, y = dataset.observation[:, 0], dataset.observation[:, 1]
    counts, _, _ = np.histogram2d(y, x, bins=(edges, edges))
    if values is None:
        return counts, edges
    sums, _, _ = np.histogram2d(y, x, bins=(edges, edges), weights=values)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan), edges


def _draw_map(
    figure: Any, axis: Any, values: np.ndarray, edges: np.ndarray, title: str, label: str, logarithmic: bool
) -> None:
    from matplotlib.colors import LogNorm
    from matplotlib.patches import Rectangle

    from sapp.envs.point import GOAL, PIT

    shown = axis.pcolormesh(
        edges, edges, values, cmap="Greys" if logarithmic else "viridis", norm=LogNorm() if logarithmic else None
    )
    figure.colorbar(shown, ax=axis, label=label, shrink=0.9)
    size = PIT[1] - PIT[0]
    axis.add_patch(Rectangle(PIT[0], *size, facecolor="none", edgecolor="#b22222", linewidth=1.5, hatch="///"))
    axis.text(*(PIT[0] + size / 2), "pit", ha="center", va="center", color="#b22222",
              bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5})  # fmt: skip
    axis.plot(*GOAL, marker="*", markersize=13, color="#f2b701", markeredgecolor="black", linestyle="none")
    axis.annotate("start", (-0.9, 0.0), color="black", fontsize=9, ha="center", va="center",
                  bbox={"facecolor": "white", "edgecolor": "#999999", "pad": 1.5, "alpha": 0.85})  # fmt: skip
    axis.annotate("goal", tuple(GOAL), xytext=(-2, 10), textcoords="offset points", fontsize=9, ha="center")
    axis.set(title=title, xlabel="x", ylabel="y", aspect="equal", xlim=(-1, 1), ylim=(-1, 1))
