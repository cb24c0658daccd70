"""Table and learning curves of ``studies.medium_datasets.medium``.

    python -m studies.medium_datasets.medium_report runs/medium/joint --out docs/results

Final scores first, best second; differences are paired by seed and start state; intervals draw seeds and episodes anew.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import sapp
from sapp.core.files import write_aside, write_text
from sapp.core.statistics import Interval, seeds_and_episodes
from sapp.data.normalised_scores import normalized_score
from studies.medium_datasets.medium import COLUMNS

PAPER = {"halfcheetah": (52.5, 58.1), "hopper": (74.1, 86.3), "walker2d": (85.4, 87.7)}
"""Table 1 of the paper, medium: CQL and SA-CQL after one million steps."""
Scores = dict[str, dict[str, dict[int, np.ndarray]]]
"""Scores [seeds, episodes] by dataset, column and number of updates."""


def read(runs: Sequence[sapp.Run]) -> Scores:
    """All evaluations of some runs."""
    return gather(row for run in runs for row in run.evaluations())


def gather(rows: Iterable[Mapping[str, str]]) -> Scores:
    """Rows of evaluations.csv as scores by dataset, column and step."""
    found: dict[tuple[str, str, int], dict[int, np.ndarray]] = {}
    for row in rows:
        column, dataset, seed = row["member"].split("/")
        returns = np.array([float(value) for value in row["returns"].split(";")])
        scores = normalized_score(dataset.split("-")[0], returns)
        found.setdefault((dataset, column, int(row["step"])), {})[int(seed)] = scores
    out: Scores = {}
    for (dataset, column, step), by_seed in found.items():
        stacked = np.stack([by_seed[seed] for seed in sorted(by_seed)])
        out.setdefault(dataset, {}).setdefault(column, {})[step] = stacked
    return out


def text(interval: Interval) -> str:
    """An estimate with its interval, which a single seed does not have."""
    ends = f"{interval.low:.1f} to {interval.high:.1f}" if interval.known else "one seed"
    return f"{interval.estimate:.1f} ({ends})"


def table(scores: Scores) -> str:
    """The results as Markdown."""
    lines = []
    for dataset, columns in scores.items():
        last = max(max(steps) for steps in columns.values())
        seeds, episodes = columns["SA-CQL"][last].shape
        paper_cql, paper_sa = PAPER[dataset.split("-")[0]]
        lines += [
            f"### {dataset}, {last:,} joint steps, {seeds} seeds × {episodes} episodes",
            "",
            f"The paper after one million steps: CQL {paper_cql}, SA-CQL {paper_sa}.",
            "",
            "| column | final (95 % interval) | each seed | mean of the last three evaluations | best evaluation "
            "| SA-CQL − column |",
            "|---|---|---|---|---|---|",
        ]
        real = columns["SA-CQL"][last]
        for column in [*COLUMNS, *(name for name in columns if name not in COLUMNS)]:
            steps = columns.get(column, {})
            if last not in steps:
                continue
            final = steps[last]
            recent = np.concatenate([steps[step] for step in sorted(steps)[-3:]], axis=1)
            best = max(float(values.mean()) for values in steps.values())
            paired = column != "SA-CQL" and final.shape == real.shape
            difference = text(seeds_and_episodes(real - final, seed=0)) if paired else ""
            each = " ".join(f"{value:.1f}" for value in final.mean(1))
            lines.append(
                f"| {column} | {text(seeds_and_episodes(final, seed=0))} | {each} | {recent.mean():.1f} | {best:.1f} "
                f"| {difference} |"
            )
        lines.append("")
    return "\n".join(lines)


def draw(scores: Scores, runs: Sequence[sapp.Run], path: Path) -> None:
    """Learning curves (mean and range over seeds), and below them how the ratio estimator fared."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * len(scores) + 1.2, 8.2), layout="constrained")
    axes: Any = figure.subplots(3, len(scores), squeeze=False)
    metrics = [row for run in runs for row in run.metrics()]
    for number, (dataset, columns) in enumerate(scores.items()):
        for color, (column, steps) in enumerate(columns.items()):
            x = sorted(steps)
            y = np.array([steps[step].mean(1) for step in x])
            axes[0][number].plot(x, y.mean(1), label=column, color=f"C{color}")
            axes[0][number].fill_between(x, y.min(1), y.max(1), color=f"C{color}", alpha=0.12, linewidth=0)
            for row, name in ((1, "weights/mean"), (2, "ratio/ess")):
                if row == 2 and column != "SA-CQL":
                    continue
                curves = _curves(metrics, f"{column}/{dataset}/", name)
                axes[row][number].plot(*curves, color=f"C{color}")
        cql, sa = PAPER[dataset.split("-")[0]]
        axes[0][number].axhline(cql, color="C0", linestyle=":", linewidth=1)
        axes[0][number].axhline(sa, color="C1", linestyle=":", linewidth=1)
        axes[0][number].set_title(f"{dataset}\n(dotted: the paper's CQL and SA-CQL at one million steps)", fontsize=9)
        axes[0][number].set_ylabel("normalised score")
        axes[1][number].set_ylabel("mean state weight")
        axes[2][number].set_ylabel("SA-CQL: effective sample size")
        axes[2][number].set_yscale("log")
        axes[2][number].set_xlabel("joint gradient steps")
    fullest = max(range(len(scores)), key=lambda number: len(list(scores.values())[number]))
    axes[0][fullest].legend(fontsize=8)
    write_aside(path, lambda temporary: figure.savefig(temporary, dpi=130, format="png"))


def _curves(metrics: list[dict[str, str]], prefix: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean over seeds of a metric along training."""
    by_step: dict[int, list[float]] = {}
    for row in metrics:
        if row["member"].startswith(prefix) and row.get(name):
            by_step.setdefault(int(row["step"]), []).append(float(row[name]))
    steps = sorted(by_step)
    return np.array(steps), np.array([np.mean(by_step[step]) for step in steps])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", help="joint run folders")
    parser.add_argument("--out", type=Path, required=True, help="folder for medium-table.md and medium-curves.png")
    options = parser.parse_args()
    runs = [sapp.Run(path) for path in options.runs]
    scores = read(runs)
    write_text(options.out / "medium-table.md", table(scores))
    draw(scores, runs, options.out / "medium-curves.png")
    print(table(scores))


if __name__ == "__main__":
    main()
