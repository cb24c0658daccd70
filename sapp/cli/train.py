"""``sapp train``: algorithms, state weights and hyper-parameters by name, trained as one population."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from itertools import product, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapp.algorithms.registry import ABOUT, PAPER
from sapp.cli.config_file import save
from sapp.cli.evaluate import print_last_evaluation
from sapp.cli.hooks import hooks_of
from sapp.cli.options import (
    OPEN,
    Columns,
    Environment,
    KeepBest,
    LogTo,
    Out,
    PushTo,
    Quiet,
    Rescale,
    StopEarly,
    TimeLimit,
    split_options,
    whole_number,
)  # fmt: skip
from sapp.core.errors import SappError
from sapp.core.seeds import parse_seeds
from sapp.weights.registry import ABOUT as WEIGHTS
from sapp.weights.registry import CONTROLS

if TYPE_CHECKING:
    from sapp.algorithms import Algorithm

    Maker = Callable[[str], Algorithm]


def _listed(rows: Mapping[str, str]) -> str:
    return "\n".join(f"  {name:<17} {what}" for name, what in rows.items())


_HELP = f"""Train algorithms on datasets: all seeds and values of a sweep together, as one compiled program.

ALGORITHM is one of these, or several joined by commas:

\b
{_listed(ABOUT)}
{_listed({name: f"{base} --weights {weights}" for name, (base, weights) in PAPER.items()})}

--weights says how the pessimism of an algorithm is spread over states ('sapp algorithms' says which take them):

\b
{_listed(WEIGHTS)}

or a control of those, such as shuffled:dualdice; controls nest:

\b
{_listed({f"{name}:WEIGHTS": what for name, what in CONTROLS.items()})}

DATA is a file (.hdf5, .npz, .parquet, .csv), a benchmark dataset such as hopper-medium (generated here) or, with a
version, D4RL's own (hopper-medium-v2), or a Minari id. b0 and b1 of the weights follow the paper's tables by its name.

Every hyper-parameter is an option of its name; 'sapp algorithms NAME' lists them. Several values joined by commas
train together: --alpha 2.5,5,10. Parts have dotted names: --weights.hidden 64,64 --weights.f.b1 5.

\b
Examples:
  sapp train sa-cql hopper-medium-v2 --seeds 3
  sapp train cql logs.csv --columns map.toml --weights uniform,occupancy,shuffled:occupancy --out runs/first
  sapp train cql hopper_medium-v2.hdf5 --alpha 2.5,5,10 --hidden 256,256
