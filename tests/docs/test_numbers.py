"""Every number on the pages is held: by the script that writes it, by code and rows, or it is declared as given.

To add a result, let a script write it: put ``<!-- made: NAME by python -m MODULE -->`` and ``<!-- end of NAME -->``
into the page and the text into the module's ``sections()``. Or make the fragment from code or rows in one of
``fragments_*.py``. What neither could say otherwise is declared in ``given``, with the words around it.
"""

from __future__ import annotations

import ast
import importlib
import re

import pytest
from fragments import FRAGMENTS, fragments
from page_numbers import KINDS, PAGES, ROOT, elsewhere, given, missing, numbers, phrases, places, text_of, unheld

from sapp.report.marked_sections import sections_of

MADE = re.compile(r"<!-- made: ([\w-]+) by python -m ([\w.]+)[^>]*-->")
CURE = "let a script write it, make a fragment from code or rows (tests/docs/fragments_*.py), or declare it (given/)"


MARKED = [page for page in PAGES if page.endswith(".md") and sections_of(ROOT / page)]


@pytest.mark.parametrize("page", PAGES)
def test_every_number_is_held(page: str) -> None:
    text = text_of(page)
    found = unheld(text, [*fragments(page), *phrases(page)])
    lines = text.splitlines()
    said = [f"{page}:{each.line}: {each.text} in {lines[each.line - 1][:120]!r}" for each in found]
    assert said == [], f"nothing holds these numbers; {CURE}:\n" + "\n".join(said)


@pytest.mark.parametrize("page", FRAGMENTS)
def test_what_code_and_rows_say_stands_on_the_page(page: str) -> None:
    assert missing(text_of(page), fragments(page)) == []


@pytest.mark.parametrize("page", MARKED)
def test_every_marked_section_is_what_its_script_makes(page: str) -> None:
    found = sections_of(ROOT / page)
    makers = dict(MADE.findall(text_of(page)))
    assert set(makers) == set(found), "a section is not closed, or its mark is not of the form that scripts read"
    for maker in sorted(set(makers.values())):
        made = importlib.import_module(maker).sections()
        for each in (each for each in found if makers[each] == maker):
            assert found[each] == made[each].strip(), f"{each}: python -m {maker}"


@pytest.mark.parametrize("page", [page for page in PAGES if phrases(page)])
def test_given_phrases_are_on_their_page_and_needed(page: str) -> None:
    """What is declared and no longer there, or held by code anyway, would let another number pass."""
    text, mine = text_of(page), phrases(page)
    assert missing(text, mine) == [], "not on the page"
    open_numbers = {each.place for each in unheld(text, fragments(page))}
    idle = [each for each in mine if not any(open_numbers & set(span) for span in places(text, each))]
    assert idle == [], "no number in these that nothing else holds"


def test_what_is_given_is_of_a_known_kind_on_a_known_page() -> None:
    assert {kind for kinds in given().values() for kind in kinds} <= set(KINDS)
    assert set(given()) <= set(PAGES)


def test_tests_that_hold_numbers_elsewhere_are_there() -> None:
    for phrase, test in elsewhere():
        file, _, function = test.partition("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert function in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}, (phrase, test)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it scores 51.3 (49.9–52.7)", ["51.3", "49.9", "52.7"]),
        ("**12 %** of 3 seeds, 1,773 frames, 400 worlds", ["12", "3", "1,773", "400"]),
        ("takes 47 minutes since 2026, −3.5 below; α = 5", ["47", "2026", "3.5", "5"]),
        ("`0.99` and [here](a-1.5.md), version 2.8.1, d3rlpy, 10⁻³, 2e-5 off", ["0.99", "2.8.1", "10", "2e-5"]),
        ("```\nsapp --n 4  # 1.5 s\n```\n<!-- made: a by python -m b -->\n1.5\n<!-- end of a -->\n7", ["1.5", "7"]),
        ("1. | 0.5 | 256-256 | 16×16 | 20k |", ["0.5", "256", "256", "16", "16", "20"]),
        ("Theorems 1, 3 and 5 on two of Half the twelve; `hopper-medium-v2`", ["two", "Half", "twelve"]),
    ],
)
def test_numbers_are_found_in_digits_and_in_words(text: str, expected: list[str]) -> None:
    assert [each.text for each in numbers(text)] == expected


def test_a_fragment_holds_its_own_place_only() -> None:
    text = "CQL has 5.3 and SA-CQL\n**−5.3**."
    assert [each.place for each in unheld(text, ["SA-CQL −5.3"])] == [text.index("5.3")]
    assert missing(text, ["SA-CQL −5.3", "DualDICE 5.3"]) == ["DualDICE 5.3"]
