"""Numbers on pages: which there are, and what holds each of them.

A number is held if it stands in a marked section, which a script writes from committed rows; or in a claim, a fragment
of a page that ``claims.py`` makes from rows; or if ``given_numbers.toml`` says that it is a setting or somebody else's
figure. On a reference page it is also held if it is a literal of the package's code (on an algorithm's page, of its own
module and those that it is made of): there it is a default; but for shares, and numbers with a unit of time, of memory
or of speed, which are measured.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
GIVEN = Path(__file__).with_name("given_numbers.toml")
PAGES = [
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/**/*.md")),
    *(page for page in sorted(ROOT.glob("studies/**/*.md")) if "rows" not in page.parts),
]
RESULTS = {
    "README.md", "docs/atari-data.md", "docs/benchmarks.md", "docs/datasets.md", "docs/performance.md",
    "docs/physics.md", "docs/precision.md", "docs/state-ratios.md", "docs/theory.md",
}  # fmt: skip
"""Pages that tell results, with the studies'; all others are reference pages."""

NUMBER = re.compile(r"(?<![\w.,/^_])[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?(?![\d⁰¹²³⁴⁵⁶⁷⁸⁹⁻])")
UNITS = (
    "%|‰|×|times|points?|steps/s|run-steps|per second|µs|ms|s|seconds|minutes|hours|days|kB|MB|GB|MiB|GiB|TB/s|"
    "GFLOP|TFLOP/s|W|thousandths"
)
UNIT = re.compile(rf"\s?(?:{UNITS})(?![\w])")
COUNTED = re.compile(r" of (?:the )?\d")
"""So many of so many."""
MEASURED = re.compile(
    r"\s?(?:%|‰|steps/s|run-steps|per second|µs|ms|s|seconds|minutes|hours|days|kB|MB|GB|TB/s|GFLOP|TFLOP/s|W)(?![\w])"
)
IMPORTED = re.compile(r"^from sapp\.algorithms\.(\w+) import", re.MULTILINE)
NOT_READ = re.compile(
    r"(?:<!-- made:.*?<!-- end of [\w-]+ -->)|```.*?```|`[^`\n]*`|<!--.*?-->|"
    r"\]\([^)\n]*\)|https?://\S+|\d+(?:\.\d+){2,}|(?:Python|JAX)(?: ≥)? \d\.\d+",
    re.DOTALL,
)
"""What no reader takes for a figure of the page, and sections that scripts write."""


def name(page: Path) -> str:
    """A page's path from the root."""
    return page.relative_to(ROOT).as_posix()


def plain(text: str) -> str:
    """Text with one kind of minus sign and without bold marks."""
    return text.replace("−", "-").replace("**", "")


def blank(found: re.Match[str]) -> str:
    """As many spaces, with the line breaks kept."""
    return re.sub(r"[^\n]", " ", found[0])


def told(text: str) -> Iterator[tuple[int, int, str]]:
    """Line, place and text of every number that may be a result: decimals, large numbers, numbers with a unit."""
    text = NOT_READ.sub(blank, plain(text))
    for found in NUMBER.finditer(text):
        digits = found[0].lstrip("+-")
        large = float(digits.replace(",", "")) >= 100 and not re.fullmatch(r"(19|20)\d\d", digits)
        if "." in digits or "e" in digits or "," in digits or large or _has_unit(text, found.end()):
            yield text.count("\n", 0, found.start()) + 1, found.start(), digits


def _has_unit(text: str, end: int) -> bool:
    return bool(UNIT.match(text, end) or COUNTED.match(text, end))


@cache
def given() -> dict[str, dict[str, str]]:
    """By page: numbers in words of their kind."""
    return tomllib.loads(GIVEN.read_text(encoding="utf-8"))


def declared(page: str) -> set[str]:
    """The numbers that are a page's settings, definitions, or figures of others."""
    return {word for words in given().get(page, {}).values() for word in words.split()}


def code_of(page: str) -> list[Path]:
    """Modules whose literals hold numbers of a reference page: all, or those that an algorithm is made of."""
    own = ROOT / "sapp" / "algorithms" / f"{Path(page).stem.replace('-', '_')}.py"
    if not (page.startswith("docs/algorithms/") and own.is_file()):
        return sorted((ROOT / "sapp").rglob("*.py"))
    found, waiting = {own}, [own]
    while waiting:
        text = waiting.pop().read_text(encoding="utf-8")
        used = {ROOT / "sapp" / "algorithms" / f"{module}.py" for module in IMPORTED.findall(text)} - found
        found |= used
        waiting += used
    return sorted(found | set((ROOT / "sapp" / "networks").glob("*.py")))


@cache
def literals(page: str) -> frozenset[float]:
    """Every number that the code behind a reference page has as a literal."""
    found: set[float] = set()
    for file in code_of(page):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
                found |= {float(node.value), 100 * float(node.value)}
    return frozenset(found)


def covered(text: str, claims: Iterable[str]) -> tuple[set[int], list[str]]:
    """Places of a page inside of claims, and the claims that are not on it."""
    text = plain(text)
    places: set[int] = set()
    missing = []
    for claim in claims:
        starts = [found.start() for found in re.finditer(re.escape(plain(claim)), text)]
        for start in starts:
            places |= set(range(start, start + len(plain(claim))))
        if not starts:
            missing.append(claim)
    return places, missing


def unheld(page: Path, claims: Iterable[str]) -> list[str]:
    """The numbers of a page that nothing holds, each with its line."""
    text = page.read_text(encoding="utf-8")
    places, _ = covered(text, claims)
    allowed = declared(name(page))
    code = literals(name(page)) if name(page) not in RESULTS and not name(page).startswith("studies/") else frozenset()
    lines = plain(text).splitlines()
    return [
        f"{name(page)}:{line}: {number} in {lines[line - 1][:100]!r}"
        for line, place, number in told(text)
        if place not in places
        and number not in allowed
        and (float(number.replace(",", "")) not in code or MEASURED.match(plain(text), place + len(number)))
    ]
