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

    Both come with the first report: what fails before it has only its error to show.

    Args:
        report: of the caller's, who then says what there is to say.
        what: such as "making hopper-medium"; the bar goes when it is done, the line stays.
    """
    if report is not None:
        yield report
        return
    with contextlib.ExitStack() as stack:
        show: list[Report] = []

        def first_shown(done: int, total: int) -> None:
            if not show:
                print(printable(what), file=sys.stderr, flush=True)
                show.append(_bar(stack) if sys.stderr.isatty() else unseen)
            show[0](done, total)

        yield first_shown


def _bar(stack: contextlib.ExitStack) -> Report:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as Left

    columns = BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("left"), Left()
    bar: Any = stack.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
    task = bar.add_task("", total=None)
    return lambda done, total: bar.update(task, completed=done, total=total)
