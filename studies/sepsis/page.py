"""The tables of the page, from the study's rows: python -m studies.sepsis.page"""

from __future__ import annotations

from pathlib import Path

from sapp.report.marked_sections import write_sections
from studies.sepsis.experiment import summarise
from studies.sepsis.figures import label, tables
from studies.sepsis.rows import read_rows

HERE = Path(__file__).parent
PAGE = HERE / "README.md"


def sections() -> dict[str, str]:
    """The marked sections of the page."""
    found = {}
    for name in ("kl", "cql"):
        summary = summarise(read_rows(HERE / "rows" / f"{name}.csv"))
        found[name] = "\n\n".join(each.markdown().strip() for each in tables(summary))
        lines = []
        for line in summary:
            against = line.against_pp
            if line.method in ("w", "count") and against is not None:
                estimate, low, high = (1e3 * value for value in against.interval())
                told = f"{estimate:+.1f} ({low:+.1f} to {high:+.1f})".replace("-", "−")
                lines.append(f"- {line.size:,} transitions, {label(line.method)}: {told} thousandths against PP.")
        found[f"{name}-short"] = "\n".join(lines)
    return found


if __name__ == "__main__":
    write_sections(PAGE, sections())
