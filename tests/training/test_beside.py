"""Evaluations and checkpoints beside training: the same tables and the same bits as one after the other."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

import sapp
from sapp.runs import checkpoint
from sapp.training import background as beside
from sapp.training.background import Beside


def test_tasks_are_done_in_order_beside_the_caller() -> None:
    done: list[int] = []
    release = threading.Event()
    with Beside(threaded=True, waiting=3) as aside:
        aside.do(lambda: (release.wait(10), done.append(1))[1])
        aside.do(lambda: done.append(2))
        assert done == []  # the caller went on
        release.set()
        aside.wait()
        assert done == [1, 2]


def test_no_more_than_allowed_wait() -> None:
    finished: list[float] = []
    with Beside(threaded=True, waiting=1) as aside:
        for _ in range(3):
            aside.do(lambda: (time.sleep(0.05), finished.append(time.perf_counter()))[1])
        assert len(finished) == 2  # each one had to wait for the one before


def test_what_a_task_raises_reaches_the_caller_and_stops_those_after_it() -> None:
    done: list[int] = []
    release = threading.Event()

    def fail() -> None:
        release.wait(10)
        raise sapp.SappError("disk full")

    aside = Beside(threaded=True, waiting=3)
    aside.do(fail)
    aside.do(lambda: done.append(1))
    release.set()
    with pytest.raises(sapp.SappError, match="disk full"):
        aside.wait()
    aside.wait()
    assert done == []


@pytest.mark.parametrize("error", [False, True])
def test_leaving_waits_for_what_is_under_way(error: bool) -> None:
    done: list[int] = []
    try:
        with Beside(threaded=True) as aside:
            aside.do(lambda: (time.sleep(0.05), done.append(1))[1])
            if error:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert done == [1]


def test_a_run_beside_is_the_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sapp.envs import make
    from sapp.envs.collect import collect
    from sapp.envs.policies import UniformPolicy

    place = make("point")
    data = collect(UniformPolicy(place.action_low, place.action_high), place, 400, seed=0, name="walk")
    algorithm = sapp.CQL(hidden=(16, 16), batch_size=16, action_samples=2)
    runs = []
    for name, threaded in (("after", False), ("beside", True)):
        monkeypatch.setattr(beside, "worthwhile", lambda threaded=threaded: threaded)
        runs.append(
            sapp.train(
                algorithm, data, seeds=2, steps=60, eval_every=20, eval_episodes=2, log_every=10, progress=False,
                out=tmp_path / name,
            )
        )  # fmt: skip
    after, aside = runs
    assert len(after.evaluations()) == 6
    assert after.evaluations() == aside.evaluations()
    assert list(after.checkpoints) == list(aside.checkpoints)
    for mine, theirs in zip(
        checkpoint.flatten(aside.restore()[1]).values(), checkpoint.flatten(after.restore()[1]).values(), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)
