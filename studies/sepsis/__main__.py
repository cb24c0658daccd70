"""Does state-aware pessimism help on ICU-Sepsis?

    python -m studies.sepsis --out sepsis.csv --plot sepsis.png
    python -m studies.sepsis --out cql.csv --divergence cql --sizes 10000,1000000 --draws 8 --tuning 3 --seed 1 \\
        --alphas 1e-4,3e-4,1e-3,3e-3,1e-2,3e-2 --methods none,pp,w,sqrt-w,shuffled,count

Called again with the same file it continues; what the file holds is not done again.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from studies.sepsis.experiment import experiment, summarise
from studies.sepsis.figures import plot, tables
from studies.sepsis.methods import ALPHAS, METHODS
from studies.sepsis.solver import SOLVABLE


def main(arguments: Sequence[str] | None = None) -> None:
    """Run or continue the experiment, print its tables, perhaps draw its figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="CSV of results")
    parser.add_argument("--sizes", default="1000,10000,100000,1000000", help="transitions per log")
    parser.add_argument("--draws", type=int, default=12, help="logs per size to measure on")
    parser.add_argument("--tuning", type=int, default=4, help="other logs per size to choose alpha on")
    parser.add_argument("--seed", type=int, default=0, help="of the draws")
    parser.add_argument("--divergence", default="kl", choices=SOLVABLE)
    parser.add_argument("--alphas", default=",".join(f"{alpha:g}" for alpha in ALPHAS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--plot", type=Path, help="also draw the figure (.png)")
    options = parser.parse_args(arguments)
    rows = experiment(
        options.out, [int(float(size)) for size in options.sizes.split(",")], options.draws, options.tuning,
        options.seed, options.divergence, [float(alpha) for alpha in options.alphas.split(",")],
        options.methods.split(","), console=Console(stderr=True),
    )  # fmt: skip
    print("\n".join(table.markdown() for table in tables(summarise(rows))))
    if options.plot is not None:
        plot(options.plot, rows)


if __name__ == "__main__":
    main()
