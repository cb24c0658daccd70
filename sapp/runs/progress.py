"""What a person sees while members train."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Protocol

from typing_extensions import override

from sapp.core.errors import printable

SUMMARY_LINES = 3
"""At most so many members are listed one by one after an evaluation."""

STOPPING = "saving (again: stop now)"
"""What the bar says from the first Ctrl-C on."""


class Progress(Protocol):
    """A view of a run in progress."""

    def __enter__(self) -> Progress: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def update(self, step: int, phase: str) -> None:
        """Show that a chunk of steps has ended, at which step and in which phase."""

    def stopping(self) -> None:
        """Show that a request to stop was heard; called by a signal's handler, so it must not print."""

    def say(self, text: str) -> None:
        """Something worth a line happened."""

    def evaluated(self, step: int, rows: Sequence[dict[str, Any]]) -> None:
        """Show the evaluations of a step, as rows of evaluations.csv."""


class Silent(Progress):
    """A view that shows nothing: for ``progress=False``."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    @override
    def update(self, step: int, phase: str) -> None:
        pass

    @override
    def stopping(self) -> None:
        pass

    @override
    def say(self, text: str) -> None:
        pass

    @override
    def evaluated(self, step: int, rows: Sequence[dict[str, Any]]) -> None:
        pass


class Terminal:
    """A progress bar on stderr with phase, steps per second (all members together), time left, and evaluation lines."""

    def __init__(self, total: int, members: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._console = Console(stderr=True)
        self._bar = Bar(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} steps"),
            TextColumn("{task.fields[speed]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
        )
        self._members = members
        self._task = self._bar.add_task("start", total=total, speed="compiling")
        self._last: tuple[float, int] | None = None
        self._stopping = False

    def __enter__(self) -> Terminal:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def update(self, step: int, phase: str) -> None:
        """Move the bar."""
        now = time.perf_counter()
        if self._last is not None and step > self._last[1]:
            rate = (step - self._last[1]) * self._members / max(now - self._last[0], 1e-9)
            self._bar.update(self._task, speed=f"{rate:,.0f} run-steps/s")
        self._last = now, step
        self._bar.update(self._task, completed=step, description=STOPPING if self._stopping else phase)

    def stopping(self) -> None:
        """Say so in the bar, which its own thread draws."""
        self._stopping = True
        self._bar.update(self._task, description=STOPPING)

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self._console.print(printable(text), markup=False, highlight=False, soft_wrap=True)

    def evaluated(self, step: int, rows: Sequence[dict[str, Any]]) -> None:
        """Print scores (or returns), a line for each member, or for each algorithm and dataset of many members."""
        groups: dict[str, list[float]] = {}
        what = "score" if all("score_mean" in row for row in rows) else "return"
        for row in rows:
            name = f"{row['algorithm']}/{row['dataset']}" + (f"/{row['seed']}" if len(rows) <= SUMMARY_LINES else "")
            groups.setdefault(name, []).append(row[f"{what}_mean"])
        for name, values in groups.items():
            text = " ".join(f"{value:.1f}" for value in values)
            self.say(f"step {step:>9,}  {name}  {what} {text}")
        if self._last is not None:  # time spent playing is not training time
            self._last = time.perf_counter(), self._last[1]
