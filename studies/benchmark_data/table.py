"""The table of all eighteen for docs/datasets.md, from the datasets that are made on this machine.

python -m studies.benchmark_data.table                    prints it
python -m studies.benchmark_data.table docs/datasets.md   puts it between the page's two marks
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sapp.collect.benchmark.make import standing
from sapp.core.errors import SappError
from sapp.core.files import write_text
from sapp.data.benchmark_names import D4RL_RETURNS, EXPERT, MEDIUM, MEDIUM_TOLERANCE, parse
from sapp.data.normalised_scores import normalized_score

BEGIN, END = "<!-- table: python -m studies.benchmark_data.table docs/datasets.md -->", "<!-- end of table -->"
HEADINGS = (
    "dataset", "transitions", "episodes", "D4RL's episodes", "mean score ± s.e.", "5 / 25 / 50 / 75 / 95 %",
    "D4RL's mean", "terminals", "wanted",
)  # fmt: skip
RANDOM_TOLERANCE = 1.0


def markdown(root: Path | None = None) -> str:
    """The table; a dataset that is not made has an empty row."""
    lines = [f"| {' | '.join(HEADINGS)} |", "|---" * len(HEADINGS) + "|"]
    for each in standing(root):
        cells = ["not made", *[""] * (len(HEADINGS) - 2)] if each.made is None else _cells(each.name, each.made)
        lines.append(f"| {each.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def wanted(name: str, score: float) -> str:
    """What the benchmark asks of a dataset's mean score, and whether it holds; nothing for mixtures and replays."""
    environment, quality = parse(name)
    if quality == "random":
        level = d4rl_score(name)
        assert level is not None
        return _verdict(f"within {RANDOM_TOLERANCE:g} of {level:.1f}", abs(score - level) <= RANDOM_TOLERANCE)
    if quality == "medium":
        level = MEDIUM[environment]
        return _verdict(f"within {MEDIUM_TOLERANCE:g} of {level:g}", abs(score - level) <= MEDIUM_TOLERANCE)
    if quality == "expert":
        return _verdict(f"at least {EXPERT[environment]:g}", score >= EXPERT[environment])
    return ""


def d4rl_score(name: str) -> float | None:
    """Mean normalised score of D4RL's own file, where its mean return is published."""
    if name not in D4RL_RETURNS:
        return None
    return float(normalized_score(parse(name).environment, D4RL_RETURNS[name][0]))


def put(page: Path, table: str, begin_mark: str = BEGIN, end_mark: str = END) -> None:
    """Replace what stands between two marks of a page."""
    text = page.read_text(encoding="utf-8")
    head, begin, rest = text.partition(begin_mark)
    _, end, tail = rest.partition(end_mark)
    if not begin or not end:
        raise SappError(f"{page}: no place for the table; it stands between {begin_mark!r} and {end_mark!r}")
    write_text(page, f"{head}{begin_mark}\n{table}\n{end_mark}{tail}")


def main(arguments: Sequence[str]) -> None:
    """Print the table, or put it into the page that is named."""
    table = markdown()
    if arguments:
        put(Path(arguments[0]), table)
    else:
        print(table)


def _verdict(text: str, holds: bool) -> str:
    return f"{text}: {'yes' if holds else '**no**'}"


def _cells(name: str, made: dict[str, Any]) -> list[str]:
    summary = made["sapp"]["summary"]
    level = d4rl_score(name)
    return [
        f"{summary['transitions']:,}",
        f"{summary['episodes']:,}",
        f"{parse(name).d4rl_episodes:,}",
        f"{summary['score_mean']:.2f} ± {summary['score_error']:.2f}",
        " / ".join(f"{value:.1f}" for value in summary["score_quantiles"].values()),
        "" if level is None else f"{level:.2f}",
        f"{summary['terminals']:,}",
        wanted(name, summary["score_mean"]),
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
