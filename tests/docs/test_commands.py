"""Every ``sapp`` command on a page is one: its name and its options exist, hyper-parameters included."""

from __future__ import annotations

import contextlib
import json
import re
from functools import cache
from pathlib import Path

import pytest
import typer

from sapp.algorithms.config import options
from sapp.algorithms.registry import ALGORITHMS, preset
from sapp.cli.main import app
from sapp.core.errors import SappError
from sapp.weights.registry import WEIGHTS

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("docs/**/*.ipynb")),
    *sorted(page for page in ROOT.glob("studies/**/*.md") if "rows" not in page.parts),
]
OWN = {"weights.clip"}
"""Hyper-parameters of classes that pages define themselves."""


def text_of(page: Path) -> str:
    """A page's text, or that of a notebook's cells of text."""
    text = page.read_text(encoding="utf-8")
    if page.suffix != ".ipynb":
        return text
    return "\n\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")


def commands(text: str) -> list[str]:
    """Commands in blocks of shell, one per line, and those between backticks."""
    blocks: list[str] = []
    prose: list[str] = []
    fence: str | None = None
    for line in text.replace("\\\n", " ").splitlines():
        if opened := re.match(r" *```(.*)$", line):
            fence = opened[1].strip() if fence is None else None
        elif fence is None:
            prose.append(line)
        elif fence in ("", "bash", "console"):
            blocks.append(line.strip())
    inline = re.findall(r"`(sapp [^`]*)`", " ".join(prose))
    found = [each.partition(" #")[0].strip() for each in (*blocks, *inline)]
    return [each for each in found if each.startswith("sapp ") and "|" not in each]


@cache
def hyper_parameters() -> set[str]:
    """What ``train`` takes beside its own options: of algorithms, of their weights, and both in one name."""
    found = set(OWN)
    for name in ALGORITHMS:
        for weights in (None, *WEIGHTS):
            with contextlib.suppress(SappError):  # an algorithm that takes no weights says so
                found |= {key for key, _ in options(preset(name, "hopper-medium", weights))}
    return found | {key.removeprefix("weights.") for key in found} | {key.rpartition(".")[2] for key in found}


def unknown(line: str) -> list[str]:
    """What a command line has that the command does not know."""
    words = line.split()[1:]
    while words and words[0] in ("--import", "--config"):
        words = words[2:]
    command = typer.main.get_command(app)
    while words and hasattr(command, "commands"):
        if words[0].startswith("-"):
            break
        if words[0] not in command.commands:
            return [] if words[0].isupper() or words[0] == "…" else [words[0]]
        command, words = command.commands[words[0]], words[1:]
    known = {opt for parameter in command.params for opt in (*parameter.opts, *parameter.secondary_opts)}
    asked = [word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    free = command.name in ("train", "collect")
    names = {f"--{name.replace('_', '-')}" for name in hyper_parameters()} if free else set()
    return [word for word in asked if word not in known | names | {"--help", "--version", "--config"}]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_options_of_every_command_exist(page: Path) -> None:
    wrong = {line: found for line in commands(text_of(page)) if (found := unknown(line))}
    assert wrong == {}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sapp demo --seeds 5", ["--seeds"]),
        ("sapp data show FILE --colums a.toml", ["--colums"]),
        ("sapp trian cql DATA", ["trian"]),
        ("sapp train cql DATA --weights.f.b1 2 --critic-lr 1e-3 --seeds 2", []),
        ("sapp train cql DATA --critic-rate 1e-3", ["--critic-rate"]),
        ("sapp --config a.toml theory audit --replay ID", []),
    ],
)
def test_what_a_command_lacks_is_found(line: str, expected: list[str]) -> None:
    assert unknown(line) == expected
