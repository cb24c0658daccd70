"""Fragments of pages that are made from code and committed rows: the register, and what makes them easy to make.

Each stands on its page word for word, whatever the line breaks. Modules ``fragments_*.py`` beside this one make them.
"""

from __future__ import annotations

import ast
import csv
import importlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
WORDS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
)  # fmt: skip
Fragments = Callable[[], Iterator[str]]
FRAGMENTS: dict[str, list[Fragments]] = defaultdict(list)
"""By page."""


def fragments_of(page: str) -> Callable[[Fragments], Fragments]:
    """Register what makes some of a page's fragments."""

    def register(made: Fragments) -> Fragments:
        FRAGMENTS[page].append(made)
        return made

    return register


@cache
def fragments(page: str) -> tuple[str, ...]:
    """All fragments of a page."""
    return tuple(fragment for make in FRAGMENTS.get(page, ()) for fragment in make())


def word(count: float) -> str:
    """A whole number in words."""
    assert count == int(count)
    return {20: "twenty", 30: "thirty", 50: "fifty", 100: "hundred"}.get(int(count)) or WORDS[int(count)]


def assigned(file: str, name: str) -> ast.expr:
    """What a module of the tests sets a name to, as it is written there."""
    for node in ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(each, ast.Name) and each.id == name for each in targets):
            return node.value
    raise AssertionError(f"{file} has no {name}")


def keys(file: str, name: str) -> list[str]:
    """The keys of a dictionary of the tests, without those of dictionaries that it unpacks."""
    return [each.value for each in assigned(file, name).keys if each is not None]


def values(file: str, name: str) -> Any:
    """A literal of the tests."""
    return ast.literal_eval(assigned(file, name))


def of_make(name: str) -> int:
    """A number that the Makefile sets."""
    (found,) = re.findall(rf"(?m)^{name} \?= (\d+)$", (ROOT / "Makefile").read_text(encoding="utf-8"))
    return int(found)


def csv_rows(file: str) -> list[dict[str, str]]:
    """Rows of a study."""
    with open(ROOT / "studies" / file, encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened))


for each in sorted(Path(__file__).parent.glob("fragments_*.py")):
    importlib.import_module(each.stem)
