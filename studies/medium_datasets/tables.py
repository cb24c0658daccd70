"""The study's tables, from its rows: python -m studies.medium_datasets.tables"""

from __future__ import annotations

from pathlib import Path

from sapp.report.marked_sections import report_sections, write_sections

HERE = Path(__file__).parent
PAGE = HERE / "README.md"


def sections() -> dict[str, str]:
    """The marked sections of the page."""
    return report_sections([HERE / "rows" / "hopper", HERE / "rows" / "halfcheetah-walker2d"])


if __name__ == "__main__":
    write_sections(PAGE, sections())