"""


def add_command(app: typer.Typer) -> None:
    """Add ``train`` to ``sapp``."""
    app.command(
        context_settings=OPEN, help=_HELP, short_help="Train algorithms on datasets, all seeds together.",
        options_metavar="[OPTIONS] [--HYPER-PARAMETER VALUE]...",
    )(train)  # fmt: skip


CheckpointEvery = Annotated[
    int | None, typer.Option("--checkpoint-every", help="Steps between checkpoints [as --eval-every].")
]
Pretrain = Annotated[
    int | None, typer.Option("--pretrain", help="Steps without weights before the ratio is learned [20000].")
]
RatioSteps = Annotated[int | None, typer.Option("--ratio-steps", help="Steps in which only the ratio learns [100000].")]


def _steps(text: str | int) -> int:
    return whole_number("--steps", str(text))


def _completions(context: typer.Context, incomplete: str) -> list[str]:
    """Algorithms where the first word is being typed; the shell completes the others as paths."""
    if context.params.get("words"):
        return []
    return [name for name in (*ABOUT, *PAPER) if name.startswith(incomplete)]


Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="ALGORITHM DATA...", show_default=False, autocompletion=_completions),
]
Steps = Annotated[
    int,
    typer.Option(
        "--steps", parser=_steps, metavar="N", help="Gradient steps of the last phase, such as 200_000 or 1e5."
    ),
]


def train(
    context: typer.Context,
    words: Words = None,
    seeds: Annotated[str, typer.Option("--seeds", help="How many (0, 1, ...), or which: 3,7,11.")] = "1",
    steps: Steps = 1_000_000,
    weights: Annotated[
        str | None, typer.Option("--weights", help="How pessimism is spread over states; several joined by commas.")
    ] = None,
    pretrain: Pretrain = None,
    ratio_steps: RatioSteps = None,
    out: Out = None,
    eval_every: Annotated[
        int | None, typer.Option("--eval-every", help="Steps between evaluations, 0 = off [a twentieth of steps].")
    ] = None,
    eval_episodes: Annotated[int, typer.Option("--eval-episodes", help="Episodes per member and evaluation.")] = 10,
    eval_seed: Annotated[int, typer.Option("--eval-seed", help="Seed of the evaluation's start states.")] = 0,
    eval_max_steps: Annotated[
        int | None, typer.Option("--eval-max-steps", help="Images: cut episodes of evaluation [the game's own limit].")
    ] = None,
    log_every: Annotated[int, typer.Option("--log-every", help="Steps averaged in a row of metrics.csv.")] = 1_000,
    checkpoint_every: CheckpointEvery = None,
    keep: Annotated[int, typer.Option("--keep", help="How many checkpoints to keep.")] = 2,
    precision: Annotated[
        str | None, typer.Option("--precision", help="Of matrix products: auto, float32, tf32, mixed [auto].")
    ] = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Images: leave frames in the host's memory, even if the device has room.")
    ] = False,
    columns: Columns = None,
    environment: Environment = None,
    rescale_actions: Rescale = False,
    time_limit: TimeLimit = None,
    log_to: LogTo = None,
    keep_best: KeepBest = False,
    stop_early: StopEarly = None,
    push_to: PushTo = None,
    save_config: Annotated[
        Path | None, typer.Option("--save-config", metavar="FILE", help="Write this call for --config, then train.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """``sapp.train(algorithms, data, ...)``."""
    positional, changes = _named(words or [])
    own = dict(changes)
    if precision is not None:
        changes["precision"] = precision
    # what is wrong with the options is said before data are loaded or made, which can take minutes
    algorithms = sweep(_split(positional[0]), changes, None if weights is None else _split(weights))
    phases = _protocol(algorithms, steps, pretrain, ratio_steps)
    which = parse_seeds(seeds)
    _check_out(out)
    hooks = hooks_of(log_to, keep_best, stop_early, push_to)
    if save_config is not None:
        save(save_config, context, positional, own)

    from sapp.training.train import train as start

    run = start(
        algorithms,
        _sources(positional[1:], columns, environment, rescale_actions, quiet),
        seeds=which,
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
        time_limit=time_limit,
        progress=not quiet,
        hooks=hooks,
    )
    if not quiet:
        print_last_evaluation(run)


def sweep(
    names: Sequence[str], changes: Mapping[str, str], weights: Sequence[str] | None = None
) -> dict[str, Maker]:
    """Algorithms by a telling name: each with each of the weights and every combination of comma-separated values.

    A hyper-parameter must belong to at least one of them; it is changed in those that have it.

    Args:
        names: of algorithms.
        changes: hyper-parameters by name, as text.
        weights: texts that ``sapp.weights.registry.state_weights`` takes; None: as the algorithms have them.
    """
    from sapp.algorithms.config import options, override
    from sapp.algorithms.registry import preset

    texts: Sequence[str | None] = weights or [None]
    bases = {(name, text): preset(name, "", text) for name in names for text in texts}
    found = {(key, option): _find(base, option) for key, base in bases.items() for option in changes}
    for option in changes:
        if all(found[key, option] is None for key in bases):
            _unknown(next(iter(bases.values())), option)
    table: dict[str, Maker] = {}
    for key, base in bases.items():
        values = dict(options(base))
        given = {
            dotted: [text] if isinstance(values[dotted], tuple) else text.split(",")
            for option, text in changes.items()
            if (dotted := found[key, option]) is not None
        }
        name, text = key
        for combination in product(*given.values()):
            chosen = dict(zip(given, combination, strict=True))
            override(base, chosen)  # a value that cannot be read is reported now, not when the data are loaded
            label = ",".join(f"{option}={value}" for option, value in chosen.items() if len(given[option]) > 1)
            title = name if text is None else f"{name}+{text.replace(':', '-')}"
            table[f"{title}[{label}]" if label else title] = _changed(name, text, chosen)
    return table


def _changed(name: str, weights: str | None, changes: Mapping[str, str]) -> Maker:
    def on(dataset: str) -> Algorithm:
        from sapp.algorithms.config import override
        from sapp.algorithms.registry import preset

        return override(preset(name, dataset, weights), changes)

    return on


def _find(base: Algorithm, option: str) -> str | None:
    from sapp.algorithms.config import resolve

    try:
        return resolve(base, option)
    except SappError:
        return None


def _unknown(base: Algorithm, option: str) -> None:
    """Complain about an option that is neither the command's nor a hyper-parameter."""
    from sapp.algorithms.config import options, resolve

    scratch = typer.Typer()
    add_command(scratch)
    command = typer.main.get_command(scratch)
    own = [text.lstrip("-") for parameter in command.params for text in parameter.opts if text.startswith("--")]
    names = [name.rsplit(".", 1)[-1].replace("_", "-") for name, _ in options(base)]
    close = get_close_matches(option.replace("_", "-"), [*own, *names], n=1)
    if close and close[0] in own:
        raise SappError(f"option --{option} is unknown; did you mean --{close[0]}?")
    resolve(base, option)  # its own complaint names the nearest hyper-parameter


