"""Every relative link of the README, the docs and the studies leads to a file, and to a heading where it names one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OWN = [ROOT / "README.md", ROOT / "bench" / "README.md"]
PAGES = [*OWN, *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("studies/**/*.md"))]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s,]+)\)")


def anchors(page: Path) -> set[str]:
    """The anchors that a page's headings get on GitHub."""
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_resolve(page: Path) -> None:
    lost = []
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            lost.append(link)
    assert lost == []


def test_every_study_with_rows_has_a_page() -> None:
    folders = [path.parent for path in (ROOT / "studies").glob("*/rows")]
    assert len(folders) > 5
    assert [path.name for path in folders if not (path / "README.md").is_file()] == []
