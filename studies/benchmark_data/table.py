"""The table of all eighteen beside D4RL's figures, from the datasets that are made, and a short one of scores.

python -m studies.benchmark_data.table                         prints it, of what is made on this machine
python -m studies.benchmark_data.table --write ROWS.csv        and writes its numbers, to be read elsewhere
python -m studies.benchmark_data.table --read ROWS.csv PAGE    of the numbers in a file, into a page's section
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sapp.collect.benchmark.make import standing
from sapp.core.errors import SappError
from sapp.data.benchmark_names import ENVIRONMENTS, NAMES, QUALITIES, parse
from sapp.data.normalised_scores import normalized_score, reference
from sapp.report.marked_sections import write_sections
from sapp.report.report_tables import table as markdown_table
from studies.benchmark_data.levels import D4RL_RETURNS, d4rl_return

HEADINGS = (
    "dataset", "mean return ± s.e.", "D4RL's", "ratio", "within 10 %", "episodes", "D4RL's", "mean length", "D4RL's",
    "score", "D4RL's", "spread of returns", "D4RL's",
)  # fmt: skip
FIELDS = (
    "name", "recipe", "seed", "transitions", "episodes", "terminals", "return_mean", "return_deviation", "length_mean",
    "score_5", "score_25", "score_50", "score_75", "score_95",
)  # fmt: skip
TOLERANCE = 0.1
"""By how much of D4RL's a mean return may differ."""

Row = Mapping[str, Any]


def rows(root: Path | None = None) -> dict[str, Row]:
    """The numbers of the datasets that are made on this machine, of today's recipe."""
    made = [each for each in standing(root) if each.made is not None and not each.outdated]
    return {each.name: _row(each.name, each.made["sapp"]) for each in made if each.made is not None}


def _row(name: str, ours: Mapping[str, Any]) -> Row:
    summary = ours["summary"]
    low, high = reference(parse(name).environment)
    row = {key: summary[key] for key in ("transitions", "episodes", "terminals", "return_mean", "length_mean")}
    # that of the episodes themselves, as D4RL's are given
    deviation = (summary["score_error"] or 0.0) * (summary["episodes"] - 1) ** 0.5 * (high - low) / 100
    quantiles = {f"score_{float(q) * 100:g}": value for q, value in summary["score_quantiles"].items()}
    made = {"name": name, "recipe": ours.get("recipe", 1), "seed": ours["seed"]}
    return made | row | quantiles | {"return_deviation": deviation}


def write(path: Path, table: Mapping[str, Row]) -> None:
    """Write rows as CSV."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for row in table.values():
            writer.writerow({key: f"{row[key]:.6g}" if isinstance(row[key], float) else row[key] for key in FIELDS})


def read(path: Path) -> dict[str, Row]:
    """Rows that ``write`` wrote."""
    with open(path, newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    if not found or set(found[0]) != set(FIELDS):
        raise SappError(f"{path}: not a table of datasets; its columns should be {', '.join(FIELDS)}")
    return {row["name"]: {key: row[key] if key == "name" else float(row[key]) for key in FIELDS} for row in found}


def markdown(table: Mapping[str, Row]) -> str:
    """The table; a dataset that is not among the rows has only D4RL's figures."""
    published = [name for name in table if name in D4RL_RETURNS]
    met = sum(is_near(name, table[name]["return_mean"]) for name in published)
    caption = (
        f"Mean return within {100 * TOLERANCE:.0f} % of D4RL's published one: {met} of {len(published)}. "
        "≈ marks an estimate: we found no published value, and do not count it."
    )
    cells = [(name, *_cells(name, table.get(name))) for name in NAMES]
    return markdown_table("The eighteen datasets", caption, HEADINGS, cells).markdown().rstrip()


def short(table: Mapping[str, Row]) -> str:
    """Mean scores, a row per environment and a column per quality, D4RL's in brackets."""
    lines = []
    for environment in ENVIRONMENTS:
        names = [f"{environment}-{quality}" for quality in QUALITIES]
        ours = [normalized_score(environment, table[name]["return_mean"]) for name in names]
        cells = [f"{round(score, 1) + 0.0} ({_score(name)})" for score, name in zip(ours, names, strict=True)]
        lines.append([environment, *cells])
    caption = "Mean normalised score of the episodes, D4RL's in brackets (≈: an estimate, as none is published)."
    return markdown_table("Scores", caption, ("environment", *QUALITIES), lines).markdown().rstrip()


def _score(name: str) -> str:
    """D4RL's mean score."""
    score = normalized_score(parse(name).environment, d4rl_return(name))
    return f"{score:.1f}" if name in D4RL_RETURNS else f"≈ {score:.0f}"


def is_near(name: str, mean_return: float) -> bool:
    """Whether a mean return is within the tolerance of D4RL's."""
    level = d4rl_return(name)
    return abs(mean_return - level) <= TOLERANCE * abs(level)


def _cells(name: str, row: Row | None) -> list[str]:
    which, level = parse(name), d4rl_return(name)
    published = name in D4RL_RETURNS
    theirs = {
        "return": f"{level:,.1f}" if published else f"≈ {level:,.0f}",
        "episodes": f"{which.d4rl_episodes:,}",
        "length": f"{which.transitions / which.d4rl_episodes:.1f}",
        "score": _score(name),
        "spread": f"{D4RL_RETURNS[name][1]:,.0f}" if published else "",
    }
    if row is None:
        return ["not made", theirs["return"], "", "", "", theirs["episodes"], "", theirs["length"], "",
                theirs["score"], "", theirs["spread"]]  # fmt: skip
    mean, deviation = row["return_mean"], row["return_deviation"]
    return [
        f"{mean:,.1f} ± {deviation / max(row['episodes'] - 1, 1) ** 0.5:.1f}",
        theirs["return"],
        f"{mean / level:.3f}",
        ("yes" if is_near(name, mean) else "no") if published else "(estimate)",
        f"{row['episodes']:,.0f}",
        theirs["episodes"],
        f"{row['length_mean']:.1f}",
        theirs["length"],
        f"{normalized_score(which.environment, mean):.1f}",
        theirs["score"],
        f"{deviation:,.0f}",
        theirs["spread"],
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, or put it into the page that is named."""
    parser = argparse.ArgumentParser(description="The table of the eighteen datasets beside D4RL's figures.")
    parser.add_argument("page", nargs="?", type=Path, help="page to put it into; without one it is printed")
    parser.add_argument("--write", type=Path, metavar="CSV", help="also write its numbers to this file")
    parser.add_argument("--read", type=Path, metavar="CSV", help="take the numbers from this file")
    given = parser.parse_args(arguments)
    table = rows() if given.read is None else read(given.read)
    if given.write:
        write(given.write, table)
    if given.page:
        write_sections(given.page, {"eighteen": markdown(table)})
    else:
        print(markdown(table))


if __name__ == "__main__":
    main()
