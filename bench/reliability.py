"""The measured sections of docs/reliability.md, from rows: python -m bench.reliability

The rows: SAPP_ROWS=bench/rows/reliability.jsonl make fuzz faults FUZZ=750
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sapp.report.marked_sections import write_sections
from sapp.report.report_tables import table

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "reliability.md"
NAMED = ("kind", "name", "wrong")


def rows(kind: str) -> list[Mapping[str, Any]]:
    """The rows of a kind: of fuzz, faults or races."""
    lines = (HERE / "rows" / "reliability.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["kind"] == kind]


def total(found: Sequence[Mapping[str, Any]], *names: str) -> int:
    """The sum of some counts of rows."""
    return sum(row.get(name, 0) for row in found for name in names)


def sections() -> dict[str, str]:
    """The marked sections of the page."""
    return {"fuzz": fuzz(), "faults": faults(), "races": races()}


def fuzz() -> str:
    """Cases by format."""
    found = rows("fuzz")
    lines = [
        [row["name"], f"{row['read'] + row['refused']:,}", f"{row['read']:,}", f"{row['refused']:,}"] for row in found
    ]
    said = (
        f"{total(found, 'read', 'refused'):,} cases in {len(found)} formats; {total(found, 'wrong')} tracebacks, "
        "messages of more than a line, or files that the second reader reads differently."
    )
    return table("Fuzz", said, ("format", "cases", "read", "refused"), lines).markdown().strip()


def faults() -> str:
    """Kills and failures, and what was wrong after them."""
    found = rows("faults")
    return (
        f"{total(found, 'killed')} kills and {total(found, 'failed')} failures of {len(found)} commands; after "
        f"{total(found, 'wrong')} of them something was lost, left over, or of other bits."
    )


def races() -> str:
    """Pairs of processes, and what was wrong after them."""
    found = rows("races")
    return f"{_pairs(found)} pairs of {len(found)} kinds; after {total(found, 'wrong')} of them something was wrong."


def _pairs(found: Sequence[Mapping[str, Any]]) -> int:
    """How many pairs rows of races count, by how they ended."""
    return sum(count for row in found for name, count in row.items() if name not in NAMED)


if __name__ == "__main__":
    write_sections(PAGE, sections())
