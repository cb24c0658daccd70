"""Tables of ``sapp.experiments.skewed``: scores, paired differences from every control, and the estimators' health.

    python -m sapp.experiments.skewed_report runs/skewed

Needs the runs' tables and settings (``*.csv``, ``config.json``), no checkpoints and no data. All is of the last step at
which every column of a dataset was played; *late* is the mean over the evaluations of the second half of the steps
until then, which depends less on the moment. Differences are paired by seed and start state; intervals draw both anew.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

import sapp
from sapp.evaluation.statistics import seeds_and_episodes
from sapp.experiments.medium_report import Scores, read, text
from sapp.experiments.skewed import COMMON, ESTIMATORS, KINDS, PARTS
from sapp.files import write_text
from sapp.training.run import CONFIG

HEALTH = ("weights/std", "weights/max", "weights/unscaled_mean", "ratio/sick", "ratio/clipped", "ratio/ess")
"""Metrics of SA-CQL's own column that say what the weights were like."""


def last_step(columns: Mapping[str, Mapping[int, np.ndarray]]) -> int | None:
    """The last step at which every column was played."""
    common = set.intersection(*(set(steps) for steps in columns.values()))
    return max(common, default=None)


def late(steps: Mapping[int, np.ndarray], last: int) -> np.ndarray:
    """Scores [seeds, episodes], averaged over the evaluations of the second half of the steps until ``last``."""
    return np.mean([scores for step, scores in steps.items() if last < 2 * step <= 2 * last], axis=0)


def pairs(found: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Estimators, each with every column it is compared with."""
    for name in ESTIMATORS:
        if name in found:
            yield from ((name, other) for other in (*KINDS[COMMON], *KINDS[name]) if other != name and other in found)


def scores_table(scores: Scores) -> str:
    """Final and late scores of every column."""
    lines = []
    for dataset, columns in scores.items():
        last = last_step(columns)
        if last is None:
            continue
        seeds, episodes = next(iter(columns.values()))[last].shape
        lines += [
            f"### {dataset}, {last:,} joint steps, {seeds} seeds × {episodes} episodes",
            "",
            "| column | final (95 % interval) | each seed | late |",
            "|---|---|---|---|",
        ]
        for name, steps in columns.items():
            each = " ".join(f"{value:.1f}" for value in steps[last].mean(1))
            final, recent = (text(seeds_and_episodes(x, seed=0)) for x in (steps[last], late(steps, last)))
            lines.append(f"| {name} | {final} | {each} | {recent} |")
        lines.append("")
    return "\n".join(lines)


def differences_table(scores: Scores, final: bool) -> str:
    """SA-CQL minus each control by dataset, and their mean over the datasets."""
    lasts = {dataset: last_step(columns) for dataset, columns in scores.items()}
    sets = {dataset: last for dataset, last in lasts.items() if last is not None}
    lines = [
        f"| SA-CQL with … − column, {'final' if final else 'late'} | {' | '.join(sets)} | mean |",
        "|---|" + "---|" * (len(sets) + 1),
    ]
    everywhere = set.intersection(*(set(scores[dataset]) for dataset in sets))
    for name, other in pairs({each: None for each in everywhere}):
        gaps = []
        for dataset, last in sets.items():
            mine, its = (scores[dataset][each] for each in (name, other))
            gaps.append(mine[last] - its[last] if final else late(mine, last) - late(its, last))
        entries = [text(seeds_and_episodes(gap, seed=0)) for gap in [*gaps, np.mean(gaps, axis=0)]]
        lines.append(f"| {name} − {other} | {' | '.join(entries)} |")
    return "\n".join(lines) + "\n"


def health_table(runs: Sequence[sapp.Run]) -> str:
    """What each estimator's weights were like: means over the joint phase and seeds of SA-CQL's own members."""
    values: dict[tuple[str, str], dict[str, list[float]]] = {}
    for run in runs:
        for row in run.metrics():
            name, dataset, _ = row["member"].split("/")
            if name in ESTIMATORS:
                mine = values.setdefault((name, dataset), {})
                for metric in HEALTH:
                    if row.get(metric):
                        mine.setdefault(metric, []).append(float(row[metric]))
    lines = ["| estimator | dataset | " + " | ".join(HEALTH) + " |", "|---|---|" + "---|" * len(HEALTH)]
    for (name, dataset), mine in values.items():
        entries = [f"{np.mean(mine[metric]):.2f}" if metric in mine else "" for metric in HEALTH]
        lines.append(f"| {name} | {dataset} | {' | '.join(entries)} |")
    return "\n".join(lines) + "\n"


def report(runs: Sequence[sapp.Run]) -> str:
    """Everything as Markdown."""
    scores = read(runs)
    if not any(last_step(columns) is not None for columns in scores.values()):
        return "No dataset has a step yet at which every column was played.\n"
    differences = "\n".join(differences_table(scores, final) for final in (True, False))
    return "\n".join([scores_table(scores), differences, health_table(runs)])


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="what the experiment was given as --out")
    options = parser.parse_args(arguments)
    runs = [sapp.Run(options.out / part) for part in PARTS if (options.out / part / CONFIG).exists()]
    if not runs:
        raise sapp.SappError(f"{options.out}: holds no joint runs yet; train first")
    found = report(runs)
    write_text(options.out / "skewed.md", found)
    print(found)


if __name__ == "__main__":
    main()
