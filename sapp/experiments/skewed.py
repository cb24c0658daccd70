"""SA-CQL with each ratio estimator against CQL and every control, on medium data and on data of skewed coverage.

    python -m sapp.experiments.skewed --policies POLICIES --out runs/skewed --steps 150000 --precision bf16
    python -m sapp.experiments.skewed --out runs/skewed --report

All of it is 350 members; ``--environments``, ``--mixtures`` and ``--estimators`` take parts of it. ``--limit`` seconds
are shared out among the estimators by the number of their members; each is saved and stopped when its share is over.
The table is of the last step at which every column of a dataset was played.

Data: the three medium datasets of ``sapp.experiments.medium``, and mixtures of 95 % of one policy's transitions and 5 %
of a better one's (``MIXTURES``): uniform actions and D4RL's medium policy, that is a few good episodes in a sea of bad
ones. There states of the good policy are rare in the data, so their ratios are large, the setting in which weights by
state should matter if they matter anywhere. More mixtures by ``--mixture NAME ENVIRONMENT WORSE BETTER``, where a
policy is a file, ``random`` or ``medium``.

Columns: CQL, and CQL with random weights; and for each estimator SA-CQL, its weights shuffled over the batch, matched
(every weight is the batch mean), and frozen as they were after the ratio phase. Shuffled and matched have SA-CQL's mean
weight step by step; the others have their own, which the table gives. Per estimator the first two phases are trained
once a dataset and seed (``OUT/ESTIMATOR-shared``) and forked into the columns (``OUT/ESTIMATOR-joint``); the first two
columns, which no estimator changes, run with the first. Called again with the same ``--out`` it resumes. ``--report``
needs the joint runs' tables and settings (``*.csv``, ``config.json``), no checkpoints and no data.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import sapp
from sapp.algorithms.presets import weight_range
from sapp.data import Dataset, load_vectors, save_npz
from sapp.data.dataset import concatenate
from sapp.experiments.baselines import interrupted_after
from sapp.experiments.medium import ENVIRONMENTS, behaviour_policy, regenerate
from sapp.experiments.medium_report import read, text
from sapp.files import write_text
from sapp.ratios import DualDICE, LogMinMax, OccupancyInfoNCE, OccupancyModel, control
from sapp.training.loop import Interrupted
from sapp.training.run import CONFIG, METRICS

if TYPE_CHECKING:
    from sapp.environments.base import BatchEnvironment
    from sapp.environments.policies import StochasticPolicy

COMMON = {"CQL": "uniform", "random": "random"}
"""Columns that know nothing of an estimator, and their kinds of weights."""
CONTROLS = ("real", "shuffled", "matched", "frozen")
ESTIMATORS: dict[str, type[DualDICE] | type[OccupancyModel] | type[OccupancyInfoNCE]] = {
    "dualdice": DualDICE,
    "occupancy": OccupancyModel,
    "infonce": OccupancyInfoNCE,
}


@dataclass(frozen=True)
class Settings:
    """What all columns share. ``ratio`` and ``base`` are further fields of the estimators and of CQL."""

    precision: str = "float32"
    fallback: bool = True
    ratio: Mapping[str, Any] = field(default_factory=dict)
    base: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Mixture:
    """Transitions of a worse policy and a ``share`` of a better one's, in whole episodes; ``random`` or a file."""

    name: str
    environment: str
    worse: str
    better: str
    share: float = 0.05


MIXTURES = tuple(Mixture(f"{e}-random95-medium5", e, "random", "medium") for e in ("halfcheetah", "hopper"))


def _ready(names: Sequence[str] | None) -> list[Mixture]:
    known = {mixture.name: mixture for mixture in MIXTURES}
    if unknown := [name for name in names or () if name not in known]:
        raise sapp.SappError(f"mixture {unknown[0]!r} is unknown: use {', '.join(known)}, or define one with --mixture")
    return [known[name] for name in (known if names is None else names)]


def mix(mixture: Mixture, policies: Path, folder: Path, transitions: int) -> Dataset:
    """A mixture, made once and kept in a folder."""
    from sapp.environments import make
    from sapp.environments.collect import collect

    file = folder / f"{mixture.name}-{transitions}.npz"
    if not file.exists():
        environment = make(mixture.environment, physics="d4rl")
        good = max(1, round(mixture.share * transitions))
        parts = [
            collect(_policy(which, mixture.environment, environment, policies), environment, count, seed=number)
            for number, (which, count) in enumerate(((mixture.worse, transitions - good), (mixture.better, good)))
        ]
        save_npz(concatenate(parts, mixture.name), file)
    return load_vectors(file)


