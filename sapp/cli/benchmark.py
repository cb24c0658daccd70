"""``sapp data make`` and ``sapp data list``: the benchmark's eighteen datasets; each command is one Python call."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sapp.cli.console import console, print_json, say
from sapp.cli.options import Json, whole_number
from sapp.core.errors import SappError
from sapp.core.progress_bar import reported, unseen

_MAKE = """Make a dataset of the benchmark on this machine, without a network: NAME is one of the eighteen, or all.

\b
  {halfcheetah,hopper,walker2d}-{random,medium,medium-replay,full-replay,expert,medium-expert}

It goes into the local Minari root ($MINARI_DATASETS_PATH, or ~/.minari/datasets) as sapp/hopper/medium-v0 and so on, in
D4RL's size unless --transitions says less. After an interruption the same command continues. Names with a version,
such as hopper-medium-v2, are D4RL's own files: 'sapp data show hopper-medium-v2' downloads them.

\b
Examples:
  sapp data make hopper-medium --transitions 100_000
  sapp data make all
  sapp data make hopper-medium --policy-from hopper_medium-v2.hdf5
"""


def add_commands(data_app: typer.Typer) -> None:
    """Add ``make`` and ``list`` to ``sapp data``."""
    data_app.command(name="make", help=_MAKE, short_help="Make a dataset of the benchmark on this machine.")(make)
    data_app.command(
        name="list",
        epilog="Example: sapp data list",
        short_help="List the eighteen datasets: made or not, size, score.",
        help="List the eighteen datasets: which are made, their size and score, and what made them.",
    )(list_datasets)


def make(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names, or all.", show_default=False)],
    transitions: Annotated[
        str | None, typer.Option("--transitions", help="How many, such as 100_000 [D4RL's size].")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of starts and actions.")] = 0,
    policy_from: Annotated[
        Path | None, typer.Option("--policy-from", help="Use the behaviour policy in this D4RL file (.hdf5, .npz).")
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a dataset that was made differently.")] = False,
    threads: Annotated[int | None, typer.Option("--threads", help="Simulator threads [one per core].")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """``sapp.collect.benchmark.make.make(name, ...)``."""
    from sapp.collect.benchmark.make import make as run
    from sapp.collect.benchmark.make import order
    from sapp.data.benchmark_names import NAMES

    wanted = list(NAMES) if names == ["all"] else names
    count = None if transitions is None else whole_number("--transitions", transitions)
    for name in wanted:  # what cannot be made is reported before the first is made
        order(name, transitions=count, seed=seed, policy_from=policy_from)
    if threads is not None and threads < 1:
        raise SappError(f"--threads {threads}: give at least 1")
    for name in wanted:
        with reported(unseen if quiet else None, f"making {name}") as progress:
            path = run(
                name, transitions=count, seed=seed, policy_from=policy_from, replace=replace, threads=threads,
                progress=progress,
            )  # fmt: skip
        say(f"{name}: {path}")


def list_datasets(json: Json = False) -> None:
    """``sapp.collect.benchmark.make.standing()``."""
    from sapp.collect.benchmark.make import standing

    rows = [_row(each) for each in standing()]
    if json:
        print_json(rows)
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from sapp.data.loaders.minari import minari_folder

    table = Table(
        title=f"Datasets in {minari_folder()}",
        title_justify="left",
        caption_justify="left",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.caption = "score: mean normalised return of the episodes, 0 random, 100 expert"
    for heading in ("name", "transitions", "episodes", "MB", "score"):
        table.add_column(heading, justify="left" if heading == "name" else "right", no_wrap=True)
    table.add_column("made from", overflow="fold")
    for row in rows:
        numbers = [row["transitions"], row["episodes"], row["megabytes"]]
        table.add_row(
            row["name"],
            *("" if each is None else f"{each:,.0f}" for each in numbers),
            "" if row["score"] is None else f"{row['score']:.1f}",
            row["made_from"] or row["stands"],
        )
    console().print(table)


def _row(each: Any) -> dict[str, Any]:
    if each.made is None:
        stands = "(not made)" if each.can_make else "(no policy)"
        stands = "(begun)" if each.begun else stands
        empty = dict.fromkeys(("transitions", "episodes", "megabytes", "score", "made_from", "seed"))
        return {"name": each.name, "stands": stands, **empty}
    ours = each.made["sapp"]
    source = ours["policies"]
    made_from = source["from"] if "file" not in source else source["file"]
    if "snapshots" in source:
        used = source["snapshots"]
        made_from = f"{len(used)} polic{'y' if len(used) == 1 else 'ies'}"
        made_from += ", an earlier recipe" if each.outdated else ""
    return {
        "name": each.name,
        "stands": "made",
        "transitions": each.made["total_steps"],
        "episodes": each.made["total_episodes"],
        "megabytes": each.made["dataset_size"],
        "score": ours["summary"]["score_mean"],
        "made_from": made_from,
        "seed": ours["seed"],
    }
