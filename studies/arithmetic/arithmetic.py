"""Trains CQL in several precisions side by side, from the same data and seeds, and compares the critics' values.

    python -m studies.arithmetic.arithmetic train --out runs/arithmetic --steps 300000        # on a GPU, 20 minutes
    python -m studies.arithmetic.arithmetic rows runs/arithmetic studies/arithmetic/rows.csv
    python -m studies.arithmetic.arithmetic report studies/arithmetic                         # tables and figure

Looking at scores is not enough: a critic may be wrong by hundreds and its policy still play well, for a while.
"""

from __future__ import annotations

import argparse
import csv
import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import sapp
from sapp.runs.members import MemberId

DATASETS = ("halfcheetah-expert", "hopper-medium-expert", "walker2d-expert", "halfcheetah-medium-replay")
"""Three whose values are large, and one on which rounded values once jumped."""
PRECISIONS = ("float32", "tf32", "mixed")
ORDER = (*PRECISIONS, "float16")
"""Of tables: the most exact first. float16 is a kernel that was withdrawn; its rows show why."""
COLUMNS = ("dataset", "seed", "precision", "step", "value", "td", "score")


class Row(NamedTuple):
    """One member at one logged step: the critics' mean value, their TD error, and the score where it was played."""

    dataset: str
    seed: int
    precision: str
    step: int
    value: float
    td: float
    score: float | None


def train(options: argparse.Namespace) -> None:
    """All precisions × datasets × seeds as one run."""
    hidden = tuple(int(width) for width in options.hidden.split(","))

    def learner(precision: str) -> Callable[[str], sapp.CQL | None]:
        """CQL in a precision; in float32, which takes long, on the datasets that were named for it."""
        skipped = set(options.datasets) - set(options.float32) if precision == "float32" else set()
        return lambda dataset: None if dataset in skipped else sapp.CQL(precision=precision, hidden=hidden)

    sapp.train(
        {name: learner(name) for name in options.precisions},
        [sapp.load(name) for name in options.datasets],
        seeds=options.seeds, steps=options.steps, out=options.out, copy_data=False,
        log_every=options.steps // 150, eval_every=options.steps // 6, checkpoint_every=options.steps,
    )  # fmt: skip


def rows_of(folder: Path) -> list[Row]:
    """What a run logged, one row per member and logged step."""
    run = sapp.Run(folder)
    played = {(MemberId.of(row), int(row["step"])): float(row["score_mean"]) for row in run.evaluations()}
    found = []
    for row in run.metrics():
        member, step = MemberId.of(row), int(row["step"])
        value, td = float(row["critic/value"]), float(row["critic/td"])
        score = played.get((member, step))
        found.append(Row(member.dataset, member.seed, member.algorithm, step, value, td, score))
    return found


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """As CSV, to be committed."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in rows:
            score = "" if row.score is None else f"{row.score:.2f}"
            writer.writerow([*row[:4], f"{row.value:.6g}", f"{row.td:.6g}", score])


def read_rows(path: Path) -> list[Row]:
    """What ``write_rows`` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Row(r["dataset"], int(r["seed"]), r["precision"], int(r["step"]), float(r["value"]), float(r["td"]),
                float(r["score"]) if r["score"] else None)
            for r in csv.DictReader(file)
        ]  # fmt: skip


class Agreement(NamedTuple):
    """A dataset's last third: mean value and TD error of the reference and of the other, and how far they differ."""

    dataset: str
    value: tuple[float, float]
    td: tuple[float, float]
    largest_value: tuple[float, float]

    @property
    def value_difference(self) -> float:
        """Relative difference of the mean values."""
        return self.value[1] / self.value[0] - 1.0

    @property
    def td_difference(self) -> float:
        """Relative difference of the mean TD errors."""
        return self.td[1] / self.td[0] - 1.0


