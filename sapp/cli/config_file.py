"""``--config FILE.toml``: arguments and options of a command from a file; what is typed goes before it."""

from __future__ import annotations

import functools
import inspect
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typing_extensions import override

from sapp.cli.options import split_options
from sapp.core.errors import SappError, did_you_mean, one_line, printable
from sapp.core.files import check_replaceable, write_text

WORDS = "words"
"""The parameter of ``train`` and ``collect`` that takes what the parser does not know: hyper-parameters, too."""
HEAD = "# sapp "
NOT_SAVED = ("config", "save_config", "out", "quiet")


@dataclass(frozen=True)
class Configuration:
    """What a file says beside the options that the parser knows."""

    positional: dict[str, list[str]]
    """Values of arguments by name, in the order of the command."""
    changes: dict[str, str]
    """Hyper-parameters."""

    def merged(self, words: Sequence[str] | None) -> list[str]:
        """Words of the command line with those of the file that they leave open, hyper-parameters last."""
        given, changes = split_options(words or [])
        names, found = list(self.positional), []
        for number, name in enumerate(names):
            own = given[number:] if number == len(names) - 1 else given[number : number + 1]
            found += own or self.positional[name]
        spelled = {_plain(name) for name in changes}
        kept = {name: value for name, value in self.changes.items() if _plain(name) not in spelled}
        return [*found, *(f"--{name}={value}" for name, value in (kept | changes).items())]


class Commands(typer.Typer):
    """Commands that all take ``--config``."""

    @override
    def command(self, *arguments: Any, **settings: Any) -> Any:
        register = super().command(*arguments, **settings)

        def add(function: Callable[..., Any]) -> Any:
            register(_with_config(function))
            return function

        return add


def _with_config(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with an option ``--config``, which it does not see."""

    @functools.wraps(function)
    def wrapper(*arguments: Any, config: Any = None, **options: Any) -> Any:
        if isinstance(config, Configuration) and WORDS in options:
            options[WORDS] = config.merged(options[WORDS])
        return function(*arguments, **options)

    own = inspect.signature(function, eval_str=True)
    option = typer.Option(
        "--config", callback=_read, is_eager=True, metavar="FILE", help="Take arguments and options from a TOML file."
    )
    added = inspect.Parameter(
        "config", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, option]
    )
    wrapper.__signature__ = own.replace(parameters=[*own.parameters.values(), added])  # type: ignore[attr-defined]
    return wrapper


def _read(context: typer.Context, value: str | None) -> Any:
    """Make a file's values the defaults of the command."""
    if value is None or context.resilient_parsing:
        return None
    path = Path(value)
    content = _content(path)
    parameters = {name: parameter for parameter in context.command.params for name in _names(parameter)}
    parameters.pop("config", None)
    slots = next((_slots(parameter) for parameter in context.command.params if parameter.name == WORDS), None)
    known = [*parameters, *(slots or ())]
    defaults: dict[str, Any] = {}
    positional: dict[str, list[str]] = {name: [] for name in slots or ()}
    changes: dict[str, str] = {}
    for key, item in content.items():
        name = _plain(key)
        if name in positional:
            positional[name] = [_text(each) for each in (item if isinstance(item, list) else [item])]
        elif name in parameters:
            parameter = parameters[name]
            if parameter.name in defaults:
                raise SappError(f"{path}: {key!r} is given twice; keep one")
            defaults[str(parameter.name)] = _default(parameter, item)
        elif slots is not None:
            changes[key] = _text(item)
        else:
            near = did_you_mean(name, known) or f"; {context.command_path} takes {', '.join(known)}"
            raise SappError(f"{path}: {key!r} is unknown{near}")
    found = Configuration(positional, changes)
    if slots is not None:
        defaults[WORDS] = [word for words in positional.values() for word in words]
    context.default_map = {**(context.default_map or {}), **defaults}
    return found


def _content(path: Path) -> dict[str, Any]:
    try:
        return _flat(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise SappError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or one_line(error)})") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SappError(f"{path}: not TOML ({one_line(error)}); a line is KEY = VALUE, texts in quotes") from None


def _flat(content: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Tables as dotted names."""
    found: dict[str, Any] = {}
    for key, value in content.items():
        found |= _flat(value, f"{before}{key}.") if isinstance(value, dict) else {f"{before}{key}": value}
    return found


def _names(parameter: Any) -> Iterator[str]:
    """What a file may call a parameter: an option's long names, or the word that help has for an argument."""
    if parameter.param_type_name == "argument":
        if parameter.name != WORDS:
            yield _slots(parameter)[0]
        return
    for text in parameter.opts:
        if text.startswith("--") and text != "--help":
            yield _plain(text.removeprefix("--"))


def _slots(parameter: Any) -> list[str]:
    """Names of arguments, from such as "ALGORITHM DATA..."."""
    return [word.strip("[].").partition(".")[0].lower() for word in (parameter.metavar or parameter.name).split()]


def _plain(name: str) -> str:
    return name.replace("-", "_")


def _default(parameter: Any, item: Any) -> Any:
    """A value as the parser takes it: several in one text are joined by commas."""
    if getattr(parameter, "multiple", False) or parameter.nargs == -1:
        return [_text(each) for each in (item if isinstance(item, list) else [item])]
    if parameter.name == "seeds" and isinstance(item, list) and len(item) == 1:
        return f"{_text(item)},"  # that one, not so many
    return item if isinstance(item, bool) else _text(item)


def _text(item: Any) -> str:
    if isinstance(item, list):
        return ",".join(_text(each) for each in item)
    return str(item).lower() if isinstance(item, bool) else str(item)


def save(file: Path, context: typer.Context, positional: Sequence[str], changes: Mapping[str, str]) -> None:
    """Write what a command was called with, so that ``--config`` repeats it; where it writes to is not part of it.

    Args:
        file: to write; one that this did not write stays.
        context: of the command.
        positional: its arguments.
        changes: its hyper-parameters.
    """
    name = str(context.info_name)
    ours = "a configuration that sapp saved"
    check_replaceable(file, lambda content: content.startswith(HEAD.encode()), ours, forcible=False)
    (words,) = [parameter for parameter in context.command.params if parameter.name == WORDS]
    first, *others = _slots(words)
    rows: dict[str, Any] = {first: positional[0], **{key: list(positional[1:]) for key in others}}
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        if parameter.name in (WORDS, *NOT_SAVED) or value is None or value in ([], ()):
            continue
        rows[next(_names(parameter))] = list(map(str, value)) if isinstance(value, list | tuple) else value
    rows |= changes
    lines = [f"{_key(key)} = {_toml(value)}" for key, value in rows.items()]
    write_text(file, "\n".join([f"{HEAD}{name} --config {printable(file.name)}", *lines]) + "\n")


def _key(name: str) -> str:
    plain = name.replace("_", "").replace("-", "")
    return name if plain.isascii() and plain.isalnum() else _quoted(name)


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool | int | float):
        return repr(value).lower()
    return _quoted(str(value))


def _quoted(text: str) -> str:
    """A text as TOML and JSON both have it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SappError(f"{text}: no text of UTF-8, which a configuration is; rename it") from None
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
