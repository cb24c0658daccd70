"""CQL, SA-CQL and its controls on the three medium datasets of the paper's Table 1.

    python -m studies.medium_datasets.medium --policies POLICIES --out runs/medium --steps 200000 --precision mixed

``POLICIES`` is a folder with D4RL's own behaviour policies (``hopper-medium-v2`` and so on, as .npz or as D4RL's .hdf5
files); each dataset is regenerated from them under D4RL's physics, 1M transitions. Called again with the same
``--out`` it resumes. Until the joint phase all columns are the same learner, so the first two phases (``OUT/shared``)
are trained once a dataset and seed and then forked into the columns (``OUT/joint``); these share one structure, so
each group of equal shape trains as one compiled program. The weights are used as in the paper, without our fall-back
to 1 while the ratio estimate is unreliable (which is logged); ``--fallback`` switches that on.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

import sapp
from sapp.algorithms.presets import weight_range
from sapp.core.precision import Precision
from sapp.data import Dataset, load_vectors
from sapp.weights import DualDICE, LogMinMax, control

ENVIRONMENTS = ("halfcheetah", "hopper", "walker2d")
HALF = "CQL-half"
COLUMNS = {"CQL": "uniform", "SA-CQL": "real", "shuffled": "shuffled", "matched": "matched", "random": "random"}


def behaviour_policy(folder: Path, environment: str) -> Path:
    """The file of a medium behaviour policy in a folder."""
    for pattern in (f"*{environment}*medium-v2.npz", f"*{environment}*medium-v2.hdf5"):
        if found := sorted(folder.glob(pattern)):
            return found[0]
    raise sapp.SappError(f"{folder}: no policy of {environment}-medium-v2 (.npz or .hdf5)")


def regenerate(environment: str, policies: Path, folder: Path, transitions: int) -> Dataset:
    """A medium dataset from its behaviour policy, made once and kept in a folder."""
    from sapp.envs import make
    from sapp.envs.collect import collect
    from sapp.envs.policies import load_policy

    file = folder / f"{environment}-medium-v2-{transitions}.npz"
    if not file.exists():
        policy = load_policy(behaviour_policy(policies, environment))
        name = f"{environment}-medium-v2"
        sapp.save_npz(collect(policy, make(environment, physics="d4rl"), transitions, seed=0, name=name), file)
    return load_vectors(file)


def algorithms(precision: str, fallback: bool) -> dict[str, Callable[[str], sapp.CQL]]:
    """The columns of the table: the paper's presets (b0, b1 by dataset), their controls, and CQL at half its weight."""

    def column(kind: str, alpha: float = 5.0) -> Callable[[str], sapp.CQL]:
        def on(dataset: str) -> sapp.CQL:
            weights = control(DualDICE(f=LogMinMax(*weight_range(dataset)), fallback=fallback), kind)
            return sapp.CQL(alpha=alpha, weights=weights, precision=precision)  # type: ignore[arg-type]

        return on

    return {name: column(kind) for name, kind in COLUMNS.items()} | {HALF: column("uniform", 2.5)}


def wanted(member: str) -> bool:
    """Every column everywhere, but half the weight only as the sanity check: it is known to ruin walker2d-medium."""
    return not member.startswith(HALF) or member == f"{HALF}/walker2d-medium-v2/0"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, help="folder for the regenerated datasets (default: OUT/data)")
    parser.add_argument("--steps", type=int, default=1_000_000, help="joint steps")
    parser.add_argument("--pretrain", type=int, default=20_000)
    parser.add_argument("--ratio", type=int, default=100_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--transitions", type=int, default=1_000_000)
    parser.add_argument("--precision", default="auto", choices=get_args(Precision))
    parser.add_argument("--fallback", action="store_true")
    parser.add_argument("--environments", nargs="+", default=ENVIRONMENTS, choices=ENVIRONMENTS)
    parser.add_argument("--eval-every", type=int)
    parser.add_argument("--data-only", action="store_true", help="only make the datasets")
    options = parser.parse_args()
    folder = options.data or options.out / "data"
    data = [regenerate(name, options.policies, folder, options.transitions) for name in options.environments]
    if options.data_only:
        return
    columns = algorithms(options.precision, options.fallback)
    pretrain, ratio, joint = sapp.sa_protocol(options.steps, options.pretrain, options.ratio)
    shared = _continue(
        options.out / "shared",
        data,
        {"SA-CQL": columns["SA-CQL"]},
        seeds=options.seeds,
        phases=(pretrain, ratio),
        eval_every=0,
    )
    _continue(
        options.out / "joint", data, columns, seeds=options.seeds, phases=(joint,), eval_every=options.eval_every,
        start_from=shared, only=wanted,
    )  # fmt: skip


def _continue(
    out: Path, data: list[Dataset], columns: Mapping[str, Callable[[str], sapp.CQL]], **options: Any
) -> sapp.Run:
    """Resume a run if it was begun, else begin it."""
    if (out / "config.json").exists():
        return sapp.resume(out, data=data)
    return sapp.train(columns, data, out=out, copy_data=False, **options)


if __name__ == "__main__":
    main()
