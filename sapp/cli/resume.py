"""``sapp resume``: continue a run from its newest checkpoint."""

from __future__ import annotations

from typing import Annotated

import typer

from sapp.cli.console import say
from sapp.cli.evaluate import print_last_evaluation
from sapp.cli.hooks import hooks_of
from sapp.cli.options import Columns, KeepBest, LogTo, PushTo, Quiet, RunFolder, StopEarly, TimeLimit


def add_command(app: typer.Typer) -> None:
    """Add ``resume`` to ``sapp``."""
    app.command(
        epilog="Example: sapp resume runs/first", help="Continue a run from its newest checkpoint, bit for bit."
    )(resume)


def resume(
    path: RunFolder,
    data: Annotated[
        list[str] | None, typer.Option("--data", help="Where a dataset is now, if it moved; once per dataset.")
    ] = None,
    columns: Columns = None,
    time_limit: TimeLimit = None,
    log_to: LogTo = None,
    keep_best: KeepBest = False,
    stop_early: StopEarly = None,
    push_to: PushTo = None,
    quiet: Quiet = False,
) -> None:
    """``sapp.resume(path)``."""
    from sapp.data import load
    from sapp.runs.run import Run
    from sapp.training.train import resume as go_on

    before = Run(path).step
    moved = [load(source, columns=columns) for source in data] if data else None
    hooks = hooks_of(log_to, keep_best, stop_early, push_to)
    run = go_on(path, data=moved, time_limit=time_limit, progress=not quiet, hooks=hooks)
    if quiet:
        return
    if before >= run.total_steps:
        say(f"{path}: finished, all {before:,} steps were trained; nothing is left to do", error=True)
    print_last_evaluation(run)
