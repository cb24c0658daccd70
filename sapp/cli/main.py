"""The ``sapp`` command: thin, every command is also one Python call.

Nothing heavy is imported before a command runs, so that help answers at once.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from sapp.cli.collect import add_command as add_collect
from sapp.cli.console import console
from sapp.cli.data import add_commands as add_data_commands
from sapp.cli.experiment import add_commands as add_experiment_commands
from sapp.cli.offline import ActAs, Bags, ColumnsFile, Discount, FitHidden, FitSteps, Kept, OfflineData
from sapp.cli.offline import add_commands as add_offline_commands
from sapp.cli.theory import theory_app
from sapp.core.errors import Interrupted, SappError
from sapp.core.seeds import parse_seeds
from sapp.core.version import __version__

if TYPE_CHECKING:
    from rich.table import Table

    from sapp.algorithms import Algorithm
    from sapp.data import Dataset, FrameDataset
    from sapp.runs.run import Run
    from sapp.training.online_evaluation import Evaluation

PENALISED = {
    "cql": "conservative Q-learning, CQL(H)",
    "discrete-cql": "CQL(H) for discrete actions, on double DQN",
    "td3bc": "TD3+BC",
    "rebrac": "ReBRAC",
    "bear": "BEAR",
    "brac": "BRAC-v with the KL divergence",
    "brac-p": "BRAC-p: the same, in the policy only",
    "brac-mmd": "BRAC-p with the squared MMD",
    "fisher-brc": "Fisher-BRC",
    "uwac": "UWAC",
}
OTHERS = {
    "bc": "behaviour cloning",
    "bcq": "BCQ",
    "edac": "EDAC",
    "sac-n": "SAC-N",
    "iql": "implicit Q-learning",
    "discrete-bc": "behaviour cloning of discrete actions",
    "dqn": "double DQN on logs",
    "qr-dqn": "QR-DQN",
    "rem": "random ensemble mixture",
}
VARIANTS = {
    "sa-": "state-aware: its penalty weighted with DualDICE state ratios",
    "s-sa-": "control: random weights in the same range",
    "shuffled-sa-": "control: the state-aware weights permuted over the batch",
    "matched-sa-": "control: every weight is the mean of the state-aware ones",
}
"""Names for the help page, which must not import JAX to list them; a test keeps them equal to the presets."""

# A usage error of the parser; typer carries the parser inside or beside it depending on its version.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]

_SETTINGS = {"help_option_names": ["-h", "--help"]}
_OPEN = {**_SETTINGS, "ignore_unknown_options": True}

ORDER = (
    "demo", "train", "resume", "evaluate", "select", "export", "report", "experiment", "data", "collect", "algorithms",
    "theory",
)  # fmt: skip
"""Commands as help lists them: those that one meets first come first."""


class _InOrder(TyperGroup):
    """The command itself, whose help lists its parts in our order, not in that in which they were added."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of all commands."""
        return [name for name in ORDER if name in self.commands] + sorted(set(self.commands) - set(ORDER))


app = typer.Typer(
    name="sapp",
    cls=_InOrder,
    help="Offline reinforcement learning with state-aware proximal pessimism.",
    epilog="Start with: sapp demo",
    add_completion=False,
    rich_markup_mode=None,
    context_settings=_SETTINGS,
)
data_app = typer.Typer(
    help="Look at datasets, check their physics, convert them.",
    epilog="Example: sapp data show hopper-medium-v2",
    rich_markup_mode=None,
    context_settings=_SETTINGS,
)
app.add_typer(data_app, name="data")
app.add_typer(theory_app, name="theory")
add_data_commands(data_app)
add_collect(app)
add_offline_commands(app, data_app)
add_experiment_commands(app)

