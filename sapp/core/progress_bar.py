"""What a person sees while one thing is made or fetched, which can take minutes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from sapp.core.errors import printable

Report = Callable[[int, int], None]
"""Called with how much is done, and how much there is."""


def unseen(done: int, total: int) -> None:
    """A report that nobody sees."""


@contextlib.contextmanager
def reported(report: Report | None, what: str) -> Iterator[Report]:
    """The given report; without one, a line on stderr that says what takes its time, and a bar if it is a terminal.

    Args:
        report: of the caller's, who then says what there is to say.
        what: such as "making hopper-medium"; the bar goes when it is done, the line stays.
    """
    if report is not None:
        yield report
        return
    print(printable(what), file=sys.stderr, flush=True)
    if not sys.stderr.isatty():
        yield unseen
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as Left

    columns = BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("left"), Left()
    bar: Any = Progress(*columns, console=Console(stderr=True), transient=True)
    with bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