def agreement(rows: Sequence[Row], reference: str, other: str) -> list[Agreement]:
    """Per dataset that both precisions trained on, means over seeds and over the last third of training."""
    end = max(row.step for row in rows)
    late = [row for row in rows if row.step > end * 2 / 3]
    found = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        of = {
            name: [row for row in late if row.dataset == dataset and row.precision == name]
            for name in (reference, other)
        }
        if not all(of.values()):
            continue
        values = [np.array([row.value for row in of[name]]) for name in (reference, other)]
        tds = [np.array([row.td for row in of[name]]) for name in (reference, other)]
        found.append(
            Agreement(
                dataset,
                (values[0].mean(), values[1].mean()),
                (tds[0].mean(), tds[1].mean()),
                (np.abs(values[0]).max(), np.abs(values[1]).max()),
            )
        )
    return found


def table(rows: Sequence[Row], reference: str, other: str) -> str:
    """The agreement as Markdown."""
    lines = [
        f"| dataset | mean value: {reference} | {other} | difference | TD error: {reference} | {other} | difference "
        f"| largest mean value: {reference} | {other} |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for a in agreement(rows, reference, other):
        lines.append(
            f"| {a.dataset} | {a.value[0]:.1f} | {a.value[1]:.1f} | {100 * a.value_difference:+.2f} % | {a.td[0]:.2f} "
            f"| {a.td[1]:.2f} | {100 * a.td_difference:+.1f} % | {a.largest_value[0]:.1f} | {a.largest_value[1]:.1f} |"
        )
    return "\n".join(lines) + "\n"


def figure(rows: Sequence[Row], path: Path) -> None:
    """Values over training, one panel per dataset."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    datasets = list(dict.fromkeys(row.dataset for row in rows))
    colours = {"float32": "#222222", "tf32": "#1b9e77", "mixed": "#d95f02", "float16": "#c1121f"}
    drawing, axes = pyplot.subplots(2, len(datasets), figsize=(3.4 * len(datasets), 5.2), squeeze=False, sharex=True)
    for column, dataset in enumerate(datasets):
        curves: dict[tuple[str, int], list[Row]] = defaultdict(list)
        for row in rows:
            if row.dataset == dataset:
                curves[row.precision, row.seed].append(row)
        for (precision, seed), curve in curves.items():
            steps = [row.step / 1000 for row in curve]
            label = precision if seed == min(s for _, s in curves) else None
            style = {"color": colours.get(precision), "lw": 1.0, "alpha": 0.8, "label": label}
            axes[0, column].plot(steps, [row.value for row in curve], **style)
            axes[1, column].semilogy(steps, [row.td for row in curve], **style)
        axes[0, column].set_title(dataset, fontsize=9)
        axes[1, column].set_xlabel("thousand steps")
    axes[0, 0].set_ylabel("mean critic value")
    axes[1, 0].set_ylabel("TD error")
    axes[0, 0].legend(frameon=False, fontsize=8)
    drawing.tight_layout()
    drawing.savefig(path, dpi=130)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("train")
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--steps", type=int, default=300_000)
    one.add_argument("--seeds", type=int, default=2)
    one.add_argument("--hidden", default="256,256,256")
    one.add_argument("--datasets", nargs="+", default=DATASETS)
    one.add_argument("--precisions", nargs="+", default=PRECISIONS)
    one.add_argument("--float32", nargs="+", default=("halfcheetah-expert",), help="datasets to train in float32, too")
    two = commands.add_parser("rows")
    two.add_argument("run", type=Path)
    two.add_argument("file", type=Path)
    three = commands.add_parser("report")
    three.add_argument("folder", type=Path)
    options = parser.parse_args()
    if options.command == "train":
        train(options)
    elif options.command == "rows":
        write_rows(rows_of(options.run), options.file)
    else:
        rows = read_rows(options.folder / "rows.csv")
        trained = {row.precision for row in rows}
        for reference, other in itertools.combinations([name for name in ORDER if name in trained], 2):
            print(table(rows, reference, other))
        figure(rows, options.folder / "values.png")


if __name__ == "__main__":
    main()
