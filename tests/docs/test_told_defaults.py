"""Every default of an option that docs/cli.md tells is the command's own; those of SA-CQL's table are its preset's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from sapp.algorithms.config import options
from sapp.algorithms.registry import preset
from sapp.cli.main import app
from sapp.runs.phases import sa_protocol

DOCS = Path(__file__).parents[2] / "docs"
NUMBER = r"\d+(?:[,_]\d{3})*(?:\.\d+)?(?:e-?\d+)?"
LISTS = ("--fit-hidden",)
"""Options whose one value has commas in it."""
UNTOLD = {"none", "all", "the algorithm's", "the data's", "the scale's"}
"""What a page says where help has nothing to say: what happens without the option."""
INSIDE = r"\(((?:[^()]|\([^()]*\))*)\)"
ROW = re.compile(rf"^\| ((?:`--[\w-]+`(?:, )?)+)(?: {INSIDE})? \|", re.MULTILINE)
PROSE = re.compile(rf"((?:`--[\w-]+`(?:, | and )?)+)((?:(?! \(|`--)[^;\n])*) {INSIDE}")
Told = tuple[str, str, str]


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command by its words."""
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, (*words, name))
    if not hasattr(command, "commands"):
        yield " ".join(words), command


@cache
def parameters() -> dict[str, dict[str, Any]]:
    """By command: its options by name."""
    found = commands(typer.main.get_command(app))
    return {name: {opt: each for each in command.params for opt in each.opts} for name, command in found}


def parts(text: str) -> Iterator[tuple[str, str]]:
    """The page's text by command; those of a group are items of a list that begin with their names."""
    for section in re.split(r"^## sapp ", text, flags=re.MULTILINE)[1:]:
        name, _, body = section.partition("\n")
        if name in parameters():
            yield name, body.partition("\n## ")[0]
        for item in re.findall(r"^- (`\w+` .*)$", body, re.MULTILINE) if name not in parameters() else ():
            # a sentence that begins with another command of the group is that one's
            for piece in re.split(r"(?<=\. )(?=`\w+` )", item):
                first = piece.split("`")[1]
                yield f"{name} {first}", piece


def told(text: str) -> list[Told]:
    """Command, option and default of every default that the text tells: one in brackets for each option before them."""
    out = []
    for command, body in parts(text):
        rows = [(names, values) for names, values in ROW.findall(body) if values]
        prose = [
            (names, values)
            for names, _, values in PROSE.findall(re.sub(r"^\|.*$|```.*?```", "", body, flags=re.MULTILINE | re.DOTALL))
            if re.fullmatch(rf"(?:default: .*|[^\d]*, )?{NUMBER}(?:, {NUMBER})*|`[\w.]+`", values)
        ]
        for names, values in (*rows, *prose):
            opts = re.findall(r"--[\w-]+", names)
            split = re.findall(NUMBER, values) if (names, values) in prose and re.search(r"\d", values) else None
            split = split or ([values] if len(opts) == 1 else separate(values))
            out += [(command, *each) for each in zip(opts, split, strict=False)]
    return out


def separate(values: str) -> list[str]:
    """Values at commas that stand in no inner brackets; 1,000 and 256,256 have no space after theirs."""
    return re.split(r", (?![^(]*\))", values)


def agrees(option: Any, value: str) -> bool:
    """Whether a told default is an option's own, or, if it depends on something, what its help says of that."""
    value = value.replace("`", "").removeprefix("default: ")
    if option.default not in (None, ""):
        own = option.default
        if isinstance(own, bool):
            return value == ("on" if own else "off")
        if option.opts[0] in LISTS or not re.fullmatch(NUMBER, value):
            return value == str(own)
        return number(value) == number(str(own))
    helped = re.search(r"\[([^\]]*)\]|default(?::|,)? (.*)\.$", option.help or "")
    said = next((each for each in helped.groups() if each), "").replace("−", "-") if helped else ""
    value = value.replace("−", "-").replace("a twentieth of --steps", "a twentieth of steps")
    numbers = [[number(each) for each in re.findall(NUMBER, text)] for text in (value, said)]
    short = re.sub(r"'s own( limit)?$", "'s", said)
    return (value in UNTOLD and not said) or value == short or (numbers[0] != [] and numbers[0] == numbers[1])


