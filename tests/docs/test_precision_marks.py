"""Figures made with rounded values say so in their place, and no page offers the setting that rounded them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("studies/**/*.md"))]
LISTING = ROOT / "docs" / "precision.md"
MARK = "made with values rounded to bfloat16 (see docs/precision.md); to be made again"
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def affected() -> dict[str, list[str]]:
    """The pages of the table of affected figures, each with what is said of its figures."""
    table = LISTING.read_text(encoding="utf-8").split("| page | figure | how affected |")[1].split("\n\n")[0]
    found: dict[str, list[str]] = {}
    for line in table.strip().splitlines()[1:]:
        page, _, how = (cell.strip() for cell in line.strip().strip("|").split(" | "))
        found.setdefault(LINK.sub(r"\1", page), []).append(how)
    return found


def marks(page: Path) -> int:
    """How often a page carries the mark."""
    return LINK.sub(r"\1", page.read_text(encoding="utf-8")).lower().count(MARK)


def test_the_table_lists_pages_and_how_each_is_affected() -> None:
    assert {how for ways in affected().values() for how in ways} <= {"learned", "speed only"}


@pytest.mark.parametrize("page", affected())
def test_a_listed_page_carries_the_mark(page: str) -> None:
    assert marks(ROOT / page) >= 1


def test_every_marked_page_is_listed() -> None:
    marked = {page.relative_to(ROOT).as_posix() for page in PAGES if marks(page)}
    assert marked == set(affected())


def test_rows_made_with_rounded_values_belong_to_a_listed_study() -> None:
    rows = [*ROOT.glob("studies/*/rows/**/settings.json"), *ROOT.glob("studies/*/rows/**/config.json")]
    studies = {
        path.relative_to(ROOT).parts[1] for path in rows if '"precision": "bf16"' in path.read_text(encoding="utf-8")
    }
    assert len(studies) >= 4
    assert {f"studies/{name}/README.md" for name in studies} <= set(affected())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_page_offers_the_setting_that_is_gone(page: Path) -> None:
    assert "bf16" not in page.read_text(encoding="utf-8").lower()
