"""Numbers on pages: which there are, in digits and in words, and what holds each of them.

A number is held if it stands in a marked section, which a script writes from committed rows; in a fragment, which
``fragments_*.py`` make from code and rows; or in a phrase of ``given/*.toml``, which says why nothing could make it.
Everything else on a page is scanned: prose, tables, code between backticks, comments in blocks of code. Only what names
a thing is not a number: labels of the paper (Theorem 3), links, and digits within a word (float32).
"""

from __future__ import annotations

import json
import pkgutil
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from inspect import cleandoc, isclass, isfunction
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
GIVEN = Path(__file__).parent / "given"
SHOWN = re.compile(r"^::: ([\w.]+)", re.MULTILINE)
"""What a page of the reference shows the docstrings of."""


def _pages() -> Iterator[str]:
    files = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("docs/**/*.ipynb"))]
    files += [page for page in sorted(ROOT.glob("studies/**/*.md")) if "rows" not in page.parts]
    shown: dict[str, None] = {}
    for file in files:
        yield file.relative_to(ROOT).as_posix()
        shown |= dict.fromkeys(SHOWN.findall(file.read_text(encoding="utf-8")))
    yield from shown


PAGES = tuple(_pages())
"""Files by their path from the root, and what the reference shows by its name."""
KINDS = {
    "definition": "what a word, a formula or a convention means: no code and no row could say otherwise",
    "example": "of an example that the page makes up",
    "published": "somebody else's figure, and the page says whose",
    "elsewhere": "another test holds it: [phrase, test]",
}

DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)*(?:e[+-]?\d+)?|[½¼¾⅓⅔]"
WORDS = (
    "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|"
    "nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundreds?|thousands?|millions?|billions?|dozens?|"
    "half|halves|thirds?|quarters?|fifths?|tenths?|twentieth|hundredths?|twice|thrice"
)
NUMBER = re.compile(rf"(?<![\w.,/^])(?:{DIGITS})|\b(?:{WORDS})\b", re.IGNORECASE)
LABEL = (
    r"(?:Theorem|Lemma|Table|Figure|Section|Proposition|Corollary|Equation|Definition|Assumption|Appendix|Remark)s?"
    r"\s\(?\d+(?:(?:,|\sand|\sto|–|-)\s?\d+)*"
)
NOT_READ = re.compile(
    rf"(?m:^ *\d+\. )|(?:<!-- made:.*?<!-- end of [\w-]+ -->)|<!--.*?-->|\]\([^)\n]*\)|https?://\S+|\b{LABEL}",
    re.DOTALL,
)
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"(?<!\S)# .*")


class Told(NamedTuple):
    """A number on a page."""

    line: int
    place: int
    text: str


@cache
def text_of(page: str) -> str:
    """A page's text; of a notebook its cells of text, of a name of the reference its docstrings."""
    if not page.endswith((".md", ".ipynb")):
        return "\n\n".join(docstrings(pkgutil.resolve_name(page)))
    text = (ROOT / page).read_text(encoding="utf-8")
    if page.endswith(".md"):
        return text
    return "\n\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")


def docstrings(thing: Any) -> Iterator[str]:
    """Of a function or a class and its methods, without examples: another test runs these."""
    own = [thing, *(each for name, each in vars(thing).items() if name[0] != "_")] if isclass(thing) else [thing]
    for each in own:
        if isinstance(each, (property, cached_property)):
            each = getattr(each, "fget", None) or each.func
        each = getattr(each, "__func__", each)
        doc = each.__doc__ if isclass(each) or isfunction(each) else None
        yield re.sub(r"^ *(?:>>>|\.\.\.).*$", "", cleandoc(doc or ""), flags=re.MULTILINE)


def plain(text: str) -> str:
    """Text with one kind of minus sign and without bold marks."""
    return text.replace("−", "-").replace("**", "")


def blank(found: re.Match[str]) -> str:
    """As many spaces, with the line breaks kept."""
    return re.sub(r"[^\n]", " ", found[0])


def comments(block: re.Match[str]) -> str:
    """A block of code with nothing but its comments."""
    kept = bytearray(b" " * len(block[0]))
    for found in COMMENT.finditer(block[0]):
        kept[found.start() : found.end()] = b"#" * len(found[0])
    return "".join(each if each == "\n" or keep == ord("#") else " " for each, keep in zip(block[0], kept, strict=True))


def numbers(text: str) -> Iterator[Told]:
    """Every number on a page outside of marked sections; places are those of its ``plain`` text."""
    text = NOT_READ.sub(blank, FENCE.sub(comments, plain(text)))
    for found in NUMBER.finditer(text):
        yield Told(text.count("\n", 0, found.start()) + 1, found.start(), found[0])


def places(text: str, fragment: str) -> list[range]:
    """Where a fragment stands on a page, whatever the line breaks."""
    words = map(re.escape, plain(fragment).split())
    return [range(*found.span()) for found in re.finditer(r"\s+".join(words), plain(text), re.IGNORECASE)]


def missing(text: str, fragments: Iterable[str]) -> list[str]:
    """The fragments that a page does not have."""
    return [each for each in fragments if not places(text, each)]


def unheld(text: str, fragments: Iterable[str]) -> list[Told]:
    """The numbers of a page that are in none of the fragments."""
    held = {place for fragment in fragments for span in places(text, fragment) for place in span}
    return [each for each in numbers(text) if each.place not in held]


@cache
def given() -> dict[str, dict[str, list[str]]]:
    """By page and kind: phrases with numbers that nothing makes."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for file in sorted(GIVEN.glob("*.toml")):
        for page, kinds in tomllib.loads(file.read_text(encoding="utf-8")).items():
            for kind, phrases in kinds.items():
                found[page][kind] += [each[0] if kind == "elsewhere" else each for each in phrases]
    return found


def elsewhere() -> Iterator[tuple[str, str]]:
    """Phrases that other tests hold, each with its test's file and name."""
    for file in sorted(GIVEN.glob("*.toml")):
        for kinds in tomllib.loads(file.read_text(encoding="utf-8")).values():
            yield from (tuple(each) for each in kinds.get("elsewhere", ()))


def phrases(page: str) -> list[str]:
    """What is given on a page."""
    return [phrase for kind in given().get(page, {}).values() for phrase in kind]
