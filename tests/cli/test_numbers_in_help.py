"""Every number that help tells is made here from code and rows; numbers of the commands that it shows are examples."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from unittest import mock

import pytest
import typer
from page_numbers import PAGES, ROOT, missing, numbers, places, text_of, unheld

from sapp.algorithms.registry import ALGORITHMS, preset
from sapp.algorithms.sac import SAC
from sapp.cli.main import app, main
from sapp.cli.options import whole_number
from sapp.cli.select import ALL_REFUSED
from sapp.collect import online_training
from sapp.collect.online_dqn import Exploration
from sapp.core.field_docs import field_docs
from sapp.core.seeds import parse_seeds
from sapp.data.benchmark_names import NAMES
from sapp.experiments.find import EXPERIMENTS
from sapp.experiments.grid import scaled
from sapp.runs.phases import sa_protocol
from sapp.training.planning import a_twentieth
from sapp.weights import OccupancyModel, Uniform

TYPED = re.compile(r"^ +sapp .*|Example: sapp .*|--[\w.-]+ \d\S*", re.MULTILINE)
"""What somebody types, which may be any number."""
WORDS = {4: "four", 6: "six", 18: "eighteen", 180: "three minutes"}
TOLD: dict[str, Callable[[], Iterator[str]]] = {}


def told(command: str) -> Callable[[Callable[[], Iterator[str]]], Callable[[], Iterator[str]]]:
    """Register what makes the numbers of a command's help."""

    def register(made: Callable[[], Iterator[str]]) -> Callable[[], Iterator[str]]:
        TOLD[command] = made
        return made

    return register


@cache
def helped() -> dict[str, str]:
    """By command: all that its help says, without what somebody types."""

    def commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        yield " ".join(words), command
        for name, each in getattr(command, "commands", {}).items():
            yield from commands(each, (*words, name))

    found = {}
    for name, command in commands(typer.main.get_command(app), ()):
        options = [getattr(each, "help", None) for each in command.params]
        said = [command.help, command.short_help, command.epilog, *options]
        found[name] = TYPED.sub("", "\n".join(each for each in said if each))
    return found


class SeenError(Exception):
    """Stops a command where it calls the library."""


def given(function: str, *words: str) -> dict[str, Any]:
    """What a command passes on to a function of the library."""
    with mock.patch(function, side_effect=SeenError) as called, pytest.raises(SeenError):
        main([*words])
    return called.call_args.kwargs


def plain_weight() -> float:
    """The weight of every state where nothing is known of it."""
    (weight,) = {float(bound) for bound in Uniform().bounds()}
    return weight


def seeds() -> str:
    """What --seeds says."""
    first, second, _ = parse_seeds("3")
    assert parse_seeds("3,7,11") == [3, 7, 11]
    return f"How many ({first}, {second}, ...), or which: 3,7,11."


@told("demo")
def demo() -> Iterator[str]:
    """Of the rows."""
    lines = (ROOT / "bench" / "rows" / "commands.jsonl").read_text(encoding="utf-8").splitlines()
    (seconds,) = [row["cpu_seconds"] for row in map(json.loads, lines) if row["command"] == "sapp demo"]
    assert seconds < 180
    yield f"Takes under {WORDS[180]}."


@told("train")
def train() -> Iterator[str]:
    """Presets, weights, phases, and what numbers look like."""
    yield f"qr-dqn QR-DQN, {preset('qr-dqn').quantiles} quantiles"
    yield f"random ensemble mixture, {preset('rem').ensemble} heads"
    yield f"{plain_weight():g} for every state: the algorithm as published"
    assert preset("cql", weights="constant:0.5").weights.value == 0.5
    yield "the same for every state, such as constant:0.5"
    yield seeds()
    assert whole_number("--steps", "200_000") == 200_000 < whole_number("--steps", "1e6")
    yield "such as 200_000 or 1e5."
    pretrain, ratio, joint = sa_protocol()
    yield f"before the ratio is learned [{pretrain.steps}]."
    yield f"only the ratio learns [{ratio.steps}]."
    assert joint.steps == 20 * a_twentieth(joint.steps)
    yield "0 = off [a twentieth of steps]."


