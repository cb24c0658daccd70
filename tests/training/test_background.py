"""Evaluations and checkpoints in the background of training: the same tables and bits as one after the other."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

import sapp
from sapp.runs import checkpoint
from sapp.training import loop
from sapp.training.background import Background


def test_tasks_are_done_in_order_beside_the_caller() -> None:
    done: list[int] = []
    release = threading.Event()
    with Background(threaded=True, waiting=3) as background:
        background.do(lambda: (release.wait(10), done.append(1))[1])
        background.do(lambda: done.append(2))
        assert done == []  # the caller went on
        release.set()
        background.wait()
        assert done == [1, 2]


def test_no_more_than_allowed_wait() -> None:
    """The caller is held up until the one before has ended, which it does after a while; the last one is held back."""
    finished: list[int] = []
    release = threading.Event()
    with Background(threaded=True, waiting=1) as background:
        for number in range(2):
            background.do(lambda number=number: (time.sleep(0.05), finished.append(number))[1])
            assert finished[:number] == list(range(number))
        background.do(lambda: (release.wait(30), finished.append(2))[1])
        assert finished == [0, 1]
        release.set()
    assert finished == [0, 1, 2]


def test_what_a_task_raises_reaches_the_caller_and_stops_those_after_it() -> None:
    done: list[int] = []
    release = threading.Event()

    def fail() -> None:
        release.wait(10)
        raise sapp.SappError("disk full")

    background = Background(threaded=True, waiting=3)
    background.do(fail)
    background.do(lambda: done.append(1))
    release.set()
    with pytest.raises(sapp.SappError, match="disk full"):
        background.wait()
    background.wait()
    assert done == []


@pytest.mark.parametrize("error", [False, True])
def test_leaving_waits_for_what_is_under_way(error: bool) -> None:
    done: list[int] = []
    try:
        with Background(threaded=True) as background:
            background.do(lambda: (time.sleep(0.05), done.append(1))[1])
            if error:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert done == [1]


def test_a_run_with_a_background_is_the_run_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sapp.envs import make
    from sapp.envs.collect import collect
    from sapp.envs.policies import UniformPolicy

    place = make("point")
    data = collect(UniformPolicy(place.action_low, place.action_high), place, 400, seed=0, name="walk")
    algorithm = sapp.CQL(hidden=(16, 16), batch_size=16, action_samples=2)
    runs = []
    for name, threaded in (("after", False), ("background", True)):
        monkeypatch.setattr(loop, "host_is_free", lambda threaded=threaded: threaded)
        runs.append(
            sapp.train(
                algorithm, data, seeds=2, steps=60, eval_every=20, eval_episodes=2, log_every=10, progress=False,
                out=tmp_path / name,
            )
        )  # fmt: skip
    after, meanwhile = runs
    assert len(after.evaluations()) == 6
    assert after.evaluations() == meanwhile.evaluations()
    assert list(after.checkpoints) == list(meanwhile.checkpoints)
    found, expected = (checkpoint.flatten(run.restore()[1]) for run in (meanwhile, after))
    for mine, theirs in zip(found.values(), expected.values(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