Out = Annotated[Path | None, typer.Option("--out", "-o", help="Run folder; default runs/ALGORITHM-DATA-TIME.")]
Columns = Annotated[Path | None, typer.Option("--columns", help="TOML file that maps columns of Parquet and CSV logs.")]
Environment = Annotated[str | None, typer.Option("--environment", help="Play in this environment instead.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no table at the end.")]
Board = Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard events.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that train made.", show_default=False)]
Source = Annotated[str, typer.Argument(metavar="DATA", help="File, D4RL name or Minari id.", show_default=False)]
Name = Annotated[str | None, typer.Option("--name", help="Call the dataset this.")]
Home = Annotated[str | None, typer.Option("--environment", help="The environment it is from.")]
Low = Annotated[float | None, typer.Option("--action-low", help="Lowest action.")]
High = Annotated[float | None, typer.Option("--action-high", help="Highest action.")]
Limit = Annotated[int | None, typer.Option("--max-episode-steps", help="Step limit, where time-outs are not marked.")]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, 2 after an error of input or use, 130 after Ctrl-C.

    An error is one line on stderr. Anything unforeseen is a bug and keeps its traceback.
    """
    arguments = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    try:
        code = typer.main.get_command(app).main(args=arguments, prog_name="sapp", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except SappError as error:
        if isinstance(error, Interrupted):
            return _complain(f"sapp: {error}", 130)
        return _complain(f"sapp: error: {error}", 2)
    except UsageError as error:
        return _complain(f"sapp: error: {_usage(error)}", 2)
    except (typer.Abort, KeyboardInterrupt):
        return _complain("sapp: interrupted; a run that had begun continues with: sapp resume RUN", 130)
    except BrokenPipeError:  # the reader (head, less) has gone; Python would complain once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        line = _condition(error)
        if line is None:
            raise
        return _complain(f"sapp: error: {line}", 2)


def _complain(line: str, code: int) -> int:
    print(" ".join(line.split()), file=sys.stderr)
    return code


def _usage(error: Any) -> str:
    """A parser's message as one line that ends with where help is."""
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "sapp"
    return f"{error.format_message().rstrip('.')}; see: {where} --help"


def _condition(error: BaseException) -> str | None:
    """One line for conditions of the machine that the user can mend; None for bugs."""
    if isinstance(error, OSError) and (error.filename is not None or error.errno in (errno.ENOSPC, errno.EDQUOT)):
        place = f"{error.filename}: " if error.filename is not None else ""
        return f"{place}{error.strerror or error}; mend that and try again"
    exhausted = type(error).__name__ in ("XlaRuntimeError", "JaxRuntimeError") and "RESOURCE_EXHAUSTED" in str(error)
    if isinstance(error, MemoryError) or exhausted:
        return "out of memory; train fewer members at once (--seeds), or use a smaller --batch-size"
    return None


def _version(show: bool) -> None:
    if show:
        print(f"sapp {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command(
    epilog="Example: sapp demo --out runs/demo",
    help="Make data, train CQL and SA-CQL side by side, show scores and a figure; under three minutes on two cores. "
    "If --out holds a demo that was interrupted, it goes on as it began.",
)
def demo(
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Run folder; default runs/demo-TIME.")] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="Seeds of each algorithm.")] = 3,
    steps: Annotated[int, typer.Option("--steps", help="Steps of the last phase.")] = 3_000,
    quiet: Quiet = False,
) -> None:
    """``sapp.cli.demo.demo()``."""
    from sapp.cli.demo import demo as show

    show(out, seeds=seeds, steps=steps, progress=not quiet)


_TRAIN = f"""Train algorithms on datasets: all seeds (and values of a sweep) at once, as one compiled population.

ALGORITHM is one of these, or several joined by commas:

\b
{chr(10).join(f"  {name:<16} {what}" for name, what in {**PENALISED, **OTHERS}.items())}

Those from cql to uwac have a penalty a state and so these variants, such as sa-cql:

\b
{chr(10).join(f"  {name:<16} {what}" for name, what in VARIANTS.items())}

DATA is a file (.hdf5, .npz, .parquet, .csv), a D4RL name such as hopper-medium-v2, or a Minari id.

Every hyper-parameter is an option of its name; 'sapp algorithms NAME' lists them. Several values joined by commas
train side by side: --alpha 2.5,5,10. Parts have dotted names: --weights.hidden 64,64.

\b
Examples:
  sapp train sa-cql hopper-medium-v2 --seeds 3
  sapp train cql,sa-cql logs.csv --columns map.toml --steps 100000 --out runs/first
  sapp train cql hopper_medium-v2.hdf5 --alpha 2.5,5,10 --hidden 256,256
"""


