"""Tables of ``studies.baselines.baselines``: final scores beside published ones, state-aware variants beside controls.

    python -m studies.baselines.baselines_report runs/baselines runs/hopper --out tables.md --picture curves.png

A run that was stopped is reported at the step at which it stopped. Intervals draw seeds and episodes anew; differences
are paired by seed and start state. The picture has the baselines' learning curves.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import sapp
from sapp.core.files import write_text
from sapp.core.statistics import seeds_and_episodes
from sapp.runs.metric_tables import read as read_table
from studies.baselines.baselines import ALGORITHMS, CONTROLS, STATE_AWARE, STOPPED
from studies.baselines.curves import Curve, draw
from studies.medium_datasets.medium_report import Scores, gather, text

PUBLISHED: dict[str, tuple[str, Mapping[str, float]]] = {
    "td3bc": ("CORL", {"halfcheetah": 48.1, "hopper": 60.4, "walker2d": 82.7}),
    "iql": ("CORL", {"halfcheetah": 48.3, "hopper": 67.5, "walker2d": 80.9}),
    "rebrac": ("CORL", {"halfcheetah": 64.0, "hopper": 102.3, "walker2d": 85.8}),
    "bc": ("CORL", {"halfcheetah": 42.4, "hopper": 53.5, "walker2d": 63.2}),
    "edac": ("CORL, 3M steps", {"halfcheetah": 67.7, "hopper": 101.7, "walker2d": 93.4}),
    "sac-n": ("CORL, 3M steps", {"halfcheetah": 68.2, "hopper": 40.8, "walker2d": 87.5}),
    "bear": ("An et al. 2021", {"halfcheetah": 42.8, "hopper": 55.3, "walker2d": 59.8}),
    "bcq": ("robomimic", {"halfcheetah": 46.8, "hopper": 63.9, "walker2d": 74.6}),
    "uwac": ("the SA-PP paper", {"halfcheetah": 42.0, "hopper": 49.7, "walker2d": 78.3}),
    "fisher-brc": ("the SA-PP paper", {"halfcheetah": 48.3, "hopper": 90.9, "walker2d": 81.7}),
}
"""Normalised scores on D4RL's v2 medium sets by who published them; we found none of BRAC on v2."""
TOLERANCE = 4.0
"""Within this of the published score an algorithm counts as reproduced."""


def scores_of(folder: Path) -> Scores:
    """All evaluations of a run folder, with the one made when it was stopped."""
    rows = sapp.Run(folder).evaluations()
    if (folder / STOPPED).exists():
        rows = rows + read_table(folder / STOPPED)
    return gather(rows)


def baselines(folder: Path) -> Iterator[tuple[str, Scores]]:
    """Every algorithm of a folder that was played, and its run's scores."""
    places = {name: place for place in sorted(folder.glob("*")) for name in place.name.split("+")}
    for name in ALGORITHMS:
        if name in places and (places[name] / "config.json").exists():
            yield name, scores_of(places[name])


def baseline_rows(folder: Path) -> Iterator[tuple[str, str]]:
    """Dataset and table row of every algorithm that was played."""
    for name, scores in baselines(folder):
        for dataset, columns in scores.items():
            steps = columns[name]
            last = max(steps)
            final = steps[last]
            who, known = PUBLISHED.get(name, ("", {}))
            published = known.get(dataset.split("-")[0])
            interval = seeds_and_episodes(final, seed=0)
            beside = "" if published is None else f"{published:.1f} ({who})"
            within = "" if published is None else ("yes" if abs(interval.estimate - published) <= TOLERANCE else "no")
            each = " ".join(f"{value:.1f}" for value in final.mean(1))
            yield dataset, f"| {name} | {last:,} | {text(interval)} | {each} | {beside} | {within} |"


def state_aware_rows(folder: Path) -> Iterator[tuple[str, str]]:
    """Dataset and table row of every state-aware variant and its controls."""
    for name in STATE_AWARE:
        place = folder / f"sa-{name}" / "joint"
        if not (place / "config.json").exists():
            continue
        for dataset, columns in scores_of(place).items():
            last = max(max(steps) for steps in columns.values())
            real = columns[f"sa-{name}"][last]
            for prefix in CONTROLS:
                final = columns[f"{prefix}{name}"][last]
                paired = prefix != "sa-" and final.shape == real.shape
                difference = text(seeds_and_episodes(real - final, seed=0)) if paired else ""
                score = text(seeds_and_episodes(final, seed=0))
                yield dataset, f"| {prefix}{name} | {last:,} | {score} | {difference} |"


def panels(folders: Sequence[Path]) -> dict[str, dict[str, dict[int, Curve]]]:
    """Learning curves by dataset, algorithm and seed."""
    found: dict[str, dict[str, dict[int, Curve]]] = {}
    for name, run in (pair for folder in folders for pair in baselines(folder)):
        for dataset, columns in run.items():
            means = {step: scores.mean(1) for step, scores in sorted(columns[name].items())}
            seeds = range(len(next(iter(means.values()))))
            found.setdefault(dataset, {})[name] = {
                seed: [(step, float(values[seed])) for step, values in means.items()] for seed in seeds
            }
    return dict(sorted(found.items()))


def tables(folders: Sequence[Path]) -> str:
    """Both tables, a part a dataset, as Markdown."""
    parts = {
        "Baselines": (
            baseline_rows,
            f"| algorithm | steps | final (95 % interval) | each seed | published | within ±{TOLERANCE:g} |",
            "|---|---:|---|---|---|---|",
        ),
        "State-aware variants": (
            state_aware_rows,
            "| column | joint steps | final (95 % interval) | state-aware − column |",
            "|---|---:|---|---|",
        ),
    }
    lines = []
    for title, (rows, *heading) in parts.items():
        by_dataset: dict[str, list[str]] = {}
        for dataset, row in (pair for folder in folders for pair in rows(folder)):
            by_dataset.setdefault(dataset, []).append(row)
        for dataset, found in by_dataset.items():
            lines += [f"### {title}, {dataset}", "", *heading, *found, ""]
    if not lines:
        where = ", ".join(map(str, folders))
        raise sapp.SappError(f"{where}: no evaluated run of studies.baselines.baselines")
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", help="what the experiment was given as --out")
    parser.add_argument("--out", type=Path, help="Markdown file to write")
    parser.add_argument("--picture", type=Path, help="PNG file to write: learning curves of the baselines")
    options = parser.parse_args()
    found = tables(options.folders)
    if options.out is not None:
        write_text(options.out, found)
    if options.picture is not None:
        draw([panels(options.folders)], options.picture, "steps", "normalised score")
    print(found)


if __name__ == "__main__":
    main()