def _policy(which: str, name: str, environment: BatchEnvironment, policies: Path) -> StochasticPolicy:
    from sapp.environments.policies import UniformPolicy, load_policy

    if which == "random":
        return UniformPolicy(environment.action_low, environment.action_high)
    return load_policy(behaviour_policy(policies, name) if which == "medium" else Path(which))


def column(estimator: str, kind: str, settings: Settings) -> Callable[[str], sapp.CQL]:
    """A column's algorithm by the dataset's name; b0 and b1 are those of the environment's medium set."""

    def on(dataset: str) -> sapp.CQL:
        f = LogMinMax(*weight_range(f"{dataset.split('-')[0]}-medium-v2"))
        weights = control(ESTIMATORS[estimator](f=f, fallback=settings.fallback, **settings.ratio), kind)
        return sapp.CQL(weights=weights, precision=settings.precision, **settings.base)  # type: ignore[arg-type]

    return on


def columns(estimator: str, first: bool, settings: Settings) -> dict[str, Callable[[str], sapp.CQL]]:
    """The columns that train with an estimator, by name; ``occupancy`` alone is SA-CQL with it."""
    kinds = {estimator if kind == "real" else f"{estimator}-{kind}": kind for kind in CONTROLS}
    if first:
        kinds |= COMMON
    return {name: column(estimator, kind, settings) for name, kind in kinds.items()}


def grid(
    out: Path, data: list[Dataset], estimators: Sequence[str], phases: Sequence[sapp.Phase], settings: Settings,
    eval_every: int | None = None, end: float | None = None, **options: Any,
) -> list[sapp.Run]:  # fmt: skip
    """Train or go on with everything: the joint runs. ``phases`` are the paper's three; the first two are shared.

    Until ``end`` (of ``time.monotonic``), if there is one, each estimator has the share of what is left that its
    columns are of those still to come; joint runs that never began are left out.
    """
    names = [columns(estimator, number == 0, settings) for number, estimator in enumerate(estimators)]
    runs = []
    for number, (estimator, mine) in enumerate(zip(estimators, names, strict=True)):
        share = None
        if end is not None:
            left = max(0.0, end - time.monotonic()) * len(mine) / sum(len(each) for each in names[number:])
            share = max(0.1, left)  # not before there is somebody to be interrupted
        place = out / f"{estimator}-joint"
        with interrupted_after(share) as over:
            try:
                shared = _continue(
                    out / f"{estimator}-shared",
                    data,
                    {estimator: mine[estimator]},
                    phases=tuple(phases[:2]),
                    eval_every=0,
                    **options,
                )
                _continue(
                    place,
                    data,
                    mine,
                    phases=tuple(phases[2:]),
                    eval_every=eval_every,
                    start_from=shared,
                    **options,
                )
            except (Interrupted, KeyboardInterrupt) as stop:
                if not over.is_set():  # somebody's own Ctrl-C
                    raise
                print(f"{estimator}: time limit reached; call again with the same --out to go on ({stop})", flush=True)
        if (place / CONFIG).exists():
            runs.append(sapp.Run(place))
    return runs


def _continue(
    out: Path, data: list[Dataset], algorithms: Mapping[str, Callable[[str], sapp.CQL]], **options: Any
) -> sapp.Run:
    if (out / CONFIG).exists():
        return sapp.resume(out, data=data, progress=options.get("progress", True))
    return sapp.train(algorithms, data, out=out, copy_data=False, **options)


def report(runs: Sequence[sapp.Run]) -> str:
    """Final scores, and SA-CQL minus each control, paired by seed and start state, as Markdown."""
    from sapp.evaluation.statistics import seeds_and_episodes

    scores, means = read(runs), mean_weights(runs)
    lines = []
    for dataset, found in scores.items():
        common = set.intersection(*(set(steps) for steps in found.values()))
        if not common:
            continue
        last = max(common)
        lines += [
            f"### {dataset}, {last:,} joint steps, {len(next(iter(found.values()))[last])} seeds",
            "",
            "| column | final (95 % interval) | each seed | mean weight | SA-CQL with the same estimator − column |",
            "|---|---|---|---|---|",
        ]
        for name in found:
            final = found[name][last]
            each = " ".join(f"{value:.1f}" for value in final.mean(1))
            against = _differences(found, name, last)
            difference = "; ".join(
                f"{other} {text(seeds_and_episodes(value, seed=0))}" if name in COMMON else text(
                    seeds_and_episodes(value, seed=0)
                )
                for other, value in against.items()
            )  # fmt: skip
            weight = means.get((dataset, name))
            lines.append(
                f"| {name} | {text(seeds_and_episodes(final, seed=0))} | {each} "
                f"| {'' if weight is None else f'{weight:.3f}'} | {difference} |"
            )
        lines.append("")
    return "\n".join(lines) or "No dataset has a step yet at which every column was played.\n"