@app.command(context_settings=_OPEN, help=_TRAIN, options_metavar="[OPTIONS] [--HYPER-PARAMETER VALUE]...")
def train(
    words: Annotated[list[str], typer.Argument(metavar="ALGORITHM DATA...", show_default=False)],
    seeds: Annotated[str, typer.Option("--seeds", help="How many (0, 1, ...), or which: 3,7,11.")] = "1",
    steps: Annotated[int, typer.Option("--steps", help="Gradient steps of the last phase.")] = 1_000_000,
    pretrain: Annotated[
        int | None, typer.Option("--pretrain", help="Steps without weights before the ratio is learned [20000].")
    ] = None,
    ratio_steps: Annotated[
        int | None, typer.Option("--ratio-steps", help="Steps in which only the ratio learns [100000].")
    ] = None,
    out: Out = None,
    eval_every: Annotated[
        int | None, typer.Option("--eval-every", help="Steps between evaluations; 0: never [a twentieth of steps].")
    ] = None,
    eval_episodes: Annotated[int, typer.Option("--eval-episodes", help="Episodes a member and evaluation.")] = 10,
    eval_seed: Annotated[int, typer.Option("--eval-seed", help="Seed of the evaluation's start states.")] = 0,
    eval_max_steps: Annotated[
        int | None, typer.Option("--eval-max-steps", help="Images: cut episodes of evaluation [the game's own limit].")
    ] = None,
    log_every: Annotated[int, typer.Option("--log-every", help="Steps averaged in a row of metrics.csv.")] = 1_000,
    checkpoint_every: Annotated[
        int | None, typer.Option("--checkpoint-every", help="Steps between checkpoints [as --eval-every].")
    ] = None,
    keep: Annotated[int, typer.Option("--keep", help="How many checkpoints to keep.")] = 2,
    precision: Annotated[
        str | None, typer.Option("--precision", help="Of matrix products: auto, float32, tf32, mixed [auto].")
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Images: leave frames on the host even where the device could hold them.")
    ] = False,
    columns: Columns = None,
    environment: Environment = None,
    tensorboard: Board = False,
    quiet: Quiet = False,
) -> None:
    """``sapp.train(algorithms, data, ...)``."""
    positional, changes = split_options(words)
    if len(positional) < 2:
        raise SappError("train needs an algorithm and data, as in: sapp train sa-cql hopper-medium-v2")
    if precision is not None:
        changes["precision"] = precision
    names = [name.strip() for name in positional[0].split(",")]
    algorithms = sweep(names, changes)
    phases = _protocol(algorithms, steps, pretrain, ratio_steps)

    from sapp.training.loop import train as start

    run = start(
        algorithms,
        _sources(positional[1:], columns, environment),
        seeds=parse_seeds(seeds),
        steps=steps,
        phases=phases,
        out=out,
        eval_every=eval_every,
        eval_episodes=eval_episodes,
        eval_seed=eval_seed,
        eval_max_steps=eval_max_steps,
        stream=True if stream else None,
        log_every=log_every,
        checkpoint_every=checkpoint_every,
        keep=keep,
        progress=not quiet,
        tensorboard=tensorboard,
    )
    _finished(run, quiet)


@app.command(epilog="Example: sapp resume runs/first", help="Continue a run from its newest checkpoint, bit for bit.")
def resume(
    path: RunFolder,
    data: Annotated[
        list[str] | None, typer.Option("--data", help="Where a dataset is now, if it moved; once per dataset.")
    ] = None,
    columns: Columns = None,
    tensorboard: Board = False,
    quiet: Quiet = False,
) -> None:
    """``sapp.resume(path)``."""
    from sapp.runs.run import Run
    from sapp.training.loop import resume as go_on

    before = Run(path).step
    moved = [_load(source, columns=columns) for source in data] if data else None
    run = go_on(path, data=moved, progress=not quiet, tensorboard=tensorboard)
    if before >= run.total_steps and not quiet:
        print(f"{path}: finished, all {before:,} steps were trained; nothing is left to do", file=sys.stderr)
    _finished(run, quiet)


