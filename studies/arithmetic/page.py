"""The tables of the page, from the study's rows and the bench's: python -m studies.arithmetic.page"""

from __future__ import annotations

from pathlib import Path

from sapp.report.marked_sections import write_sections
from studies.arithmetic.arithmetic import agreement, read_rows, table

HERE = Path(__file__).parent
PAGE = HERE / "README.md"


def sections() -> dict[str, str]:
    """The marked sections of the page."""
    rows = read_rows(HERE / "rows.csv")
    found = agreement(rows, "tf32", "mixed")
    value, td = (100 * max(abs(getattr(each, f"{name}_difference")) for each in found) for name in ("value", "td"))
    says = (
        f"Over the last third of training mean values differ from TF32's by {value:.2f} % at most and TD errors by "
        f"{td:.1f} % at most, over {len(found)} datasets."
    )
    return {"mixed": table(rows, "tf32", "mixed"), "float16": table(rows, "tf32", "float16"), "says": says}


if __name__ == "__main__":
    write_sections(PAGE, sections())
