"""Words that only we would use are gone from pages, help and messages; what to write instead stands beside each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UNIT = "state|cell|second|member|seed|step|run-step|batch|critic|row|game|layer|tile|dataset"
COUNTED = (
    "steps|run-steps|updates|transitions|frames|actions|seeds|scores|µs|ms|GFLOP|bytes|kernels|masks|"
    "variants|episodes|penalty|visit|[0-9]"
)
INSTEAD = {
    rf"(?:{COUNTED}) an? (?:{UNIT})": "per",
    "told apart|tells? (?:\\w+ ){1,3}apart": "no significant difference; distinguish, separate",
    "laws?": "distribution",
    "processors?": "CPU",
    "mend(?:s|ed|ing)?": "fix",
    "one's own": "your own",
    "(?:fell|is|was) sick": "unreliable",
    "healthy again": "reliable again",
    "lockstep": "together; online evaluation",
    "harvest(?:s|ed|ing)?": "collect results",
    "foyer": "uneven coverage",
    "halves\\.py|by halves|half-precision parts": "split float16",
    "thinned": "dropout samples; downsampled",
    "values_and_slopes|slopes\\.py": "action gradients",
    "whole_or_none": "discard_on_failure",
    "(?:of|are|as|taken as \\w+|numbers of) choices": "discrete actions",
    "0: (?:never|off)": "(0 = off)",
}
"""A pattern (of whole words, in any case) and what to write."""
NAMES = {
    "lockstep": "online_evaluation", "harvest": "collect_results", "foyer": "uneven_coverage",
    "slopes": "action_gradient", "judged": "reports_health", "lanes": "shared_batches", "beside": "background",
    "meanings": "field_docs", "halves": "split_fp16", "thinned": "dropout_samples", "screen": "frame_env",
    "tracks": "RunLogger", "whole_or_none": "discard_on_failure",
}  # fmt: skip
"""What nothing is called in sapp, in any case, and the name that it has."""
VAGUE = {"tables", "replay", "scores", "summary"}
"""No names of modules in sapp: they do not say whose."""
ALLOWED = re.compile(
    r"Hoeffding.{0,20}|law of large numbers|multiprocessor|choices of ours|-choices|torch [\d.]+ for processors"
)
"""Contexts in which a word is meant as everybody means it."""
WRONG = {name: re.compile(rf"(?<![\w`])(?:{name})(?![\w])", re.IGNORECASE) for name in INSTEAD}
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("studies/**/*.md"))]
MODULES = [file for folder in ("sapp", "studies", "bench") for file in sorted((ROOT / folder).rglob("*.py"))]


def texts(file: Path) -> Iterator[tuple[int, str]]:
    """The strings of a module (docstrings, help, messages), without those that are keys or names."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def hits(text: str) -> list[str]:
    """What a text says that it should not, and what to write instead."""
    text = ALLOWED.sub("", text)
    return [f"{found[0]!r}: {INSTEAD[name]}" for name, wrong in WRONG.items() if (found := wrong.search(text))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_uses_the_words_of_the_field(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert [f"{number}: {hit}" for number, line in enumerate(lines, 1) for hit in hits(line)] == []


def test_help_messages_and_docstrings_use_the_words_of_the_field() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}: {hit}"
        for file in MODULES
        for line, text in texts(file)
        for hit in hits(text)
    ]
    assert found == []


def test_names_in_the_code_are_of_the_field() -> None:
    found = []
    for file in sorted((ROOT / "sapp").rglob("*.py")):
        assert file.stem not in VAGUE | NAMES.keys(), file
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            name = getattr(node, "name", None) or getattr(node, "arg", None)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = node.id
            if isinstance(name, str) and name.strip("_").lower() in NAMES:
                found.append(f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}: {name}")
    assert found == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("three seeds a cell", "per"),
        ("not told apart on 5 of 6 datasets", "no significant difference; distinguish, separate"),
        ("the processor's cores", "CPU"),
        ("mend that and try again", "fix"),
        ("an algorithm of one's own", "your own"),
        ("stepped in lockstep", "together; online evaluation"),
    ],
)
def test_a_word_of_ours_is_found(text: str, expected: str) -> None:
    assert [hit.split(": ", 1)[1] for hit in hits(text)] == [expected]
    assert hits("A snapshot and kind; 0: never") == ["'0: never': (0 = off)"]


def test_ordinary_sentences_are_left_alone() -> None:
    assert hits("Each of three multiprocessors takes a step; a state has a weight, and a second run takes half.") == []
