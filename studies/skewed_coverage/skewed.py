"""SA-CQL with each ratio estimator against CQL and every control, on medium data and on data of skewed coverage.

    python -m studies.skewed_coverage.skewed --policies POLICIES --out runs/skewed --steps 150000 --precision mixed
    python -m studies.skewed_coverage.skewed_report runs/skewed

Data: the three medium datasets of ``medium_datasets``, and mixtures of 95 % of one policy's transitions and 5 %
of a better one's (``MIXTURES``): uniform actions and D4RL's medium policy, that is a few good episodes in a sea of bad
ones. There states of the good policy are rare in the data, so their ratios are large, the setting in which weights by
state should matter if they matter anywhere. More mixtures by ``--mixture NAME ENVIRONMENT WORSE BETTER``, where a
policy is a file, ``random`` or ``medium``.

Columns: CQL and CQL with random weights; and for each estimator SA-CQL, its weights shuffled over the batch, and frozen
as they were after the ratio phase. All weights are rescaled to a batch mean of ``--mean``, step by step, so every
column is as pessimistic on average; at 1 (the default) CQL is the constant at the matched mean. Estimators' weights are
used whatever their health, as in the paper.

CQL's first phase is trained once a dataset and seed (``OUT/pretrain``); from there go the two columns that know no
estimator (``OUT/common``) and, by way of its ratio phase (``OUT/ESTIMATOR-ratio``), each estimator's three
(``OUT/ESTIMATOR``). ``--parts`` takes some of these four; all of it is 275 members. ``--limit`` seconds are shared out
among the parts by the number of their members; each is saved and stopped when its share is over. Called again with the
same ``--out`` it resumes; several processes may train a part each once the first phase is there (``--parts`` alone).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import sapp
from sapp.algorithms.presets import weight_range
from sapp.core.errors import Interrupted
from sapp.core.precision import Precision
from sapp.data import Dataset, load_vectors, save_npz
from sapp.data.dataset import concatenate
from sapp.runs.run import CONFIG
from sapp.weights import DualDICE, LogMinMax, OccupancyInfoNCE, OccupancyModel, RandomWeights, RescaledWeights, control
from studies.baselines.baselines import interrupted_after
from studies.medium_datasets.medium import ENVIRONMENTS, behaviour_policy, regenerate

if TYPE_CHECKING:
    from sapp.envs.base import BatchEnvironment
    from sapp.envs.policies import StochasticPolicy

COMMON = "common"
"""The part of the columns that know nothing of an estimator."""
ESTIMATORS: dict[str, type[DualDICE] | type[OccupancyModel] | type[OccupancyInfoNCE]] = {
    "dualdice": DualDICE,
    "occupancy": OccupancyModel,
    "infonce": OccupancyInfoNCE,
}
PARTS = (COMMON, *ESTIMATORS)
KINDS = {COMMON: {"CQL": "uniform", "random": "real"}} | {
    name: {name: "real"} | {f"{name}-{kind}": kind for kind in ("shuffled", "frozen")} for name in ESTIMATORS
}
"""The columns of each part and their kinds of weights; those of an estimator's name alone are SA-CQL."""
PRETRAIN = "pretrain"


@dataclass(frozen=True)
class Settings:
    """What all columns share. ``ratio`` and ``base`` are further fields of the estimators and of CQL."""

    precision: str = "float32"
    mean: float = 1.0
    ratio: Mapping[str, Any] = field(default_factory=dict)
    base: Mapping[str, Any] = field(default_factory=dict)

    def cql(self, **changes: Any) -> sapp.CQL:
        """CQL with these settings."""
        return sapp.CQL(precision=self.precision, **self.base, **changes)  # type: ignore[arg-type]


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
    from sapp.envs import make
    from sapp.envs.collect import collect

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
    from sapp.envs.policies import UniformPolicy, load_policy

    if which == "random":
        return UniformPolicy(environment.action_low, environment.action_high)
    return load_policy(behaviour_policy(policies, name) if which == "medium" else Path(which))


def column(part: str, kind: str, settings: Settings) -> Callable[[str], sapp.CQL]:
    """A column's algorithm by the dataset's name; b0 and b1 are those of the environment's medium set."""

    def on(dataset: str) -> sapp.CQL:
        f = LogMinMax(*weight_range(f"{dataset.split('-')[0]}-medium-v2"))
        if part == COMMON:
            return settings.cql(weights=RescaledWeights(control(RandomWeights(f), kind), settings.mean))
        estimator = ESTIMATORS[part](f=f, fallback=False, **settings.ratio)
        return settings.cql(weights=RescaledWeights(control(estimator, kind), settings.mean))

    return on