@app.command(
    epilog="Example: sapp evaluate runs/first --episodes 100",
    help="Play the newest checkpoint of a run's members, all at once, and print returns and normalised scores; or, "
    "with --offline, estimate from logs alone what they are worth (exit code 3 where no estimate deserves trust).",
)
def evaluate(
    path: RunFolder,
    episodes: Annotated[int, typer.Option("--episodes", help="Episodes a member.")] = 10,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the start states.")] = 0,
    member: Annotated[
        list[str] | None, typer.Option("--member", help="Only this one, such as cql/hopper-medium-v2/0; repeatable.")
    ] = None,
    environment: Environment = None,
    physics: Annotated[
        str | None, typer.Option("--physics", help="d4rl or v4, for hopper, halfcheetah and walker2d.")
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="From logs alone; RUN may be a policy file, too.")] = False,
    data: OfflineData = None,
    columns: ColumnsFile = None,
    discount: Discount = None,
    fit_steps: FitSteps = 20_000,
    bags: Bags = 8,
    fit_hidden: FitHidden = "256,256",
    act: ActAs = "mode",
    checkpoints: Kept = "last",
    video: Annotated[
        bool, typer.Option("--video", help="Also write an animated picture of one episode a member: RUN/videos/.")
    ] = False,
    json: Json = False,
) -> None:
    """``sapp.training.online_evaluation.play(run, ...)``, or ``sapp.ope.offline.evaluate_offline(...)``."""
    if offline:
        from sapp.cli.offline import evaluate_offline

        code = evaluate_offline(
            path, data=data, columns=columns, members=member, discount=discount, steps=fit_steps, bags=bags,
            hidden=fit_hidden, act=act, checkpoints=checkpoints, seed=seed, json=json,
        )  # fmt: skip
        raise typer.Exit(code)
    if data is not None or columns is not None or discount is not None:
        raise SappError("--data, --columns and --discount are for estimates from logs; add --offline")
    from sapp.runs.run import Run
    from sapp.training.online_evaluation import play

    run = Run(path)
    if video:
        from sapp.evaluation.video import record

        for file in record(run, member, seed=seed, environment=environment, physics=physics):
            print(f"Video: {file}", file=sys.stderr)
    found = play(run, episodes=episodes, seed=seed, members=member, environment=environment, physics=physics)
    rows = [_measured(run.members[one.member], one) for one in found]
    if json:
        _print_json({"run": str(path), "step": run.step, "seed": seed, "members": rows})
    else:
        _print(_score_table(f"{path}, step {run.step:,}", rows))


@app.command(
    epilog="Example: sapp algorithms sa-cql",
    help="List the algorithms, or the hyper-parameters of one, their defaults and what they mean.",
)
def algorithms(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Such as sa-cql.", show_default=False)] = None,
    data: Annotated[str, typer.Option("--data", help="Defaults for this dataset, such as walker2d-expert-v2.")] = "",
    json: Json = False,
) -> None:
    """What ``sapp.algorithms.config.options`` and ``sapp.core.field_docs`` say of a preset."""
    from sapp.algorithms.presets import PRESETS, preset

    texts: dict[str, str] = {}
    if name is None:
        rows: dict[str, Any] = {key: what for key, (what, _) in PRESETS.items()}
        headings = ["algorithm", "what it is"]
    else:
        from sapp.algorithms.config import options
        from sapp.core.field_docs import meanings

        chosen = preset(name, data)
        rows, texts = dict(options(chosen)), meanings(chosen)
        headings = ["hyper-parameter", "default", *(["meaning"] if any(texts.values()) else [])]
    if json:
        _print_json(rows)
        return
    table = _table(*headings)
    for key, value in rows.items():
        table.add_row(key, _text(value), *([_text(texts[key])] if len(headings) == 3 else []))
    _print(table)


@data_app.command(
    epilog="Example: sapp data show logs.csv --columns map.toml --plot logs.png",
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
    json: Json = False,
) -> None:
    """``sapp.data.dataset_summary.summarise(sapp.load(source))``."""
    from dataclasses import asdict

    from sapp.data.dataset_summary import plot_summary, print_summary, summarise

    dataset = _load(
        source, columns=columns, environment=environment, action_low=low, action_high=high, max_episode_steps=limit
    )
    summary = summarise(dataset)
    drawn = plot_summary(dataset, plot) if plot is not None else None
    if json:
        _print_json(asdict(summary))
        return
    print_summary(summary, console())
    if drawn is not None:
        print(f"Figure: {drawn}")