def number(text: str) -> float:
    return float(text.replace(",", "").replace("_", ""))


def wrong(text: str) -> list[Told]:
    """What is told of options that do not exist, or otherwise than they are."""
    return [
        (command, name, value)
        for command, name, value in told(text)
        if name not in parameters()[command] or not agrees(parameters()[command][name], value)
    ]


TEXT = (DOCS / "cli.md").read_text(encoding="utf-8")


def test_defaults_on_the_page_are_the_commands_own() -> None:
    assert wrong(TEXT) == []


def test_most_options_with_a_default_tell_it() -> None:
    """Or a page of another form would pass with nothing read."""
    found = {(command, name) for command, name, _ in told(TEXT)}
    numbers = {
        (command, name)
        for command, own in parameters().items()
        for name, each in own.items()
        if isinstance(each.default, (int, float)) and not isinstance(each.default, bool)
    }
    assert len(found) >= 60
    # those of `evaluate --offline` are told with `select`; seeds from 0 on
    untold = {"evaluate --fit-steps", "evaluate --bags", "data make --seed", "theory audit --seed"}
    assert {" ".join(each) for each in numbers - found} == untold


@pytest.mark.parametrize(
    ("right", "changed"),
    [
        ("| `--bags` (8) |", "| `--bags` (9) |"),
        ("`--ratio-steps` (20,000, 100,000)", "`--ratio-steps` (20,000, 10,000)"),
        ("`--seed` (20,000, 256,256, 0)", "`--seed` (20,000, 256,128, 0)"),
        ("(250,000, 1,000,000, 4)", "(250,000, 1,000,000, 5)"),
        ("(16 (dqn: 64))", "(16 (dqn: 46))"),
        ("(5,000 (dqn: 20,000))", "(5,000 (dqn: 2,000))"),
        ("(10, 90)", "(10, 80)"),
        ("learn (12)", "learn (21)"),
        ("instances of each (200)", "instances of each (100)"),
        ("compare on (1,000)", "compare on (10,000)"),
        ("(pseudo-counts, 0)", "(pseudo-counts, 1)"),
        ("(a twentieth of `--steps`)", "(a tenth of `--steps`)"),
        ("`--stream` (off)", "`--stream` (on)"),
        ("`--scale` (smoke)", "`--scale` (small)"),
        ("(`report.html`)", "(`page.html`)"),
        ("(cores − 1)", "(cores)"),
    ],
)
def test_another_default_is_found(right: str, changed: str) -> None:
    assert right in TEXT
    assert len(wrong(TEXT.replace(right, changed))) == 1


def test_what_help_says_of_phases_is_what_they_are() -> None:
    train = parameters()["train"]
    for name, phase in zip(("--pretrain", "--ratio-steps"), sa_protocol(), strict=False):
        assert f"[{phase.steps}]" in train[name].help


def test_the_table_of_sa_cqls_defaults_is_its_presets() -> None:
    own = {key.removeprefix("weights."): value for key, value in options(preset("sa-cql", "hopper-medium", None))}
    text = (DOCS / "algorithms" / "cql.md").read_text(encoding="utf-8")
    table = text[text.index("| default | the paper | why |") :].partition("\n\n")[0]
    cells = [line.split(" | ")[0] for line in table.splitlines()[2:]]
    found = dict(pair for cell in cells for pair in re.findall(r"`([\w.]+)=([^`]+)`", cell))
    assert len(found) == 10
    for name, value in found.items():
        shown = own[name] if not isinstance(own[name], float) else float(own[name])
        assert (float(value) if re.fullmatch(NUMBER, value) else value) == (
            shown if isinstance(shown, (int, float)) and not isinstance(shown, bool) else str(shown)
        ), name