def columns(part: str, settings: Settings) -> dict[str, Callable[[str], sapp.CQL]]:
    """The columns of a part, by name."""
    return {name: column(part, kind, settings) for name, kind in KINDS[part].items()}


def grid(
    out: Path, data: list[Dataset], parts: Sequence[str], phases: Sequence[sapp.Phase], settings: Settings,
    eval_every: int | None = None, end: float | None = None, **options: Any,
) -> list[sapp.Run]:  # fmt: skip
    """Train or go on with some parts: their last runs. ``phases`` are the paper's three.

    Until ``end`` (of ``time.monotonic``), if there is one, each part has the share of what is left that its columns are
    of those still to come; runs that never began are left out.
    """
    pretrain, ratio, joint = phases
    start = _continue(
        out / PRETRAIN, data, {"CQL": lambda _: settings.cql()}, phases=(pretrain,), eval_every=0, **options
    )
    runs = []
    for number, part in enumerate(parts):
        mine = columns(part, settings)
        share = None
        if end is not None:
            coming = sum(len(KINDS[each]) for each in parts[number:])
            share = max(0.1, (end - time.monotonic()) * len(mine) / coming)  # not before there is somebody to stop
        with interrupted_after(share) as over:
            try:
                first = start
                if part != COMMON:
                    first = _continue(
                        out / f"{part}-ratio", data, {part: mine[part]}, phases=(ratio,), eval_every=0,
                        start_from=start, **options,
                    )  # fmt: skip
                _continue(out / part, data, mine, phases=(joint,), eval_every=eval_every, start_from=first, **options)
            except (Interrupted, KeyboardInterrupt) as stop:
                if not over.is_set():  # somebody's own Ctrl-C
                    raise
                print(f"{part}: time limit reached; call again with the same --out to go on ({stop})", flush=True)
        if (out / part / CONFIG).exists():
            runs.append(sapp.Run(out / part))
    return runs


def _continue(
    out: Path, data: list[Dataset], algorithms: Mapping[str, Callable[[str], sapp.CQL]], **options: Any
) -> sapp.Run:
    if (out / CONFIG).exists():
        return sapp.resume(out, data=data, progress=options.get("progress", True))
    return sapp.train(algorithms, data, out=out, copy_data=False, **options)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", type=Path, required=True, help="folder with D4RL's medium policies (.npz, .hdf5)")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, help="folder for the datasets (default: OUT/data)")
    parser.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS, help="default: all; none: the first phase")
    parser.add_argument("--environments", nargs="*", default=ENVIRONMENTS, choices=ENVIRONMENTS)
    parser.add_argument("--mixtures", nargs="*", help="which of the ready-made mixtures (default: all)")
    parser.add_argument("--mixture", nargs=4, action="append", metavar=("NAME", "ENVIRONMENT", "WORSE", "BETTER"))
    parser.add_argument("--steps", type=int, default=200_000, help="joint steps")
    parser.add_argument("--pretrain", type=int, default=20_000)
    parser.add_argument("--ratio", type=int, default=100_000)
    parser.add_argument("--mean", type=float, default=1.0, help="of all weights over a batch")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--transitions", type=int, default=1_000_000)
    parser.add_argument("--precision", default="auto", choices=get_args(Precision))
    parser.add_argument("--hidden", type=int, nargs="+", help="layers of actor and critics (default: three of 256)")
    parser.add_argument("--eval-every", type=int)
    parser.add_argument("--eval-episodes", type=int, default=10)
    parser.add_argument("--log-every", type=int, default=1_000, help="steps averaged in a row of metrics.csv")
    parser.add_argument("--limit", type=float, help="seconds after which to save and stop")
    parser.add_argument("--data-only", action="store_true", help="only make the datasets")
    options = parser.parse_args(arguments)
    end = None if options.limit is None else time.monotonic() + options.limit
    folder = options.data or options.out / "data"
    mixtures = [*_ready(options.mixtures), *(Mixture(*each) for each in options.mixture or ())]
    data = [regenerate(name, options.policies, folder, options.transitions) for name in options.environments]
    data += [mix(each, options.policies, folder, options.transitions) for each in mixtures]
    if options.data_only:
        return
    base = {"hidden": tuple(options.hidden)} if options.hidden else {}
    grid(
        options.out,
        data,
        options.parts,
        sapp.sa_protocol(options.steps, options.pretrain, options.ratio),
        Settings(options.precision, options.mean, base=base),
        options.eval_every,
        end,
        seeds=options.seeds,
        eval_episodes=options.eval_episodes,
        log_every=options.log_every,
    )


if __name__ == "__main__":
    main()
