"""``sapp experiment`` and ``sapp report``: the paper's tables and figures, and the page that shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sapp.cli.console import say
from sapp.cli.options import Force
from sapp.core.errors import SappError
from sapp.core.seeds import parse_seeds

EXPERIMENTS = {
    "table1": "Table 1: SA-CQL, CQL, six other methods and the controls on the eighteen datasets",
    "atari": "Table 2: discrete SA-CQL, CQL, REM and the controls on four Atari games' logs",
    "ratio-quality": "Figure 2: the reward that the ratios predict against the true return",
    "random-ratio": "Figure 3: SA-CQL against random, shuffled and mean weights",
    "alpha-sweep": "Table 6: SA-CQL against CQL at other conservative weights",
    "b0": "Table 7: SA-CQL with b0 = 0.5 everywhere",
}
"""For the help page, which must not import JAX to list them; a test keeps them equal to the experiments."""

_EXPERIMENT = f"""Run an experiment of the paper, always with the controls, and write its report.

NAME is one of these, or a Python file of your own whose function grid(scale) declares an experiment:

\b
{chr(10).join(f"  {name:<14} {what}" for name, what in EXPERIMENTS.items())}

--scale smoke takes minutes on a CPU (tiny networks on logs of the point task, to show that all parts work), small
takes hours on one GPU (medium and random data, 200k steps), and paper is the paper's protocol. Results go into a
store; what it holds is never trained again, and the same command resumes an interrupted experiment. --rows also keeps
the results as CSV files, from which an experiment can continue without its store and run folders.

\b
Examples:
  sapp experiment table1 --scale smoke
  sapp experiment table1 --scale small --datasets hopper-medium,hopper-random --seeds 5 --precision mixed
  sapp experiment alpha-sweep --scale paper --store results.sqlite --on ray
  sapp experiment studies/skewed_coverage/grid.py --scale paper --seeds 5
  sapp experiment atari --scale small --data logs    # logs/pong and so on, from sapp collect --algorithm dqn
"""
_REPORT = """Write one self-contained page: tables of scores and differences, learning curves, diagnostics.

SOURCES are results stores, run folders, folders that hold either, or the folder of an experiment's --rows. The page
needs no network; open it in any browser.

\b
Examples:
  sapp report runs/experiment-table1-smoke/results.sqlite
  sapp report runs/first runs/second --out report.html --figures figures
