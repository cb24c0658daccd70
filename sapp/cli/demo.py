"""``sapp demo``: where pessimism has to know the state, exactly and learned, and a policy on its way into use."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sapp.cli.options import Quiet


def add_command(app: typer.Typer) -> None:
    """Add ``demo`` to ``sapp``."""
    app.command(
        short_help="Show where state-aware pessimism helps and where it cannot.",
        epilog="Example: sapp demo --out runs/demo",
        help="Show where state-aware pessimism must help and where it cannot: CQL, SA-CQL and a control, solved "
        "exactly and learned by networks; then a policy's value as estimated from its logs, an ONNX file and a figure. "
        "Takes under three minutes. If --out holds a demo that was interrupted, it continues.",
    )(demo)


def demo(
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder; default runs/demo-TIME.")] = None,
    problems: Annotated[int, typer.Option("--problems", min=3, help="Problems that networks learn.")] = 12,
    steps: Annotated[int, typer.Option("--steps", min=3, help="Gradient steps of the networks' last phase.")] = 1_500,
    quiet: Quiet = False,
) -> None:
    """``sapp.cli.demo_run.demo()``."""
    from sapp.cli.demo_problem import Sizes
    from sapp.cli.demo_run import demo as show

    show(out, Sizes(worlds=problems, steps=steps), progress=not quiet)