def _differences(found: Mapping[str, Mapping[int, np.ndarray]], name: str, step: int) -> dict[str, np.ndarray]:
    """SA-CQL minus a column, by estimator: a common column is compared with all, a control with its own."""
    mine = [e for e in ESTIMATORS if e in found and e != name and (name in COMMON or name.startswith(f"{e}-"))]
    return {
        e: found[e][step] - found[name][step]
        for e in mine
        if step in found[e] and found[e][step].shape == found[name][step].shape
    }


def mean_weights(runs: Sequence[sapp.Run]) -> dict[tuple[str, str], float]:
    """Mean weight over the run, by dataset and column."""
    values: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        for row in run.metrics() if (run.path / METRICS).is_file() else ():
            if row.get("weights/mean"):
                name, dataset, _ = row["member"].split("/")
                values.setdefault((dataset, name), []).append(float(row["weights/mean"]))
    return {key: float(np.mean(each)) for key, each in values.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", type=Path, help="folder with D4RL's medium policies (.npz or .hdf5)")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, help="folder for the datasets (default: OUT/data)")
    parser.add_argument("--estimators", nargs="+", default=tuple(ESTIMATORS), choices=tuple(ESTIMATORS))
    parser.add_argument("--environments", nargs="*", default=ENVIRONMENTS, choices=ENVIRONMENTS)
    parser.add_argument("--mixtures", nargs="*", help="which of the ready-made mixtures (default: all)")
    parser.add_argument("--mixture", nargs=4, action="append", metavar=("NAME", "ENVIRONMENT", "WORSE", "BETTER"))
    parser.add_argument("--steps", type=int, default=200_000, help="joint steps")
    parser.add_argument("--pretrain", type=int, default=20_000)
    parser.add_argument("--ratio", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--transitions", type=int, default=1_000_000)
    parser.add_argument("--precision", default="float32", choices=("float32", "tf32", "bf16"))
    parser.add_argument("--hidden", type=int, nargs="+", help="layers of actor and critics (default: three of 256)")
    parser.add_argument("--no-fallback", action="store_true", help="use the weights whatever the estimator's health")
    parser.add_argument("--eval-every", type=int)
    parser.add_argument("--eval-episodes", type=int, default=10)
    parser.add_argument("--log-every", type=int, default=1_000, help="steps averaged in a row of metrics.csv")
    parser.add_argument("--limit", type=float, help="seconds after which to save and stop")
    parser.add_argument("--data-only", action="store_true", help="only make the datasets")
    parser.add_argument("--report", action="store_true", help="only the table of what is there")
    options = parser.parse_args(arguments)
    if options.report:
        folders = [options.out / f"{name}-joint" for name in options.estimators]
        runs = [sapp.Run(folder) for folder in folders if (folder / CONFIG).exists()]
        if not runs:
            raise sapp.SappError(f"{options.out}: holds no joint runs yet; train first")
        write_text(options.out / "skewed.md", report(runs))
        print(report(runs))
        return
    if options.policies is None:
        raise sapp.SappError("--policies is needed to make the data: a folder with D4RL's medium policies")
    end = None if options.limit is None else time.monotonic() + options.limit
    folder = options.data or options.out / "data"
    mixtures = [*_ready(options.mixtures), *(Mixture(*each) for each in options.mixture or ())]
    data = [regenerate(name, options.policies, folder, options.transitions) for name in options.environments]
    data += [mix(each, options.policies, folder, options.transitions) for each in mixtures]
    if options.data_only:
        return
    base = {"hidden": tuple(options.hidden)} if options.hidden else {}
    runs = grid(
        options.out,
        data,
        options.estimators,
        sapp.sa_protocol(options.steps, options.pretrain, options.ratio),
        Settings(options.precision, not options.no_fallback, base=base),
        options.eval_every,
        end,
        seeds=options.seeds,
        eval_episodes=options.eval_episodes,
        log_every=options.log_every,
    )
    write_text(options.out / "skewed.md", report(runs))
    print(report(runs))


if __name__ == "__main__":
    main()
