"""``sapp algorithms``: what can be trained, and the hyper-parameters of one."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sapp.cli.console import new_table, plain, print_json, print_table
from sapp.cli.options import Json
from sapp.core.errors import SappError

MARKS = {"continuous": "cont.", "discrete": "discr.", "images": "images", "weights": "weights"}
"""What an algorithm may take, and how the table heads it: continuous actions, discrete ones, images, state weights."""
STYLE: dict[str, Any] = {"box": None, "padding": (0, 1, 0, 0), "pad_edge": False}


def add_command(app: typer.Typer) -> None:
    """Add ``algorithms`` to ``sapp``."""
    app.command(
        short_help="List algorithms, state weights and hyper-parameters.",
        epilog="Example: sapp algorithms cql --weights occupancy",
        help="List algorithms and state weights, or the hyper-parameters of one algorithm: defaults and meanings.",
    )(algorithms)


def algorithms(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Such as sa-cql.", show_default=False)] = None,
    data: Annotated[str, typer.Option("--data", help="Defaults for this dataset, such as walker2d-expert-v2.")] = "",
    weights: Annotated[str | None, typer.Option("--weights", help="With these state weights, as train has it.")] = None,
    json: Json = False,
) -> None:
    """``sapp.algorithms.config.options`` and ``sapp.core.field_docs.field_docs`` of a preset."""
    if name is None:
        _list(json)
        return
    from sapp.algorithms.config import options
    from sapp.algorithms.registry import preset
    from sapp.core.field_docs import field_docs

    chosen = preset(name, data, weights)
    values, texts = dict(options(chosen)), field_docs(chosen)
    if json:
        print_json(values)
        return
    table = new_table("hyper-parameter", "default", *(["meaning"] if any(texts.values()) else []))
    for key, value in values.items():
        table.add_row(key, plain(value), *([plain(texts[key])] if any(texts.values()) else []))
    print_table(table)


def _list(json: bool) -> None:
    from sapp.algorithms.registry import PAPER
    from sapp.weights.registry import ABOUT, CONTROLS, WEIGHTS

    found = _facts()
    others = {name: f"from {WEIGHTS.target(name)}" for name in WEIGHTS if name not in ABOUT and name != "constant"}
    weights = ABOUT | others | {f"{kind}:WEIGHTS": what for kind, what in CONTROLS.items()}
    if json:
        print_json({"algorithms": found, "weights": weights})
        return
    print_table(_matrix({name: fact for name, fact in found.items() if name not in PAPER}))
    print()
    table = new_table("--weights", "how pessimism is spread over states", **STYLE)
    for names, what in _joined(weights).items():
        table.add_row(names, plain(what))
    print_table(table)


def _matrix(facts: dict[str, dict[str, Any]]) -> Any:
    """Algorithms × what each takes, in two columns of them: with the weights below it fits 24 rows of 80."""
    table = new_table("algorithm", *MARKS.values(), "algorithm", *MARKS.values(), **STYLE)
    names = list(facts)
    half = -(-len(names) // 2)
    for number in range(half):
        cells: list[str] = []
        for name in names[number::half]:
            cells += [name, *("yes" if facts[name][key] else "" for key in MARKS)]
        table.add_row(*cells)
    return table


def _joined(weights: dict[str, str]) -> dict[str, str]:
    """The two random ones share a row."""
    if not {"random", "random-b0-b1"} <= set(weights):
        return weights
    shared = {"random, random-b0-b1": "from f's range, or from (b0, b1): the paper's s-SA-CQL"}
    before = dict(item for item in weights.items() if item[0] != "random-b0-b1")
    found: dict[str, str] = {}
    for name, what in before.items():
        found |= shared if name == "random" else {name: what}
    return found


def _facts() -> dict[str, dict[str, Any]]:
    """What each algorithm takes: asked of itself, so that it also holds for those of other packages."""
    from sapp.algorithms.registry import ABOUT, ALGORITHMS, PAPER, preset

    facts: dict[str, dict[str, Any]] = {}
    for name in ALGORITHMS:
        chosen = preset(name)
        try:
            preset(name, weights="constant:0.5")
            weighted = True
        except SappError:
            weighted = False
        facts[name] = {
            "about": ABOUT.get(name) or f"from {ALGORITHMS.target(name)}",
            "continuous": not chosen.discrete_actions,
            "discrete": chosen.discrete_actions,
            "images": chosen.images,
            "weights": weighted,
        }
    for name, (base, weights) in PAPER.items():
        facts[name] = facts[base] | {"about": f"{base} --weights {weights}"}
    return facts
