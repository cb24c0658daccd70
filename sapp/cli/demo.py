"""``sapp demo``: data made on the spot, CQL and SA-CQL side by side, a table and a figure, in under three minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sapp.cli.options import Quiet


def add_command(app: typer.Typer) -> None:
    """Add ``demo`` to ``sapp``."""
    app.command(
        epilog="Example: sapp demo --out runs/demo",
        help="Make data, train CQL and SA-CQL side by side, show scores and a figure; under three minutes on two "
        "cores. If --out holds a demo that was interrupted, it goes on as it began.",
    )(demo)


def demo(
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Run folder; default runs/demo-TIME.")] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="Seeds of each algorithm.")] = 3,
    steps: Annotated[int, typer.Option("--steps", help="Steps of the last phase.")] = 3_000,
    quiet: Quiet = False,
) -> None:
    """``sapp.cli.demo_run.demo()``."""
    from sapp.cli.demo_run import demo as show

    show(out, seeds=seeds, steps=steps, progress=not quiet)