@told("evaluate")
def evaluate() -> Iterator[str]:
    """Its exit code."""
    yield f"(exit code {ALL_REFUSED} where no estimate deserves trust)"


@told("collect")
def collect() -> Iterator[str]:
    """Defaults that depend on the algorithm."""
    sac = given("sapp.collect.online_training.train", "collect", "point")
    dqn = given("sapp.collect.online_dqn.train", "collect", "catch", "--algorithm", "dqn")
    images = given("sapp.collect.given.log_given", "collect", "catch", "--policy", "uniform")
    yield seeds()
    yield f"at the start [sac: {sac['random_steps']:_}, dqn: {dqn['exploration'].warm_up:_}]."
    yield f"environments per seed [sac: {sac['rows']}, dqn: {dqn['rows']}]."
    yield f"random actions fall from {Exploration().epsilon(0):g} to {Exploration().last:g}."
    yield f"a random action [images: {images['epsilon']:g}]; several share the steps."
    yield "Episodes per snapshot (0 = off)."
    (fewer,) = re.findall(r"threads or max\(1, cores\(\) - (\d)\)", inspect.getsource(online_training))
    yield f"Simulator threads [cores - {fewer}]."


@told("experiment")
def experiment() -> Iterator[str]:
    """Datasets, methods and steps of the experiments."""
    grids = {name: declare(scaled("paper")) for name, declare in EXPERIMENTS.items()}
    others = set(grids["table1"].variants) - set(grids["random-ratio"].variants)
    yield f"{WORDS[len(others)]} other methods and the controls on the {WORDS[len(grids['table1'].datasets)]} datasets"
    yield f"REM and the controls on {WORDS[len(grids['atari'].datasets)]} Atari games' logs"
    lows = {name.partition("b0=")[2] for name in grids["b0"].variants if "b0=" in name}
    yield f"SA-CQL with b0 = {''.join(lows)} everywhere"
    small = EXPERIMENTS["table1"](scaled("small"))
    assert {name.partition("-")[2] for name in small.datasets} == {"medium", "random"}
    yield f"(medium and random data, {small.scale.steps // 1000}k steps)"
    yield seeds()
    yield f"Weights of {plain_weight():g} while the ratio estimate is unreliable"


@told("data make")
def data_make() -> Iterator[str]:
    """The datasets, and what numbers look like."""
    yield f"NAME is one of the {WORDS[len(NAMES)]}, or all."
    assert whole_number("--transitions", "100_000") == 100_000
    yield "How many, such as 100_000 [D4RL's size]."


@told("data list")
def data_list() -> Iterator[str]:
    """The datasets."""
    yield f"List the {WORDS[len(NAMES)]} datasets"


@pytest.mark.parametrize("command", helped(), ids=lambda name: name or "sapp")
def test_every_number_in_help_is_made_from_code(command: str) -> None:
    text, made = helped()[command], list(TOLD.get(command, lambda: iter(()))())
    assert [each.text for each in unheld(text, made)] == []
    assert missing(text, made) == []


def test_numbers_in_the_meanings_of_hyper_parameters_stand_in_the_reference() -> None:
    """There they are held; what stands elsewhere is made here."""
    weights = ("dualdice", "occupancy", "infonce", "random", "constant:0.5", "shuffled:occupancy", "frozen:occupancy",
               "rescaled:occupancy")  # fmt: skip
    shown = [*(preset(name) for name in ALGORITHMS), *(preset("cql", weights=name) for name in weights), SAC()]
    meanings = {text for each in shown for text in field_docs(each).values() if list(numbers(text))}
    assert len(meanings) > 10
    reference = [text_of(page).replace("``", "") for page in PAGES if page.startswith("sapp.")]
    found = {text for text in meanings if not any(places(page, text) for page in reference)}
    assert OccupancyModel().max_clipped == 1
    assert found == {"largest share of clipped action dimensions that is healthy; 1: not asked."}
