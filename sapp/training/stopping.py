"""Requests to stop: Ctrl-C, SIGTERM, and a limit of time. Training saves at the next chunk, and can be resumed."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from enum import Enum
from types import FrameType


class Stop(Enum):
    """Why training stops before its end."""

    INTERRUPTED = "interrupted"
    TIME_LIMIT = "time limit reached"


@contextlib.contextmanager
def stop_requests(
    deadline: float | None = None, asked_for: Callable[[], None] | None = None
) -> Iterator[Callable[[], Stop | None]]:
    """Turn the first Ctrl-C or SIGTERM into a request to stop at the next chunk; the second one stops at once.

    Args:
        deadline: of ``time.monotonic()``, from which on a stop is requested, too.
        asked_for: called by the first signal, to show that it was heard; a chunk that compiles can take a minute.
    """
    asked = threading.Event()

    def requested() -> Stop | None:
        if asked.is_set():
            return Stop.INTERRUPTED
        return Stop.TIME_LIMIT if deadline is not None and time.monotonic() >= deadline else None

    if threading.current_thread() is not threading.main_thread():
        yield requested
        return

    def handler(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        if asked_for is not None:
            asked_for()

    previous = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield requested
    finally:
        for number, old in previous.items():
            signal.signal(number, signal.SIG_DFL if old is None else old)  # None: not set by Python
