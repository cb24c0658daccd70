"""Hooks: what they write, and that a run is the same with them, without them and when they fail."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from hooked import Train, same_run
from hooked import train as train

import sapp
from sapp.core.errors import SappError
from sapp.hooks import CSVLog, EarlyStop, HubPush, KeepBest
from sapp.runs.hooks import Hook, Moment
from sapp.runs.run import Run as Folder
from sapp.training import loop


class Frightened(Hook):
    """Fails whenever it can."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def fail(self, what: str) -> None:
        self.calls.append(what)
        raise SystemExit("no heart") if what == "on_evaluate" else OSError("disk\nfull")

    def on_start(self, run: Folder) -> None:
        self.fail("on_start")

    def on_log(self, at: Moment) -> None:
        at.rows[0].clear()
        self.fail("on_log")

    def on_evaluate(self, at: Moment) -> None:
        self.fail("on_evaluate")

    def on_checkpoint(self, at: Moment) -> None:
        self.fail("on_checkpoint")

    def on_end(self, run: Folder) -> None:
        self.fail("on_end")

    def close(self) -> None:
        self.fail("close")


def test_a_failing_hook_is_said_once_and_loses_nothing(train: Train, capfd: pytest.CaptureFixture[str]) -> None:
    broken = Frightened()
    found, plain = train("broken", broken, KeepBest(), CSVLog()), train("plain")
    assert same_run(found, plain)
    complaint = "sapp: warning: hook Frightened failed in on_start: disk full; training goes on\n"
    assert capfd.readouterr().err == complaint
    assert broken.calls == ["on_start", *["on_log", "on_evaluate", "on_checkpoint"] * 8, "on_end", "close"]
    assert (found.path / "best" / "config.json").is_file()


def test_beside_training_in_a_thread_calls_never_overlap_and_keep_their_order(
    train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on an accelerator, where evaluations and checkpoints happen in the background."""

    class Watch(Hook):
        def __init__(self) -> None:
            self.calls: list[tuple[str, int]] = []
            self.busy, self.threads = False, set[int]()

        def note(self, what: str, at: Moment) -> None:
            assert not self.busy
            self.busy = True
            time.sleep(0.01)
            self.calls.append((what, at.step))
            self.threads.add(threading.get_ident())
            self.busy = False

        def on_log(self, at: Moment) -> None:
            self.note("log", at)

        def on_evaluate(self, at: Moment) -> None:
            self.note("evaluate", at)

        def on_checkpoint(self, at: Moment) -> None:
            self.note("checkpoint", at)

    monkeypatch.setattr(loop, "host_is_free", lambda: True)
    watch = Watch()
    run = train("threaded", watch, KeepBest())
    steps = list(range(10, 81, 10))
    assert [step for what, step in watch.calls if what == "log"] == steps
    assert [call for call in watch.calls if call[0] != "log"] == [
        (what, step) for step in steps for what in ("evaluate", "checkpoint")
    ]
    assert len(watch.threads) == 2
    best = max(run.evaluations(), key=lambda row: float(row["return_mean"]))
    assert sapp.Run(run.path / "best").step == int(best["step"])


def test_what_cannot_work_is_refused_before_training(train: Train, tmp_path: Path) -> None:
    with pytest.raises(SappError, match=r"EarlyStop needs evaluations, and this run has none \(eval_every is 0\)"):
        train("never", EarlyStop(), eval_every=0)
    with pytest.raises(SappError, match=r"got the class KeepBest, not an object of it"):
        train("never", KeepBest)
    with pytest.raises(SappError, match="the run has 2 policies; name one as its member"):
        train("never", HubPush("a/b", upload=False), seeds=2)
    with pytest.raises(SappError, match="patience is 0"):
        EarlyStop(0)
    with pytest.raises(SappError, match="'point' is no repository"):
        HubPush("point")
    assert not (tmp_path / "never").exists()
