"""Does CQL learn as well in lower precision? Five seeds on two medium datasets, each precision from the same seeds.

    python -m studies.precision.precision --policies POLICIES --out runs/precision --steps 100000 --minutes 10
    python -m studies.precision.precision --out runs/precision --report

``POLICIES`` and the data are those of ``medium_datasets``. Both precisions train side by side in one program,
from equal initial networks and on equal batches; the table has their final scores, and their differences paired by
seed and start: at the end, and as means over the evaluations of the last third and over all, which hardly depend on
the moment at which a member begins to score. Called again it resumes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import sapp
from sapp.core.files import write_text
from sapp.core.statistics import seeds_and_episodes
from studies.baselines.baselines import Clock, run_job
from studies.baselines.baselines_report import scores_of
from studies.medium_datasets.medium import ENVIRONMENTS, regenerate
from studies.medium_datasets.medium_report import Scores, text

PRECISIONS = ("float32", "bf16")
"""The first is the one the others are compared with."""


def table(scores: Scores, precisions: Sequence[str]) -> str:
    """Final scores [seeds, episodes] by dataset and precision, as Markdown."""
    lines = [
        f"| dataset | precision | steps | final (95 % interval) | each seed | − {precisions[0]} | last third "
        "| mean of all |",
        "|---|---|---:|---|---|---|---|---|",
    ]
    for dataset, columns in scores.items():
        common = set.intersection(*(set(columns[name]) for name in precisions))
        last = max(common)
        for name in precisions:
            final = columns[name][last]
            each = " ".join(f"{value:.1f}" for value in final.mean(1))
            gaps = {at: columns[name][at] - columns[precisions[0]][at] for at in common}
            late = [gap for at, gap in gaps.items() if 3 * at > 2 * last]
            means = [gaps[last], np.mean(late, axis=0), np.mean(list(gaps.values()), axis=0)]
            gap = " | ".join("" if name == precisions[0] else text(seeds_and_episodes(each, seed=0)) for each in means)
            interval = text(seeds_and_episodes(final, seed=0))
            lines.append(f"| {dataset} | {name} | {last:,} | {interval} | {each} | {gap} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--policies", type=Path)
    parser.add_argument("--data", type=Path, help="folder for the regenerated datasets (default: OUT/data)")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--transitions", type=int, default=1_000_000)
    parser.add_argument("--environments", nargs="+", default=("halfcheetah", "walker2d"), choices=ENVIRONMENTS)
    parser.add_argument("--precisions", nargs="+", default=PRECISIONS, choices=("float32", "tf32", "bf16"))
    parser.add_argument("--hidden", type=int, nargs="+", default=(256, 256), help="layers of actor and critics")
    parser.add_argument("--eval-every", type=int, help="steps (default: a quarter of them)")
    parser.add_argument("--minutes", type=float, help="stop after so long, everything saved (default: no limit)")
    parser.add_argument("--report", action="store_true", help="only write the table of what is there")
    options = parser.parse_args(arguments)
    run = options.out / "run"
    if not options.report:
        if options.policies is None:
            raise sapp.SappError("name the folder of D4RL's policies with --policies")
        folder = options.data or options.out / "data"
        data = [regenerate(name, options.policies, folder, options.transitions) for name in options.environments]
        columns = {
            name: lambda _, name=name: sapp.CQL(hidden=tuple(options.hidden), precision=name)
            for name in options.precisions
        }
        every = options.eval_every or max(1, options.steps // 4)
        run_job(
            run, data, columns, Clock(options.minutes, 1), steps=options.steps, seeds=options.seeds, eval_every=every,
            log_every=min(5_000, every),
        )  # fmt: skip
    found = table(scores_of(run), options.precisions)
    write_text(options.out / "precision.md", found)
    print(found)


if __name__ == "__main__":
    main()
