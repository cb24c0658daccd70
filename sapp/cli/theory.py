"""``sapp theory``: the finite-MDP side of the command; each command is one call into ``sapp.tabular``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sapp.cli.config_file import Commands
from sapp.cli.console import console, say
from sapp.cli.options import Force, refuse_given
from sapp.core.figures import check_figure

theory_app = Commands(
    help="State-aware pessimism in finite MDPs: the paper's statements and its example.",
    short_help="Check the paper's statements in finite MDPs.",
    epilog="Example: sapp theory audit --mdps 50",
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Plot = Annotated[Path | None, typer.Option("--plot", help="Also draw a figure (.png).")]


@theory_app.command(
    epilog="Examples: sapp theory audit --plot audit.png;  sapp theory audit --replay ID (from the table)",
    short_help="Check every statement of the paper on random MDPs.",
    help="Check every statement of the paper, as printed and repaired, on families of random MDPs.",
)
def audit(
    context: typer.Context,
    mdps: Annotated[int, typer.Option("--mdps", help="Instances of each family.")] = 200,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first instance.")] = 0,
    replay: Annotated[str | None, typer.Option("--replay", help="Show one counterexample, by its ID.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")] = False,
    plot: Plot = None,
    force: Force = False,
) -> None:
    """``sapp.theory.audit.audit(mdps=..., seed=...)``, or ``replay(identifier)``."""
    from rich.console import Console
    from rich.progress import Progress

    from sapp.theory.audit import audit as run
    from sapp.theory.audit import plot as draw
    from sapp.theory.audit import print_audit, print_replay, table_markdown
    from sapp.theory.audit import replay as again

    if replay is not None:
        refuse_given(context, ("mdps", "seed", "markdown", "plot"), "is for the whole audit, and --replay shows one")
        print_replay(again(replay), console())
        return
    if plot is not None:
        check_figure(plot, force)
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("families")
        result = run(mdps=mdps, seed=seed, progress=lambda done, total: bar.update(task, completed=done, total=total))
    if markdown:
        print(table_markdown(result.rows()))
    else:
        print_audit(result, console())
    if plot is not None:
        say(f"Figure: {draw(result, plot)}")


@theory_app.command(
    epilog="Example: sapp theory chain --left 5 --right 95 --plot chain.png",
    short_help="The paper's motivating chain, solved exactly.",
    help="The paper's motivating chain: occupancies, ratios, and pessimism with and without them.",
)
def chain(
    left: Annotated[int, typer.Option("--left", help="Logged trajectories to the left.")] = 10,
    right: Annotated[int, typer.Option("--right", help="Logged trajectories to the right.")] = 90,
    arm: Annotated[int, typer.Option("--arm", help="States on each side.")] = 3,
    alpha: Annotated[float, typer.Option("--alpha", help="Weight of pessimism.")] = 0.1,
    divergence: Annotated[str, typer.Option("--divergence", help="tv, kl, cql or mmd.")] = "tv",
    smoothing: Annotated[float, typer.Option("--smoothing", help="Pseudo-counts, for kl and cql off support.")] = 0.0,
    plot: Plot = None,
    force: Force = False,
) -> None:
    """``sapp.theory.chain.print_chain(...)``: state by state at one skew, as coverage is skewed, and with α tuned."""
    from sapp.theory.chain_show import plot_chain, print_chain

    if plot is not None:
        check_figure(plot, force)
    print_chain(console(), divergence, alpha, left, right, arm, smoothing)
    if plot is not None:
        plot_chain(plot, divergence, alpha, left, right, arm, smoothing)
        say(f"Figure: {plot}")
