"""Every number on the pages is held: by the script that writes it, by rows, by the code, or it is declared as given.

To add a result, let a script write it: put ``<!-- made: NAME by python -m MODULE -->`` and ``<!-- end of NAME -->``
into the page and the text into the module's ``sections()``. Or make the fragment from rows in ``claims.py``. A setting,
or a figure that somebody else published, is declared in ``given_numbers.toml``.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest
from claims import CLAIMS
from page_numbers import PAGES, RESULTS, ROOT, covered, declared, given, literals, name, plain, told, unheld

from sapp.report.marked_sections import sections_of

MADE = re.compile(r"<!-- made: ([\w-]+) by python -m ([\w.]+)[^>]*-->")
CURE = "let a script write it, make the fragment from rows in tests/docs/claims.py, or declare it in given_numbers.toml"


def page_id(page: Path) -> str:
    return name(page)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_every_number_is_held(page: Path) -> None:
    make = CLAIMS.get(name(page))
    found = unheld(page, make() if make else ())
    assert found == [], f"nothing holds these numbers; {CURE}:\n" + "\n".join(found)


@pytest.mark.parametrize("page", CLAIMS)
def test_every_claim_made_from_rows_stands_on_its_page(page: str) -> None:
    _, missing = covered((ROOT / page).read_text(encoding="utf-8"), CLAIMS[page]())
    assert missing == [], f"{page} says otherwise than its rows"


@pytest.mark.parametrize("page", [page for page in PAGES if sections_of(page)], ids=page_id)
def test_every_marked_section_is_what_its_script_makes(page: Path) -> None:
    found = sections_of(page)
    makers = dict(MADE.findall(page.read_text(encoding="utf-8")))
    assert set(makers) == set(found), "a section is not closed, or its mark is not of the form that scripts read"
    for maker in sorted(set(makers.values())):
        made = importlib.import_module(maker).sections()
        for each in (each for each in found if makers[each] == maker):
            assert found[each] == made[each].strip(), f"{each}: python -m {maker}"


def test_given_numbers_are_on_their_pages() -> None:
    """What is declared and no longer there would let a result of that value pass."""
    idle = {}
    for page in given():
        text = (ROOT / page).read_text(encoding="utf-8")
        idle[page] = sorted(declared(page) - {number for _, _, number in told(text)})
    assert {page: numbers for page, numbers in idle.items() if numbers} == {}


def test_kinds_of_given_numbers_and_results_pages_are_known() -> None:
    assert {kind for kinds in given().values() for kind in kinds} <= {"settings", "published", "tests"}
    assert {name(page) for page in PAGES} >= RESULTS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it scores 51.3 (49.9–52.7)", ["51.3", "49.9", "52.7"]),
        ("**12 %** of 3 seeds, 1,773 frames, 400 worlds", ["12", "1,773", "400"]),
        ("takes 47 minutes since 2026, −3.5 below; α = 5", ["47", "3.5"]),
        ("`0.99` and [here](a-1.5.md), version 2.8.1, d3rlpy, 10⁻³, s₁, 2e-5 off", ["2e-5"]),
        ("```\n1.5\n```\n<!-- made: a by python -m b -->\n1.5\n<!-- end of a -->\n7.5", ["7.5"]),
        ("| 0.5 | 256-256 | 16×16 |", ["0.5", "256", "256"]),
        ("27 of 37 cases, 5 of the 8; one of 9", ["27", "5"]),
    ],
)
def test_numbers_that_may_be_results_are_found(text: str, expected: list[str]) -> None:
    assert [number for _, _, number in told(text)] == expected


def test_an_algorithms_page_is_held_by_its_own_defaults() -> None:
    """Another algorithm's rate or discount is none of its own."""
    assert {0.99, 3e-4} <= literals("docs/algorithms/edac.md")
    assert 0.95 not in literals("docs/algorithms/edac.md")
    assert literals("docs/algorithms/edac.md") < literals("docs/cli.md")


def test_a_claim_covers_its_own_place_only() -> None:
    text = "CQL has 5.3 and SA-CQL **−5.3**."
    places, missing = covered(text, ["SA-CQL −5.3", "DualDICE 5.3"])
    assert missing == ["DualDICE 5.3"]
    assert plain(text).index("5.3") not in places
    assert plain(text).rindex("5.3") in places
