"""Every command on a page is one: of ``sapp``, its name and options, hyper-parameters included; of scripts, options."""

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


def commands(text: str, first: str = "sapp ") -> list[str]:
    """Commands in blocks of shell, one per line, and those between backticks, that begin with given words."""
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
    inline = re.findall(rf"`({first}[^`]*)`", " ".join(prose))
    found = [each.partition(" #")[0].strip() for each in (*blocks, *inline)]
    return [each for each in found if each.startswith(first) and "|" not in each]


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


def script_of(word: str, module: str) -> str:
    """The source of what ``python FILE`` or ``python -m MODULE`` runs, with that of the modules beside it."""
    path = ROOT / (module.replace(".", "/") if word == "-m" else word)
    files = sorted(path.glob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def unknown_to_script(line: str) -> list[str]:
    """Options that a script does not have, and those that it requires and does not get."""
    words = line.split()
    source = script_of(*words[1:3]) if words[1] == "-m" else script_of(words[1], "")
    given = {word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)}
    required = re.findall(r'add_argument\(\s*"(--[\w-]+)"[^)]*required=True', source)
    return [
        *sorted(each for each in given if f'"{each}"' not in source),
        *(each for each in required if each not in given and words[1] != "-m"),
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_options_of_every_script_exist(page: Path) -> None:
    found = commands(text_of(page), "python ")
    lines = [each for each in found if re.match(r"python (bench/|-m (bench|studies)\b)", each)]
    assert {line: wrong for line in lines if (wrong := unknown_to_script(line))} == {}


def test_what_a_script_lacks_is_found() -> None:
    assert unknown_to_script("python bench/performance.py --part peers") == ["--out"]
    assert unknown_to_script("python bench/performance.py --out a --parts peers") == ["--parts"]
    assert unknown_to_script("python -m studies.theory audit --seeds 3") == ["--seeds"]


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
