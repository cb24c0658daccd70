"""Work on the host in the background of training on an accelerator: evaluations and checkpoints."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

import jax


def on_host(tree: Any) -> Any:
    """A tree's arrays on the CPU, where what is computed with them does not wait for the accelerator."""
    try:
        return jax.device_put(tree, jax.local_devices(backend="cpu")[0])
    except RuntimeError:  # the CPU is switched off as a platform
        return tree


class Background:
    """Tasks in order, one at a time: in a thread of their own, or at once where there is nothing to gain from one.

    What a task raises is raised again by the next ``do`` or ``wait``, and no task after it is done. At most ``waiting``
    tasks are under way or ahead: each may hold a copy of all members.
    """

    def __init__(self, threaded: bool, waiting: int = 2) -> None:
        self.threaded, self._waiting = threaded, waiting
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="background") if threaded else None
        self._pending: deque[Future[None]] = deque()
        self._failed = False

    def do(self, task: Callable[[], None]) -> None:
        """Do a task once those before it have ended."""
        if self._pool is None:
            task()
            return
        while self._pending and (self._pending[0].done() or len(self._pending) >= self._waiting):
            self._pending.popleft().result()
        self._pending.append(self._pool.submit(self._guarded, task))

    def wait(self) -> None:
        """Until nothing is under way."""
        while self._pending:
            self._pending.popleft().result()

    def _guarded(self, task: Callable[[], None]) -> None:
        if self._failed:
            return
        try:
            task()
        except BaseException:
            self._failed = True
            raise

    def __enter__(self) -> Background:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)
        if kind is None:
            self.wait()
