"""Requests to stop: signals, and a limit of time."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from sapp.training.stopping import Stop, stop_requests


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_and_the_second_stops_at_once(number: int) -> None:
    before = signal.getsignal(number)
    with stop_requests() as requested:
        assert requested() is None
        signal.raise_signal(number)
        assert requested() is Stop.INTERRUPTED
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_the_first_signal_is_answered_at_once() -> None:
    heard: list[str] = []
    with stop_requests(asked_for=lambda: heard.append("stopping")):
        signal.raise_signal(signal.SIGINT)
        assert heard == ["stopping"]
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert heard == ["stopping"]


def test_a_deadline_asks_and_a_signal_comes_first() -> None:
    with stop_requests(time.monotonic() + 3600) as requested:
        assert requested() is None
    with stop_requests(time.monotonic()) as requested:
        assert requested() is Stop.TIME_LIMIT
        signal.raise_signal(signal.SIGINT)
        assert requested() is Stop.INTERRUPTED


def test_beside_the_main_thread_signals_are_left_alone() -> None:
    before, found = signal.getsignal(signal.SIGINT), []

    def ask() -> None:
        with stop_requests(time.monotonic()) as requested:
            found.append((requested(), signal.getsignal(signal.SIGINT) is before))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found == [(Stop.TIME_LIMIT, True)]