def _protocol(
    algorithms: Mapping[str, Maker], steps: int, pretrain: int | None, ratio: int | None
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


def _check_out(out: Path | None) -> None:
    """Refuse a folder that holds a run, or a place where none can be made."""
    from sapp.runs.folders import CONFIG, check_place
    from sapp.runs.run import Run

    if out is None:
        return
    if (out / CONFIG).exists():
        Run.make_folder(out)  # refuses, and says how to go on
    check_place(out)


def _named(words: list[str]) -> tuple[list[str], dict[str, str]]:
    """The algorithms and the data, and hyper-parameters by name; refused where one is missing or data come first."""
    positional, changes = split_options(words)
    if len(positional) < 2:
        raise SappError("train needs an algorithm and data, as in: sapp train sa-cql hopper-medium")
    first, second = positional[0], positional[1]
    names = {*ABOUT, *PAPER}
    if set(_split(second)) <= names and not Path(second).exists():
        if not set(_split(first)) <= names:
            raise SappError(f"the algorithm comes before the data: sapp train {second} {first}")
        several = ",".join(takewhile(lambda word: set(_split(word)) <= names, positional))
        raise SappError(f"several algorithms are joined by commas: sapp train {several} DATA")
    return positional, changes


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _sources(
    words: Sequence[str], columns: list[str] | None, environment: str | None, rescale: bool, quiet: bool
) -> list[Any]:
    """What to train on; where options change it, as functions that load it, and the run keeps its own copy."""
    if not columns and environment is None and not rescale:
        return list(words)
    from sapp.core.progress_bar import unseen
    from sapp.data import load
    from sapp.data.columns import given_columns
    from sapp.envs import make
    from sapp.envs.data_check import stretched_to_own

    given_columns(columns or None)  # what cannot be read in them, or played in, is said now
    if environment is not None:
        make(environment, usual_steps=1)

    def loading(word: str) -> Callable[[], Any]:
        def read() -> Any:
            data = load(word, columns=columns, environment=environment, progress=unseen if quiet else None)
            return stretched_to_own(data) if rescale else data

        return read

    return [loading(word) for word in words]
