"""``sapp export``: a policy as ONNX, and its card."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sapp.cli.console import print_json, say
from sapp.cli.options import Force, Json


def add_command(app: typer.Typer) -> None:
    """Add ``export`` to ``sapp``."""
    app.command(
        short_help="Write a policy as ONNX, with its card.",
        epilog="Example: sapp export runs/first policy.onnx --member cql/plant/0",
        help="Write a policy as ONNX, compared with the original, and its card (pip install 'sapp-rl[onnx]').",
    )(export)


def export(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder or policy file.", show_default=False)],
    target: Annotated[Path, typer.Argument(metavar="FILE.onnx", help="What to write.", show_default=False)],
    member: Annotated[str | None, typer.Option("--member", help="Which policy, if the run has several.")] = None,
    step: Annotated[int | None, typer.Option("--step", help="Which checkpoint [the newest].")] = None,
    samples: Annotated[int, typer.Option("--samples", help="Random inputs on which it is compared.")] = 1_000,
    force: Force = False,
    json: Json = False,
) -> None:
    """``sapp.export.export_policy(run, target)``."""
    from sapp.export import export_policy

    card = export_policy(path, target, member=member, step=step, samples=samples, force=force)
    if json:
        print_json(card)
        return
    check = card["check"]
    say(f"{target}: agrees with the trained policy to {check['largest_difference']:.1e} on {check['inputs']:,} inputs")
    say(f"Card: {target.with_suffix('.md')}, {target.with_suffix('.json')}")
