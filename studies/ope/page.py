"""The tables of the page, from the study's rows: python -m studies.ope.page"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sapp.report.marked_sections import write_sections
from studies.ope.coverage import section
from studies.ope.rows import read
from studies.ope.tables import allowed, covered, grouped, pooled, tables

HERE = Path(__file__).parent
PAGE = HERE / "README.md"


def sections() -> dict[str, str]:
    """The marked sections of the page."""
    made = {each.name.lower(): each.markdown().strip() for each in tables(HERE / "rows")}
    return made | {"says": says(), "coverage": section(read(HERE / "rows" / "control"))}


def says() -> str:
    """What the tables say, in numbers: coverage by estimator, and what became of the early checkpoints."""
    rows = pooled(read(HERE / "rows"))
    keep = allowed(rows)
    kept = [row for row in rows if (row["problem"], row["policy"], row["draw"]) in keep]
    lines = []
    for kind, ends in (("locomotion", ("family",)), ("finite tasks", ("500", "2000", "5000", "200"))):
        of = [row for row in kept if str(row["problem"]).endswith(ends)]
        for name, label in (("fqe", "FQE"), ("dice", "DualDICE"), ("dr", "the combination")):
            problems = grouped([row for row in of if row["estimator"] == name], "problem").values()
            shares = [float(np.mean([covered(row) for row in found])) for found in problems]
            lines.append(f"- {label} on {kind}, not refused: {min(shares):.0%} to {max(shares):.0%} cover the truth.")
    trusted = [row for row in rows if row["verdict"] == "trusted" and str(row["problem"]).endswith("family")]
    lines.append(f"- Trusted on locomotion: {sum(covered(row) for row in trusted)} of {len(trusted)} intervals cover.")
    early = [row for row in rows if str(row["problem"]).endswith("checkpoints") and row["verdict"]]
    refused, fine, unsure = (
        [row for row in early if row["verdict"] == verdict] for verdict in ("refused", "trusted", "doubtful")
    )
    lines.append(
        f"- Of {len(early)} early checkpoints {len(refused)} are refused, {len(fine) or 'none'} trusted and "
        f"{len(unsure)} doubtful; of the doubtful {sum(not covered(row) for row in unsure)} intervals miss the truth."
    )
    return "\n".join(lines)


if __name__ == "__main__":
    write_sections(PAGE, sections())
