"""Options and arguments that several commands share, and how their texts are read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from sapp.core.errors import SappError

SETTINGS = {"help_option_names": ["-h", "--help"]}
OPEN = {**SETTINGS, "ignore_unknown_options": True}
"""For commands whose options are also hyper-parameters; see ``split_options``."""

Out = Annotated[Path | None, typer.Option("--out", "-o", help="Run folder; default runs/ALGORITHM-DATA-TIME.")]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--columns", "--map", metavar="FILE|KEY=VALUE",
        help="What the columns of logs mean: a TOML file, or one key of it, such as last_step=end; repeatable.",
    ),
]  # fmt: skip
Environment = Annotated[str | None, typer.Option("--environment", help="Play in this environment instead.")]
Rescale = Annotated[
    bool, typer.Option("--rescale-actions", help="Stretch logged actions to the environment's bounds.")
]  # fmt: skip
Force = Annotated[bool, typer.Option("--force", help="Replace a file of that name, whatever it is.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no table at the end.")]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", help="Save and stop after this many seconds; resume continues.")
]
LogTo = Annotated[
    str | None, typer.Option("--log-to", help="Also log to wandb, mlflow, tensorboard, csv; joined by commas.")
]
KeepBest = Annotated[bool, typer.Option("--keep-best", help="Keep each member's best evaluation in RUN/best.")]
StopEarly = Annotated[
    int | None, typer.Option("--stop-early", metavar="N", help="Stop after N evaluations without a higher return.")
]
PushTo = Annotated[
    str | None, typer.Option("--push-to", metavar="REPO", help="At the end, publish policy and card on a model hub.")
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that train made.", show_default=False)]
Source = Annotated[
    str, typer.Argument(metavar="DATA", help="File, dataset such as hopper-medium, or Minari id.", show_default=False)
]
Name = Annotated[str | None, typer.Option("--name", help="Call the dataset this.")]
Home = Annotated[str | None, typer.Option("--environment", help="The environment it is from.")]
Low = Annotated[float | None, typer.Option("--action-low", help="Lowest action.")]
High = Annotated[float | None, typer.Option("--action-high", help="Highest action.")]
Limit = Annotated[int | None, typer.Option("--max-episode-steps", help="Step limit, where time-outs are not marked.")]


LARGEST = 2**31 - 1
"""Whole numbers of options are not larger: steps, episodes, rows, seeds."""


def whole_number(option: str, text: str) -> int:
    """A number as people write it, 100_000 or 100,000 or 1e5."""
    try:
        if "," in text and not re.fullmatch(r"\s*[0-9]{1,3}(,[0-9]{3})+\s*", text):  # 1,2 are two numbers, not twelve
            raise ValueError
        value = float(text.replace("_", "").replace(",", ""))
        if value != int(value) or value < 1:
            raise ValueError
        found = int(value)
    except (ValueError, OverflowError):
        raise SappError(f"{option} {text!r}: give a whole number of at least 1, such as 100_000") from None
    if found > LARGEST:
        raise SappError(f"{option} {text!r}: give a whole number of at most {LARGEST:,}")
    return found


KINDS = {"int": "N", "float": "NUMBER", "path": "PATH", "str": "TEXT"}
"""What help shows for a value, by the parser's word for its type."""


def finished(command: Any) -> Any:
    """The same command, whose help shows values as people call them, not as Python does.

    Its whole numbers are refused beyond ``LARGEST``, before anything is done.
    """
    for each in getattr(command, "commands", {}).values():
        finished(each)
    for parameter in command.params:
        parameter.callback = _bounded(parameter.callback)
        if parameter.param_type_name == "argument":
            _show_name_only(parameter)
        elif parameter.metavar is None and not getattr(parameter, "is_flag", False):
            parameter.metavar = _kind(parameter)
    return command


def _kind(parameter: Any) -> str | None:
    """What help shows for an option's value; None leaves it to the parser."""
    shown = getattr(parameter, "display_type", None)  # the parser of some versions has its own words in capitals
    if shown is None:
        return None
    word = shown(None).strip("<>").removeprefix("list[").removesuffix("]").removesuffix(" range").lower()
    return KINDS.get(word)


def _show_name_only(argument: Any) -> None:
    """Names of arguments say what they take: ``RUN...``, not ``{RUN...}...`` and ``RUN... <list[Path]>``."""
    name = str(argument.metavar or argument.name)
    argument.display_type_rich = lambda ctx: ""
    argument._usage_display_name = lambda: name if argument.required or name.startswith("[") else f"[{name}]"


def _bounded(then: Any) -> Any:
    def check(context: Any, parameter: Any, value: Any) -> Any:
        if isinstance(value, int) and abs(value) > LARGEST:
            raise SappError(f"{max(parameter.opts, key=len)} {value}: give a whole number of at most {LARGEST:,}")
        return value if then is None else then(context, parameter, value)

    return check


def refuse_given(context: typer.Context, names: Iterable[str], why: str) -> None:
    """Refuse options that were given although they say nothing about what is done."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name in names and source is not None and source.name in ("COMMANDLINE", "DEFAULT_MAP"):
            raise SappError(f"{max(parameter.opts, key=len)} {why}; leave it out")


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
            raise SappError(f"option --{name} needs a value, as in: --{name} VALUE; see --help for those without one")
        if name in changes:
            raise SappError(f"option --{name} is given twice; join values to compare by commas: --{name} A,B")
        changes[name] = value
    return positional, changes
