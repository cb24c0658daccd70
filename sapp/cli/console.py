"""How the command prints tables and JSON."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from sapp.core.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

UNBOUNDED = 10_000
"""Columns of something that is not a terminal: no name is folded, so that it can be pasted into an option."""


def console() -> Console:
    """Stdout: as wide as the terminal, or as wide as tables are where it goes into a file or another program."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=UNBOUNDED)


def new_table(first: str, *others: str, title: str | None = None, **style: Any) -> Table:
    """A table with headings; the first column folds long names."""
    from rich.table import Table

    table = Table(title=None if title is None else plain(title), title_justify="left", caption_justify="left", **style)
    table.add_column(first, overflow="fold")
    for heading in others:
        table.add_column(heading, justify="right" if others[-1] == "length" else "left")
    return table


def plain(value: Any) -> Any:
    """Plain text: a name in brackets is not markup."""
    from rich.text import Text

    return Text(printable(",".join(map(str, value)) if isinstance(value, tuple) else str(value)))


def print_table(table: Table) -> None:
    """Print a table on stdout."""
    console().print(table)


def print_json(content: Any) -> None:
    """Print plain data as JSON on stdout; what would steer a terminal is escaped, as JSON allows."""
    text = json.dumps(content, indent=2, ensure_ascii=False)
    print("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))


def say(line: str, *, error: bool = False) -> None:
    """Print a line, in which names of files are plain text."""
    print(printable(line), file=sys.stderr if error else sys.stdout)
