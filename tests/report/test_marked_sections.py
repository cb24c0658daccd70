"""Sections of pages that a command writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sapp.core.errors import SappError
from sapp.report.marked_sections import sections_of, write_sections


def test_sections_are_replaced_by_name_and_a_page_without_one_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    one, two = "<!-- made: one by me -->\nold\n<!-- end of one -->\n", "<!-- made: two by me -->\n<!-- end of two -->\n"
    page.write_text(f"a\n{one}b\n{two}")
    write_sections(page, {"one": "new 1"})
    assert sections_of(page) == {"one": "new 1", "two": ""}
    write_sections(page, {"two": "x"})
    assert page.read_text() == "a\n" + one.replace("old", "new 1") + "b\n" + two.replace("-->\n<", "-->\nx\n<")
    page.write_text("nothing\n")
    with pytest.raises(SappError, match="no marked section"):
        write_sections(page, {})