"""


def add_commands(app: typer.Typer) -> None:
    """Add ``experiment`` and ``report`` to ``sapp``."""
    settings = {"help_option_names": ["-h", "--help"]}
    short = "Run an experiment of the paper, always with the controls."
    app.command(name="experiment", help=_EXPERIMENT, short_help=short, context_settings=settings)(experiment)
    short = "Write one page of tables, learning curves and diagnostics."
    app.command(name="report", help=_REPORT, short_help=short, context_settings=settings)(report)


def experiment(
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)],
    scale: Annotated[str, typer.Option("--scale", help="smoke, small or paper.")] = "smoke",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of its runs; default runs/experiment-NAME-SCALE.")
    ] = None,
    store: Annotated[Path | None, typer.Option("--store", help="Results store; default OUT/results.sqlite.")] = None,
    rows: Annotated[
        Path | None,
        typer.Option("--rows", help="Folder of CSV files with the results: read first, added to after every job."),
    ] = None,
    seeds: Annotated[str | None, typer.Option("--seeds", help="How many (0, 1, ...), or which: 3,7,11.")] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", help="Steps of the last phase, instead of the scale's.")
    ] = None,
    datasets: Annotated[str | None, typer.Option("--datasets", help="Only these, joined by commas.")] = None,
    methods: Annotated[str | None, typer.Option("--methods", help="Only these methods, joined by commas.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            help="Folder with files of the datasets (hopper-medium-v2.hdf5) or logs of games; not at scale smoke.",
        ),
    ] = None,
    precision: Annotated[str | None, typer.Option("--precision", help="auto, float32, tf32 or mixed [auto].")] = None,
    fallback: Annotated[
        bool,
        typer.Option("--fallback", help="Weights of 1 while the ratio estimate is unreliable (not the paper's)."),
    ] = False,
    on: Annotated[
        str, typer.Option("--on", help="local, or ray: the GPUs (or cores) of a Ray cluster share the runs.")
    ] = "local",
    address: Annotated[
        str | None, typer.Option("--address", help="Of the Ray cluster; default: the one found, or a new local one.")
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option("--time-limit", help="Seconds, divided among the jobs; the same command continues."),
    ] = None,
    together: Annotated[
        bool,
        typer.Option(
            "--together", help="Train all environments together: faster on a GPU that holds all data."
        ),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")] = False,
) -> None:
    """``sapp.experiments.driver.run_experiment(...)`` (or ``on_ray.run_on_ray``), then ``sapp.report.report(...)``."""
    if precision is not None:
        from sapp.core.precision import check_precision

        check_precision(precision)
    _check_where(on, address, time_limit, together, name)
    if data is not None and scale == "smoke":
        raise SappError("--data: --scale smoke makes its own small logs; leave it out, or use --scale small")
    from sapp.experiments.driver import run_experiment
    from sapp.experiments.find import declared
    from sapp.experiments.grid import scaled
    from sapp.report import report as write

    which = None if seeds is None else parse_seeds(seeds)
    chosen = scaled(scale, steps=steps, seeds=which, precision=precision, fallback=fallback)
    grid = declared(name, chosen).only(_names("--datasets", datasets), _names("--methods", methods))
    folder = out or Path("runs") / f"experiment-{grid.name}-{scale}"
    path = store or folder / "results.sqlite"
    try:
        if on == "ray":
            from sapp.experiments.on_ray import run_on_ray

            run_on_ray(grid, folder, path, data=data, address=address, rows=rows)
        else:
            run_experiment(
                grid, folder, path, data=data, progress=not quiet, time_limit=time_limit, together=together, rows=rows
            )
    finally:
        # also after a failed job: what is there can be looked at
        if path.is_file() and _holds_runs(path):
            say(f"Report: {write([path], folder / 'report.html', title=grid.title)}")
            say(f"Store: {path}")


def _check_where(on: str, address: str | None, time_limit: float | None, together: bool, name: str) -> None:
    """Refuse what the place that the jobs go to has no use for."""
    if on not in ("local", "ray") or (address is not None and on != "ray"):
        raise SappError(f"--on {on!r}: use local or ray; --address is for ray")
    if time_limit is not None and (on != "local" or not time_limit > 0):
        raise SappError(f"--time-limit {time_limit:g}: give seconds above 0, and only with --on local")
    if on == "ray" and together:
        raise SappError("--together: --on ray gives each environment to a node of its own; leave one of them out")
    if on == "ray" and name.endswith(".py"):
        raise SappError(f"--on ray: other machines cannot import {name}; an experiment from a file runs on this one")


def report(
    sources: Annotated[list[Path], typer.Argument(metavar="SOURCES...", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file.")] = Path("report.html"),
    figures: Annotated[
        Path | None, typer.Option("--figures", help="Folder for charts (PNG, SVG) and tables (Markdown, LaTeX).")
    ] = None,
    title: Annotated[str, typer.Option("--title", help="Of the page.")] = "Results",
    force: Force = False,
) -> None:
    """``sapp.report.report(sources, out, figures)``."""
    from sapp.report import report as write

    say(f"Report: {write(sources, out, figures, title, force)}")
    if figures is not None:
        say(f"Figures and tables: {figures}")


def _names(option: str, text: str | None) -> list[str] | None:
    if text is None:
        return None
    if found := [part.strip() for part in text.split(",") if part.strip()]:
        return found
    raise SappError(f"{option} {text!r}: name some, or leave it out for all")


def _holds_runs(path: Path) -> bool:
    from sapp.experiments.store import Store

    with Store(path) as store:
        return bool(store.rows("cells"))
