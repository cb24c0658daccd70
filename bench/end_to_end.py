"""How long the SA-CQL column of the paper's Table 1 takes: 18 datasets × 3 seeds × (20k + 100k + 1M) steps.

    python bench/end_to_end.py --data DATA --out runs/end-to-end --share 0.1

A share of the whole protocol is run for real: all 54 members, each phase a share of its steps, evaluations as often as
in the whole (every member each 50,000 steps, ten episodes), everything from the start of the process to the last saved
file. The projection takes what happens once (start-up, compilation, the last evaluation and saving) once, and the steps
1/share times. DATA holds some of the datasets
(``halfcheetah-medium.npz`` …, as ``sapp data`` makes them); an environment's missing qualities are played by copies of
the ones that are there, which changes what is learned and not how long it takes.
"""

from __future__ import annotations

import time

BEGAN = time.perf_counter()

import argparse  # noqa: E402
import csv  # noqa: E402
import json  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import get_args  # noqa: E402

import jax  # noqa: E402

import sapp  # noqa: E402
from sapp.algorithms.config import override  # noqa: E402
from sapp.core.precision import Precision  # noqa: E402
from sapp.data import Dataset, load_vectors  # noqa: E402

ENVIRONMENTS = ("halfcheetah", "hopper", "walker2d")
QUALITIES = ("random", "medium", "expert", "medium-replay", "medium-expert", "full-replay")
PRETRAIN, RATIO, JOINT, EVAL_EVERY, EPISODES = 20_000, 100_000, 1_000_000, 50_000, 10


def datasets(folder: Path) -> list[Dataset]:
    """Eighteen, real ones first."""
    found = []
    for environment in ENVIRONMENTS:
        files = sorted(folder.glob(f"{environment}-*.npz"))
        if not files:
            raise SystemExit(f"{folder}: no {environment}-*.npz there; make one with 'sapp data'")
        real = [load_vectors(file) for file in files]
        found += [replace(real[n % len(real)], name=f"{environment}-{quality}") for n, quality in enumerate(QUALITIES)]
    return found


def phase_seconds(run: sapp.Run) -> dict[str, tuple[int, float]]:
    """Steps of each phase and their seconds, by the clock of the run's metrics. A phase's first logged steps wait for
    its compilation, so they count as long as the later ones took."""
    with open(run.path / "metrics.csv", encoding="utf-8", newline="") as handle:
        clock = {(row["phase"], int(row["step"])): float(row["seconds"]) for row in csv.DictReader(handle)}
    points: dict[str, list[tuple[int, float]]] = {}
    for (phase, step), seconds in clock.items():
        points.setdefault(phase, []).append((step, seconds))
    found, before = {}, 0
    for phase, reached in points.items():
        (first_step, first_seconds), (last_step, last_seconds) = reached[0], reached[-1]
        pace = (last_seconds - first_seconds) / max(1, last_step - first_step)
        found[phase] = last_step - before, pace * (last_step - before)
        before = last_step
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--share", type=float, default=0.1, help="of every phase's steps")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--hidden", type=int, nargs="+", default=[256, 256])
    parser.add_argument("--precision", default="auto", choices=get_args(Precision))
    parser.add_argument("--batch", type=int, default=256)
    options = parser.parse_args()
    data = datasets(options.data)
    steps = [max(1, round(options.share * whole)) for whole in (JOINT, PRETRAIN, RATIO)]
    changes = {"hidden": tuple(options.hidden), "precision": options.precision, "batch_size": options.batch}
    every = min(EVAL_EVERY, steps[0])
    run = sapp.train(
        {"SA-CQL": lambda name: override(sapp.preset("sa-cql", f"{name}-v2"), changes)},
        data,
        out=options.out / "run",
        seeds=options.seeds,
        phases=sapp.sa_protocol(*steps),
        eval_every=every,
        eval_episodes=EPISODES,
        log_every=max(1, min(5_000, min(steps) // 4)),
        copy_data=False,
    )
    wall = time.perf_counter() - BEGAN
    phases = phase_seconds(run)
    working = sum(spent for _, spent in phases.values())
    start = wall - working
    whole = start + working / options.share
    members = len(data) * options.seeds
    result = {
        "device": jax.devices()[0].device_kind, "members": members, "share": options.share, "hidden": options.hidden,
        "precision": options.precision, "wall_seconds": wall, "start_seconds": start,
        "phases": {name: {"steps": n, "seconds": spent} for name, (n, spent) in phases.items()},
        "evaluations": steps[0] // every, "projected_minutes": whole / 60.0,
    }  # fmt: skip
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "end-to-end.json").write_text(json.dumps(result, indent=1) + "\n")
    for name, (count, spent) in phases.items():
        print(f"{name:10} {count:9,} steps {spent:8.1f} s {members * count / max(spent, 1e-9):10,.0f} run-steps/s")
    print(f"beside that, once: start-up, compilation, last evaluation, saving: {start:.1f} s; this run {wall:.1f} s")
    print(f"the whole of it ({members} runs of {PRETRAIN + RATIO + JOINT:,} steps): {whole / 60:.1f} minutes")


if __name__ == "__main__":
    main()
