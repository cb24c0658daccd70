"""``sapp data``: look at datasets, check them, convert them, and make the benchmark's."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sapp.cli import benchmark
from sapp.cli.config_file import Commands
from sapp.cli.console import console, print_json, say
from sapp.cli.options import SETTINGS, Columns, Force, High, Home, Json, Limit, Low, Name, Rescale, Source
from sapp.core.errors import SappError

if TYPE_CHECKING:
    from sapp.data import Dataset

data_app = Commands(
    help="Look at, check, make and convert datasets.",
    epilog="Example: sapp data show hopper-medium-v2",
    rich_markup_mode=None,
    context_settings=SETTINGS,
)
benchmark.add_commands(data_app)


@data_app.command(
    epilog="Example: sapp data check plant.csv --columns plant.toml",
    short_help="Say what is wrong with logs and how they are loaded.",
    help="Say what is wrong with logs and what loading does about it; nothing is changed.",
)
def check(
    source: Annotated[
        str,
        typer.Argument(metavar="LOGS", help="File, dataset such as hopper-medium, or Minari id.", show_default=False),
    ],
    columns: Columns = None,
    environment: Home = None,
    limit: Limit = None,
    json: Json = False,
) -> None:
    """``sapp.data.check.check(source, columns)``."""
    from dataclasses import asdict

    from sapp.data.check import examine
    from sapp.data.load import load_vectors

    data = load_vectors(source, columns=columns or None, environment=environment, max_episode_steps=limit)
    found = examine(data)
    problems, fits = _against_environment(data)
    found.findings[:0] = problems
    if json:
        print_json(asdict(found))
        return
    say(f"{found.name}: {found.summary}")
    for heading, lines in (("On loading", found.ledger), ("Worth knowing", found.findings)):
        say(f"{heading}:" + ("" if lines else " nothing"))
        for line in lines:
            say(f"  - {line}")
    how = "".join(f" {'--map' if '=' in word else '--columns'} {shlex.quote(word)}" for word in columns or ())
    how += f" --environment {shlex.quote(environment)}" if environment else ""
    how += f" --map max_episode_steps={limit}" if limit else ""
    if not fits:
        say(f"Next: name the environment that these logs are from, not {data.environment}, or none")
        return
    say(f"Next: sapp train {found.algorithm} {shlex.quote(source)}{how} {found.plan}")


def _against_environment(data: Dataset) -> tuple[list[str], bool]:
    """What does not fit between logs and the environment they name, and whether a training there would be refused."""
    if data.environment is None:
        return [], True
    from sapp.envs import make
    from sapp.envs.data_check import compare

    try:
        made = make(data.environment, physics=data.physics, recorded=True, usual_steps=data.play_limit)
        return compare(data, made), True
    except SappError as error:
        return [str(error)], False


@data_app.command(
    epilog="Example: sapp data show logs.csv --columns map.toml --plot logs.png",
    short_help="Print what is in a dataset, and draw it.",
    help="Print what is in a dataset: episodes, returns, ranges; and draw it.",
)
def show(
    source: Source,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write a figure (.png, .svg or .pdf).")] = None,
    columns: Columns = None,
    environment: Home = None,
    low: Low = None,
    high: High = None,
    limit: Limit = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """``sapp.data.dataset_summary.summarise(sapp.load(source))``."""
    from dataclasses import asdict

    from sapp.core.figures import check_figure
    from sapp.data import load
    from sapp.data.dataset_summary import plot_summary, print_summary, summarise

    if plot is not None:
        check_figure(plot, force)
    dataset = load(
        source, columns=columns, environment=environment, action_low=low, action_high=high, max_episode_steps=limit
    )
    summary = summarise(dataset)
    drawn = plot_summary(dataset, plot) if plot is not None else None
    if json:
        print_json(asdict(summary))
        return
    print_summary(summary, console())
    if drawn is not None:
        say(f"Figure: {drawn}")


@data_app.command(
    epilog="Example: sapp data replay hopper_medium-v2.hdf5",
    short_help="Replay a D4RL file: which simulator made it?",
    help="Replay every row of a D4RL file for one step: which simulator reproduces what it recorded?",
)
def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A D4RL HDF5 file.", show_default=False)],
    physics: Annotated[str | None, typer.Option("--physics", help="d4rl or v4 [both].")] = None,
    environment: Annotated[
        str | None, typer.Option("--environment", help="hopper, halfcheetah or walker2d [from the file's name].")
    ] = None,
    json: Json = False,
) -> None:
    """``sapp.envs.one_step_replay.replay(file)``."""
    from dataclasses import asdict

    from sapp.envs.one_step_replay import print_report
    from sapp.envs.one_step_replay import replay as run

    report = run(file, physics=physics or ("d4rl", "v4"), environment=environment)
    if json:
        print_json(asdict(report))
    else:
        print_report(report, console())


@data_app.command(
    epilog="Example: sapp data convert logs.csv logs.npz --columns map.toml --environment Pendulum-v1",
    short_help="Write any dataset as one .npz file.",
    help="Write any dataset as one .npz file, with names, bounds and environment set once and for all; "
    "a DQN-Replay folder becomes a folder whose frames are memory-mapped, for logs larger than memory.",
)
def convert(
    source: Source,
    target: Annotated[
        Path,
        typer.Argument(metavar="OUT.npz", help="The file (for image logs, the folder) to write.", show_default=False),
    ],
    columns: Columns = None,
    name: Name = None,
    environment: Home = None,
    low: Low = None,
    high: High = None,
    limit: Limit = None,
    rescale_actions: Rescale = False,
    compress: Annotated[bool, typer.Option("--compress", help="Smaller and slower.")] = False,
    force: Force = False,
) -> None:
    """``sapp.save_npz(sapp.load(source), target)``."""
    from sapp.data import FrameDataset, load, save_npz
    from sapp.data.loaders.arrays import check_target
    from sapp.data.loaders.dqn_replay import is_dqn_replay, load_dqn_replay

    if is_dqn_replay(Path(source)) and target.suffix != ".npz":
        frames = load_dqn_replay(source, into=target, name=name, environment=environment)
        say(f"{target}: {frames.size:,} rows")
        return
    if target.suffix != ".npz":
        raise SappError(f"{target}: the file name must end in .npz")
    check_target(target, force)
    dataset = load(
        source, columns=columns, name=name, environment=environment, action_low=low, action_high=high,
        max_episode_steps=limit,
    )  # fmt: skip
    if rescale_actions:
        from sapp.envs.data_check import stretched_to_own

        dataset = stretched_to_own(dataset)
    if isinstance(dataset, FrameDataset):
        raise SappError(f"{source}: holds images, which an .npz file is not for; give a folder to write")
    say(f"{save_npz(dataset, target, compress=compress)}: {dataset.size:,} transitions")
