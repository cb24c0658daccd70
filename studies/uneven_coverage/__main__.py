"""Where must state-aware weights help? Tables of the setting and of what is left without one of its conditions.

python -m studies.uneven_coverage --out runs/uneven --worlds 400     # the exact minimiser, some minutes
python -m studies.uneven_coverage --out runs/uneven --learned        # networks, known and learned ratios
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sapp import SappError
from sapp.core.comparisons import family_told
from sapp.core.files import write_text
from sapp.core.statistics import Interval, student
from sapp.report.report_tables import Table, table
from sapp.tabular.exact_cql import exact_losses
from sapp.tabular.uneven_coverage import CASES, Floats, make_world
from studies.uneven_coverage.learned import KINDS, learned_losses


class Row(NamedTuple):
    """A row of a table: tuned α, mean loss, and its difference to the first variant, paired by world."""

    variant: str
    alpha: float
    lost: float
    difference: Interval
    p: float


def tuned(losses: Mapping[str, Floats], alphas: Sequence[float]) -> list[Row]:
    """Losses [α, worlds] by variant: α by the first half of the worlds, the result by the second."""
    found = {}
    for name, loss in losses.items():
        half = loss.shape[1] // 2
        best = int(loss[:, :half].mean(1).argmin())
        found[name] = float(alphas[best]), loss[best, half:]
    base = next(iter(found.values()))[1]
    gaps = {name: student(loss - base) for name, (_, loss) in found.items()}
    return [
        Row(name, alpha, float(loss.mean()), gaps[name].interval(), gaps[name].p)
        for name, (alpha, loss) in found.items()
    ]


def scaled(interval: Interval) -> Interval:
    """In thousandths."""
    return Interval(*(1e3 * value for value in interval))


def case_table(case: str, rows: Sequence[Row], worlds: int) -> Table:
    """Losses in thousandths of a reward per step."""
    cells = [
        (row.variant, f"{row.alpha:.3g}", 1e3 * row.lost, None if row is rows[0] else scaled(row.difference))
        for row in rows
    ]
    head = ("penalty spread by", "α, tuned", "lost, ‰", "− CQL (95 % interval)")
    told = family_told([row.p for row in rows[1:]])
    return table(case.capitalize(), f"{worlds} worlds. {told}", head, cells)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the tables")
    parser.add_argument("--cases", nargs="+", default=tuple(CASES), choices=tuple(CASES), help="a table each")
    parser.add_argument("--worlds", type=int, help="half of them to tune α on (default: 120, learned 40)")
    parser.add_argument("--learned", action="store_true", help="networks instead of the exact minimiser")
    parser.add_argument("--steps", type=int, default=3_000, help="of the networks")
    parser.add_argument(
        "--estimators",
        nargs="+",
        default=tuple(KINDS),
        choices=tuple(KINDS),
        help="of the ratio, learned (known first)",
    )
    parser.add_argument("--alphas", type=float, nargs="+", help="α to choose from (default: wide grids)")
    options = parser.parse_args(arguments)
    if options.learned and options.estimators[0] != "known":
        raise SappError("estimators: 'known' comes first, CQL trains with it")
    count = (40 if options.learned else 120) if options.worlds is None else options.worlds
    if count < 2:
        raise SappError(f"worlds is {count}: at least 2 are needed, half of them to tune alpha on")
    alphas = options.alphas or (np.geomspace(0.5, 500, 7) if options.learned else np.geomspace(0.003, 300, 26)).tolist()
    for case in options.cases:
        setting = CASES[case]
        worlds = [make_world(setting, seed) for seed in range(count)]
        note = ""
        if options.learned:
            losses, agreement = learned_losses(setting, worlds, alphas, options.steps, options.estimators)
            if "DualDICE" in options.estimators:
                note = f"DualDICE's log-ratios correlate with the truth by {agreement:.2f}."
        else:
            losses = exact_losses(worlds, alphas)
        rows = tuned(losses, alphas)
        text = f"{case_table(case, rows, count).markdown()}\n{note}\n"
        record = {"setting": asdict(setting), "rows": [row._asdict() for row in rows], "note": note}
        name = f"{'learned' if options.learned else 'exact'}-{case.replace(' ', '-')}"
        write_text(options.out / f"{name}.md", text)
        write_text(options.out / f"{name}.json", json.dumps(record, indent=1) + "\n")
        print(text)


if __name__ == "__main__":
    main()
