"""Tables of ``skewed``: scores, paired differences from every control, and the estimators' health.

    python -m studies.skewed_coverage.skewed_report runs/skewed        # writes skewed.md and skewed.png there

Needs the runs' tables and settings (``*.csv``, ``config.json``), no checkpoints and no data. Scores are of the last
step at which every column of a dataset was played, an estimator's differences of the last one at which all that it is
compared with were: parts that were stopped need not be equally long. *late* is the mean over the evaluations of the
second half of the steps until then, which depends less on the moment. Differences are paired by seed and start state;
intervals draw both anew, that of the mean over datasets is Student's over their seeds.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import sapp
from sapp.core.files import write_text
from sapp.core.statistics import mean_of_groups, seeds_and_episodes
from sapp.runs.run import CONFIG
from studies.baselines.curves import draw
from studies.medium_datasets.medium_report import Scores, read, text
from studies.skewed_coverage.skewed import COMMON, ESTIMATORS, KINDS, PARTS

HEALTH = ("weights/std", "weights/max", "weights/unscaled_mean", "ratio/sick", "ratio/clipped", "ratio/ess")
"""Metrics of SA-CQL's own column that say what the weights were like."""
CRITICS = ("critic/penalty", "critic/td", "critic/value")
"""Metrics of every column that say what its weights did: the penalty before weights, and critics' errors and values."""


def last_step(columns: Mapping[Any, Mapping[int, np.ndarray]]) -> int | None:
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
    lines = [
        f"| SA-CQL with … − column, {'final' if final else 'late'} | joint steps | {' | '.join(scores)} | mean |",
        "|---|---:|" + "---|" * (len(scores) + 1),
    ]
    everywhere = set.intersection(*(set(columns) for columns in scores.values()))
    compared = list(pairs({each: None for each in everywhere}))
    for name, other in compared:
        beside = [name, *(control for estimator, control in compared if estimator == name)]
        last = last_step({(data, each): columns[each] for data, columns in scores.items() for each in beside})
        if last is None:
            continue
        gaps = []
        for columns in scores.values():
            mine, its = columns[name], columns[other]
            gaps.append(mine[last] - its[last] if final else late(mine, last) - late(its, last))
        entries = [text(seeds_and_episodes(gap, seed=0)) for gap in gaps]
        seeds = [gap.mean(1) for gap in gaps]
        entries.append(text(mean_of_groups(seeds)) if len(seeds[0]) > 1 else f"{np.mean(seeds):.1f}")
        lines.append(f"| {name} − {other} | {last:,} | {' | '.join(entries)} |")
    return "\n".join(lines) + "\n"


def _means(runs: Sequence[sapp.Run], names: Sequence[str], last: int) -> dict[tuple[str, str], dict[str, float]]:
    """Means of metrics over seeds and the steps until ``last``, by column and dataset."""
    values: dict[tuple[str, str], dict[str, list[float]]] = {}
    for run in runs:
        for row in run.metrics():
            if int(row["step"]) <= last:
                column, dataset, _ = row["member"].split("/")
                mine = values.setdefault((column, dataset), {})
                for name in names:
                    if row.get(name):
                        mine.setdefault(name, []).append(float(row[name]))
    return {key: {name: float(np.mean(found)) for name, found in mine.items()} for key, mine in values.items()}


def health_table(runs: Sequence[sapp.Run], last: int) -> str:
    """What each estimator's weights were like until ``last``."""
    lines = ["| estimator | dataset | " + " | ".join(HEALTH) + " |", "|---|---|" + "---|" * len(HEALTH)]
    for (name, dataset), mine in _means(runs, HEALTH, last).items():
        if name in ESTIMATORS:
            entries = [f"{mine[metric]:.2f}" if metric in mine else "" for metric in HEALTH]
            lines.append(f"| {name} | {dataset} | {' | '.join(entries)} |")
    return "\n".join(lines) + "\n"


def critics_table(runs: Sequence[sapp.Run], last: int) -> str:
    """What the weights did to the critics until ``last``: a row a column."""
    found = _means(runs, CRITICS, last)
    sets = list(dict.fromkeys(dataset for _, dataset in found))
    lines = [f"| {', '.join(CRITICS)} | {' | '.join(sets)} |", "|---|" + "---|" * len(sets)]
    for name in dict.fromkeys(name for name, _ in found):
        cells = [[found[name, dataset][metric] for metric in CRITICS] for dataset in sets]
        entries = [", ".join(f"{value:.4g}" for value in cell) for cell in cells]
        lines.append(f"| {name} | {' | '.join(entries)} |")
    return "\n".join(lines) + "\n"


def draw_curves(scores: Scores, path: Path) -> None:
    """Learning curves: a row an estimator, a panel a dataset, SA-CQL beside its controls."""
    rows = []
    for name in ESTIMATORS:
        panels = {}
        for dataset, columns in scores.items():
            wanted = [each for each in ("CQL", *KINDS[name]) if each in columns]
            if name in wanted:
                panels[dataset] = {
                    each: {
                        seed: [(step, float(values[seed].mean())) for step, values in columns[each].items()]
                        for seed in range(len(next(iter(columns[each].values()))))
                    }
                    for each in wanted
                }
        if panels:
            rows.append(panels)
    if rows:
        draw(rows, path, "joint steps", "normalised score")


def report(runs: Sequence[sapp.Run]) -> str:
    """Everything as Markdown."""
    scores = read(runs)
    lasts = [last for columns in scores.values() if (last := last_step(columns)) is not None]
    if not lasts:
        return "No dataset has a step yet at which every column was played.\n"
    differences = [differences_table(scores, final) for final in (True, False)]
    means = [table(runs, min(lasts)) for table in (health_table, critics_table)]
    return "\n".join([scores_table(scores), *differences, *means])


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
    draw_curves(read(runs), options.out / "skewed.png")
    print(found)


if __name__ == "__main__":
    main()
