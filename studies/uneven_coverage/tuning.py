"""How strong each way of being pessimistic should be in ``sapp demo``: regret by α, on worlds that it does not show.

python -m studies.uneven_coverage.tuning --out runs/tuning      # writes regrets.csv; rows/demo_alphas.csv is kept
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sapp import sa_protocol, train
from sapp.cli.demo_problem import CASES, VARIANTS, Sizes, algorithm, regret_of
from sapp.core.files import write_text
from sapp.tabular.uneven_coverage import make_world

ALPHAS = (0.5, 1.6, 5.0, 16.0, 50.0, 160.0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs and of regrets.csv")
    parser.add_argument("--worlds", type=int, default=8, help="of each case")
    parser.add_argument("--steps", type=int, default=Sizes.steps, help="of the last phase, as in the demo")
    options = parser.parse_args(arguments)
    phases = sa_protocol(options.steps, max(1, options.steps // 3), max(1, options.steps // 3))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("case", "variant", "alpha", "world", "regret"))
    for case, setting in CASES.items():
        worlds = {f"{case}-{seed}": make_world(setting, seed) for seed in range(options.worlds)}
        run = train(
            {f"{name} {alpha:g}": algorithm(name, alpha, Sizes.hidden) for name in VARIANTS for alpha in ALPHAS},
            [replace(world.data, name=name) for name, world in worlds.items()],
            phases=phases, out=options.out / case, eval_every=0, log_every=options.steps,
        )  # fmt: skip
        for member in run.members:
            variant, alpha = member.algorithm.rsplit(" ", 1)
            regret = regret_of(run, member, worlds[member.dataset])
            writer.writerow((case, variant, alpha, member.dataset, f"{regret:.4f}"))
    write_text(options.out / "regrets.csv", text.getvalue())


def best(rows: Sequence[Mapping[str, str]]) -> dict[str, dict[str, float]]:
    """The α of the least mean regret, by case and variant."""
    found: dict[tuple[str, str], dict[float, list[float]]] = {}
    for row in rows:
        by_alpha = found.setdefault((row["case"], row["variant"]), {})
        by_alpha.setdefault(float(row["alpha"]), []).append(float(row["regret"]))
    out: dict[str, dict[str, float]] = {}
    for (case, variant), by_alpha in found.items():
        means = {alpha: sum(values) / len(values) for alpha, values in by_alpha.items()}
        out.setdefault(case, {})[variant] = min(means, key=means.__getitem__)
    return out


if __name__ == "__main__":
    main()
