"""Rows of the study of the theory: written from a run, read back for the pages."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from sapp.core.statistics import Interval
from sapp.theory.audit import Audit, Row
from sapp.theory.chain_tuned import Tuned
from sapp.theory.statements import statement
from studies.theory.comparison import Comparison

COUNTS = ("statement", "family", "checked", "holds", "violated", "not_met", "vacuous", "informative")
VERDICTS = ("statement", "least_margin", "verdict", "frequency", "counterexample", "problems")
CHAIN = ("total", "arms", "behaviour", "method", "alpha", "loss", "difference", "low", "high", "p")
COMPARISON = ("family", "divergence", "method", "alpha", "loss", "difference", "low", "high", "p")
Line = Mapping[str, str]


def write(path: Path, fields: Sequence[str], lines: Iterable[Sequence[object]]) -> None:
    """Rows as CSV, numbers with six digits."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(fields)
        for line in lines:
            writer.writerow([f"{value:.6g}" if isinstance(value, float) else value for value in line])


def read(path: Path) -> list[Line]:
    """The lines of a CSV file."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_audit(result: Audit, counts: Path, verdicts: Path) -> None:
    """Counts by statement and family, verdicts by statement."""
    cells: dict[tuple[str, str], list[int]] = {}
    for cell in result.cells:
        line = cells.setdefault((cell.statement, cell.family), [0] * 6)
        for place, value in enumerate((sum(cell.counts), *cell.counts, cell.informative)):
            line[place] += value
    write(counts, COUNTS, ((*key, *line) for key, line in cells.items()))
    lines = [
        (row.statement.key, row.worst, row.verdict, "" if row.frequency is None else row.frequency,
         row.counterexample or "", result.problems)
        for row in result.rows()
    ]  # fmt: skip
    write(verdicts, VERDICTS, lines)


def read_audit(counts: Path, verdicts: Path) -> list[Row]:
    """What ``write_audit`` wrote, as the audit's own rows."""
    by_family: dict[str, dict[str, list[int]]] = {}
    for line in read(counts):
        by_family.setdefault(line["statement"], {})[line["family"]] = [int(line[name]) for name in COUNTS[2:]]
    found = []
    for line in read(verdicts):
        families = by_family[line["statement"]]
        checked, *shares = (sum(column) for column in zip(*families.values(), strict=True))
        holds, violated, not_met, vacuous, informative = (count / checked for count in shares)
        found.append(Row(
            statement(line["statement"]), checked, holds, violated, not_met, vacuous, float(line["least_margin"]),
            line["verdict"], line["counterexample"] or None, float(line["frequency"]) if line["frequency"] else None,
            informative, {family: counted[-1] / counted[0] for family, counted in families.items()},
        ))
    return found


def write_chain(path: Path, made: Mapping[tuple[int, str, str], Sequence[Tuned]]) -> None:
    """Tuned chains by trajectories, what the policies do on the arms, and what the behaviour knows."""
    write(path, CHAIN, (
        (*case, row.method, row.alpha, row.loss, *row.difference, row.p) for case, rows in made.items() for row in rows
    ))


def read_chain(path: Path) -> dict[tuple[int, str, str], list[Tuned]]:
    """What ``write_chain`` wrote."""
    found: dict[tuple[int, str, str], list[Tuned]] = {}
    for line in read(path):
        difference = Interval(float(line["difference"]), float(line["low"]), float(line["high"]))
        row = Tuned(line["method"], float(line["alpha"]), float(line["loss"]), difference, float(line["p"]))
        found.setdefault((int(line["total"]), line["arms"], line["behaviour"]), []).append(row)
    return found


def write_comparison(path: Path, rows: Iterable[Comparison]) -> None:
    """True losses on random problems."""
    write(path, COMPARISON, (
        (row.family, row.divergence, row.method, row.alpha, row.loss, row.difference, *row.interval, row.p)
        for row in rows
    ))


def read_comparison(path: Path) -> list[Comparison]:
    """What ``write_comparison`` wrote."""
    return [
        Comparison(
            line["family"], line["divergence"], line["method"], float(line["alpha"]), float(line["loss"]),
            float(line["difference"]), (float(line["low"]), float(line["high"])), float(line["p"]),
        )
        for line in read(path)
    ]
