"""Marked sections of pages, made from rows: what stands between two marks is written by a command, not by hand.

    <!-- made: NAME by python -m studies.theory write -->
    ...
    <!-- end of NAME -->
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from sapp.core.errors import SappError
from sapp.core.files import write_text
from sapp.report.content import content
from sapp.report.sources import read

SECTION = re.compile(
    r"(<!-- made: (?P<name>[\w-]+) by [^>]*? -->\n)(?P<text>.*?)\n?(?P<end><!-- end of (?P=name) -->)", re.DOTALL
)
"""A marked section: its name and its text."""


def sections_of(page: Path) -> dict[str, str]:
    """The marked sections of a page by name."""
    return {found["name"]: found["text"] for found in SECTION.finditer(page.read_text(encoding="utf-8"))}


def write_sections(page: Path, made: Mapping[str, str]) -> None:
    """Put texts between the marks of a page that bear their names; sections of other names stay as they are."""
    if not sections_of(page):
        raise SappError(f"{page}: no marked section; one begins with '<!-- made: NAME by COMMAND -->'")

    def replaced(found: re.Match[str]) -> str:
        text = made.get(found["name"], found["text"])
        return f"{found[1]}{text.strip()}\n{found['end']}"

    write_text(page, SECTION.sub(replaced, page.read_text(encoding="utf-8")))


def report_sections(sources: Sequence[str | Path]) -> dict[str, str]:
    """The tables of a report as Markdown by name, and what it says in words as ``sentences``.

    Example: ``report_sections(["studies/six_datasets/rows/scores.csv"])["layout"]``.
    """
    (experiment,) = read(list(sources))
    made = content(experiment)
    found = {name: table.markdown().strip() for name, table in made.tables.items()}
    return found | {"sentences": "\n".join(f"- {sentence}" for sentence in made.sentences)}