@data_app.command(
    epilog="Example: sapp data replay hopper_medium-v2.hdf5",
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
        _print_json(asdict(report))
    else:
        print_report(report, console())


@data_app.command(
    epilog="Example: sapp data convert logs.csv logs.npz --columns map.toml --environment Pendulum-v1",
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
    compress: Annotated[bool, typer.Option("--compress", help="Smaller and slower.")] = False,
) -> None:
    """``sapp.save_npz(sapp.load(source), target)``."""
    from sapp.data import FrameDataset, save_npz
    from sapp.data.loaders.dqn_replay import is_dqn_replay, load_dqn_replay

    if is_dqn_replay(Path(source)) and target.suffix != ".npz":
        frames = load_dqn_replay(source, into=target, name=name, environment=environment)
        print(f"{target}: {frames.size:,} rows")
        return
    if target.suffix != ".npz":
        raise SappError(f"{target}: the file name must end in .npz")
    dataset = _load(
        source, columns=columns, name=name, environment=environment, action_low=low, action_high=high,
        max_episode_steps=limit,
    )  # fmt: skip
    if isinstance(dataset, FrameDataset):
        raise SappError(f"{source}: holds images, which an .npz file is not for; give a folder to write")
    print(f"{save_npz(dataset, target, compress=compress)}: {dataset.size:,} transitions")


def split_options(words: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """Positional words, and the options among them that the parser does not know: the hyper-parameters."""
    positional: list[str] = []
    changes: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            positional.append(word)
            continue
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not name:
            raise SappError(f"option {word} is unknown; see: sapp train --help")
        value = value if equals else next(rest, "--")
        if value.startswith("--"):
            raise SappError(f"option --{name} needs a value, as in: --{name} VALUE")
        if name in changes:
            raise SappError(f"option --{name} is given twice; join values to compare by commas: --{name} A,B")
        changes[name] = value
    return positional, changes


def sweep(names: Sequence[str], changes: Mapping[str, str]) -> dict[str, Callable[[str], Algorithm]]:
    """Presets with hyper-parameters changed, one for every combination of comma-separated values, by a telling name.

    A hyper-parameter must belong to at least one of the named algorithms; it is changed in those that have it.
    """
    from itertools import product

    from sapp.algorithms.config import options, override
    from sapp.algorithms.presets import preset

    bases = {name: preset(name) for name in names}
    found = {(name, option): _find(base, option) for name, base in bases.items() for option in changes}
    for option in changes:
        if all(found[name, option] is None for name in names):
            _unknown(bases[names[0]], option)
    table: dict[str, Callable[[str], Algorithm]] = {}
    for name, base in bases.items():
        values = dict(options(base))
        choices = {
            dotted: [text] if isinstance(values[dotted], tuple) else text.split(",")
            for option, text in changes.items()
            if (dotted := found[name, option]) is not None
        }
        for combination in product(*choices.values()):
            chosen = dict(zip(choices, combination, strict=True))
            override(base, chosen)  # a value that cannot be read is reported now, not when the data are loaded
            label = ",".join(f"{key}={value}" for key, value in chosen.items() if len(choices[key]) > 1)
            table[f"{name}[{label}]" if label else name] = _changed(name, chosen)
    return table


def _changed(name: str, changes: Mapping[str, str]) -> Callable[[str], Algorithm]:
    def on(dataset: str) -> Algorithm:
        from sapp.algorithms.config import override
        from sapp.algorithms.presets import preset

        return override(preset(name, dataset), changes)

    return on


def _find(base: Algorithm, option: str) -> str | None:
    from sapp.algorithms.config import resolve

    try:
        return resolve(base, option)
    except SappError:
        return None


def _unknown(base: Algorithm, option: str) -> None:
    """Complain about an option that is neither the command's nor a hyper-parameter."""
    from difflib import get_close_matches

    from sapp.algorithms.config import options, resolve

    command = typer.main.get_command(app).commands["train"]  # type: ignore[attr-defined]
    own = [text.lstrip("-") for parameter in command.params for text in parameter.opts if text.startswith("--")]
    names = [name.rsplit(".", 1)[-1].replace("_", "-") for name, _ in options(base)]
    close = get_close_matches(option.replace("_", "-"), [*own, *names], n=1)
    if close and close[0] in own:
        raise SappError(f"option --{option} is unknown; did you mean --{close[0]}?")
    resolve(base, option)  # its own complaint names the nearest hyper-parameter


def _protocol(
    algorithms: Mapping[str, Callable[[str], Algorithm]], steps: int, pretrain: int | None, ratio: int | None
) -> Any:
    """The phases asked for; None leaves the choice to ``sapp.train``."""
    from sapp.runs.phases import PRETRAIN_STEPS, RATIO_STEPS, prepared, sa_protocol

    if pretrain is None and ratio is None:
        return None
    found = [algorithm("") for algorithm in algorithms.values()]
    if not any(algorithm.weights.learns for algorithm in found):
        raise SappError("--pretrain and --ratio-steps are for weights that learn, such as sa-cql's; leave them out")
    counts = PRETRAIN_STEPS if pretrain is None else pretrain, RATIO_STEPS if ratio is None else ratio
    return prepared(max(algorithm.preparation for algorithm in found), sa_protocol(steps, *counts))


def _sources(words: Sequence[str], columns: Path | None, environment: str | None) -> list[Any]:
    """What to train on; loaded here only where options change it, as the run then keeps its own copy."""
    if columns is None and environment is None:
        return list(words)
    return [_load(word, columns=columns, environment=environment) for word in words]


def _load(source: str, **options: Any) -> Dataset | FrameDataset:
    """``sapp.load`` with a bar while it downloads."""
    from sapp.data import load

    if not sys.stderr.isatty():
        return load(source, **options)
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(source, visible=False, total=None)
        return load(
            source,
            progress=lambda done, total: bar.update(task, completed=done, total=total, visible=True),
            **options,
        )


def _finished(run: Run, quiet: bool) -> None:
    """Say where the results are, and the scores of the last evaluation."""
    if quiet:
        return
    last = [row for row in run.evaluations() if int(row["step"]) == run.total_steps]
    if last:
        rows = [
            {
                "member": row["member"],
                "return": float(row["return_mean"]),
                "score": float(row["score_mean"]) if row["score_mean"] else None,
                "length": float(row["length_mean"]),
            }
            | _intervals([float(value) for value in row["returns"].split(";")], run, row["member"])
            for row in last
        ]
        _print(_score_table(f"Last evaluation, step {run.total_steps:,}", rows))
        for found in run.final_and_best():
            if run.plan.problems[run.plan.members[run.member_index(found["member"])].dataset].frame is not None:
                print(
                    f"{found['member']}: final {found['final']:.1f}, best {found['best']:.1f} at {found['best_step']:,}"
                )
    print(f"Run: {run.path}")


def _intervals(returns: Sequence[float], run: Run, member: str) -> dict[str, Any]:
    import numpy as np

    from sapp.data.normalised_scores import base_name, normalized_score

    problem = run.plan.problems[run.plan.members[run.member_index(member)].dataset]
    task = base_name(problem.environment or "")
    values = np.asarray(returns)
    return _bounds("return", values) | (_bounds("score", normalized_score(task, values)) if task else {})


def _bounds(what: str, values: Any) -> dict[str, float | None]:
    from sapp.core.statistics import mean_interval

    interval = mean_interval(values)
    low, high = (interval.low, interval.high) if interval.known else (None, None)
    return {f"{what}_low": low, f"{what}_high": high}


def _measured(name: str, one: Evaluation) -> dict[str, Any]:
    """One member's evaluation as plain data; intervals (95 %) are over its episodes; a single one has none."""
    row: dict[str, Any] = {"member": name, "return": float(one.returns.mean()), **_bounds("return", one.returns)}
    row["score"] = None if one.scores is None else float(one.scores.mean())
    if one.scores is not None:
        row |= _bounds("score", one.scores)
    row["length"] = float(one.lengths.mean())
    return row | {"returns": one.returns.tolist(), "lengths": one.lengths.tolist()}


def _score_table(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    table = _table("member", "return", "95 % interval", "score", "95 % interval", "length", title=title)
    table.caption = "intervals are over episodes (Student's up to 10, bootstrap beyond); score: 0 random, 100 expert"
    for row in rows:
        table.add_row(_text(row["member"]), *_cells(row, "return"), *_cells(row, "score"), f"{row['length']:.0f}")
    return table


def _cells(row: Mapping[str, Any], what: str) -> tuple[str, str]:
    if row.get(what) is None:
        return "", ""
    low, high = row[f"{what}_low"], row[f"{what}_high"]
    return f"{row[what]:.1f}", "" if low is None else f"{low:.1f} to {high:.1f}"


def _table(first: str, *others: str, title: str | None = None) -> Table:
    from rich.table import Table

    table = Table(title=None if title is None else _text(title), title_justify="left", caption_justify="left")
    table.add_column(first, overflow="fold")
    for heading in others:
        table.add_column(heading, justify="right" if others[-1] == "length" else "left")
    return table


def _text(value: Any) -> Any:
    """Plain text: a name in brackets is not markup."""
    from rich.text import Text

    return Text(",".join(map(str, value)) if isinstance(value, tuple) else str(value))


def _print(table: Table) -> None:
    console().print(table)


def _print_json(content: Any) -> None:
    import json

    print(json.dumps(content, indent=2, ensure_ascii=False))
