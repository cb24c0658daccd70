"""The ``sapp`` command: thin, every command is also one Python call.

Nothing heavy is imported before a command runs, so that help answers at once.
"""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typing_extensions import override

from sapp.cli import algorithms, collect, demo, evaluate, experiment, export, resume, select, train
from sapp.cli.config_file import Commands
from sapp.cli.data import data_app
from sapp.cli.options import SETTINGS, finished
from sapp.cli.theory import theory_app
from sapp.core.backend_choice import unusable_backend
from sapp.core.errors import Interrupted, SappError, printable
from sapp.core.program_cache import keep_compiled_programs
from sapp.core.version import __version__

# A usage error of the parser; typer carries the parser inside or beside it depending on its version.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]

ORDER = (
    "demo", "train", "resume", "evaluate", "select", "export", "report", "experiment", "data", "collect", "algorithms",
    "theory",
)  # fmt: skip
"""Commands as help lists them: those that one meets first come first."""


class _InOrder(TyperGroup):
    """The command itself, whose help lists its parts in our order, not in that in which they were added."""

    @override
    def list_commands(self, ctx: Any) -> list[str]:
        return [name for name in ORDER if name in self.commands] + sorted(set(self.commands) - set(ORDER))


app = Commands(
    name="sapp",
    cls=_InOrder,
    help="Offline reinforcement learning with state-aware proximal pessimism.",
    epilog="Start with: sapp demo",
    rich_markup_mode=None,
    context_settings=SETTINGS,
)
app.add_typer(data_app, name="data")
app.add_typer(theory_app, name="theory")
for command in (demo, train, resume, evaluate, select, export, algorithms, collect):
    command.add_command(app)
experiment.add_commands(app)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, 2 after an error of input or use, 130 after Ctrl-C.

    An error is one line on stderr. Anything unforeseen is a bug and keeps its traceback.
    """
    _open_streams()
    for stream in (sys.stdout, sys.stderr):  # a terminal of ASCII shows escapes, not a traceback
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    arguments = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    keep_compiled_programs()
    try:
        code = finished(typer.main.get_command(app)).main(args=arguments, prog_name="sapp", standalone_mode=False)
        sys.stdout.flush()
        if code == 130:  # the parser makes this of an interrupt
            raise KeyboardInterrupt
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


def _open_streams() -> None:
    """Give closed standard streams a place where all is lost: else the next file that is opened takes theirs."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8"))


def _complain(line: str, code: int) -> int:
    print(printable(" ".join(line.split())), file=sys.stderr)
    return code


def _usage(error: Any) -> str:
    """A parser's message as one line that ends with where help is."""
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "sapp"
    said = error.format_message().rstrip(".")
    if said == "Missing command" and context is not None:
        said = f"{where} needs a command: {', '.join(context.command.list_commands(context))}"
    return f"{said} See: {where} --help" if said.endswith("?") else f"{said}; see: {where} --help"


def _condition(error: BaseException) -> str | None:
    """One line for conditions of the machine that the user can fix; None for bugs."""
    if isinstance(error, OSError) and (error.filename is not None or error.errno in (errno.ENOSPC, errno.EDQUOT)):
        place = f"{error.filename}: " if error.filename is not None else ""
        return f"{place}{error.strerror or error}; fix this and retry"
    if backend := unusable_backend():
        return backend
    if isinstance(error, ValueError) and (flag := re.search(r'"(.*)" for JAX flag (\w+)', str(error))):
        return f"{flag[2].upper()}={flag[1]}: JAX has no such setting; unset it, or correct it"
    if type(error).__name__ == "TypePromotionError":
        return "JAX_NUMPY_DTYPE_PROMOTION=strict: sapp needs JAX's standard promotion of types; unset it"
    exhausted = type(error).__name__ in ("XlaRuntimeError", "JaxRuntimeError") and "RESOURCE_EXHAUSTED" in str(error)
    if isinstance(error, MemoryError) or exhausted:
        return "out of memory; train fewer members at once (--seeds), or use a smaller --batch-size"
    return None


def _version(show: bool) -> None:
    if show:
        print(f"sapp {__version__}")
        raise typer.Exit


def _import(modules: list[str] | None) -> None:
    if modules:
        from sapp.algorithms.config import import_modules

        import_modules(modules)


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    modules: Annotated[
        list[str] | None,
        typer.Option(
            "--import", callback=_import, metavar="MODULE", help="First import a module or file with your own classes."
        ),
    ] = None,
) -> None:
    pass
