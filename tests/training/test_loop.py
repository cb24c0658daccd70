"""The host loop: how deep it is, and that a limit of time ends it like Ctrl-C."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import sapp
from sapp.algorithms import cql
from sapp.core.errors import TimeLimitReached
from sapp.envs.point import behaviour_dataset
from sapp.runs.hooks import Moment
from sapp.training.loop import CHUNK_SECONDS, Pace, _boundary, _due

SMALL = {"hidden": (8,), "batch_size": 8, "action_samples": 1}
ROOT = str(Path(sapp.__file__).parent)


def test_at_most_seven_frames_lie_between_train_and_the_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    between: list[list[str]] = []
    plain = cql.critic_loss

    def critic_loss(*arguments: Any) -> Any:
        own = [frame.function for frame in inspect.stack() if frame.filename.startswith(ROOT)]
        between.append(own[: own.index("train")])
        return plain(*arguments)

    monkeypatch.setattr(cql, "critic_loss", critic_loss)
    algorithm = sapp.CQL(**SMALL, weights=sapp.DualDICE(hidden=(8,)))
    sapp.train(algorithm, behaviour_dataset(6), steps=2, phases=sapp.sa_protocol(2, 2, 2), eval_every=0,
               out=tmp_path / "run", progress=False)  # fmt: skip
    assert between
    deepest = max(between, key=len)
    assert len(deepest) <= 7, deepest


def test_a_time_limit_saves_and_resume_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    def train(out: Path, **options: Any) -> sapp.Run:
        algorithm = sapp.CQL(**SMALL)
        return sapp.train(algorithm, behaviour_dataset(6), steps=30, eval_every=0, out=out, progress=False, **options)

    with pytest.raises(TimeLimitReached, match=r"time limit reached at step \d+ of 30; saved.*sapp resume"):
        train(tmp_path / "cut", time_limit=1e-6)
    assert sapp.Run(tmp_path / "cut").step < 30
    found, expected = sapp.resume(tmp_path / "cut", progress=False), train(tmp_path / "straight")
    assert found.checkpoints[30].read_bytes() == expected.checkpoints[30].read_bytes()
    with pytest.raises(sapp.SappError, match="time_limit is 0: it must be more than 0 seconds"):
        train(tmp_path / "none", time_limit=0)


def test_what_compiling_took_is_given_back_once_a_phase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    monkeypatch.setattr("sapp.training.loop.give_back", lambda: given.append(1))
    small = sapp.CQL(hidden=(8,), batch_size=8, action_samples=1, weights=sapp.DualDICE(hidden=(8,)))
    sapp.train(
        small, behaviour_dataset(episodes=4), steps=6, phases=sapp.sa_protocol(6, 2, 2), log_every=2, eval_every=0,
        progress=False, out=tmp_path / "run",
    )  # fmt: skip
    assert len(given) == 3  # however many rows a phase has


class Told(sapp.Hook):
    """What it is told, in order."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, int]] = []
        self.rows: list[dict[str, Any]] = []

    def on_log(self, at: Moment) -> None:
        self.heard.append(("log", at.step))
        self.rows += at.rows

    def on_evaluate(self, at: Moment) -> None:
        self.heard.append(("evaluate", at.step))

    def on_checkpoint(self, at: Moment) -> None:
        self.heard.append(("checkpoint", at.step))


def test_hooks_are_told_the_rows_that_are_written_and_each_checkpoint(tmp_path: Path) -> None:
    told = Told()
    run = sapp.train(
        sapp.BC(hidden=(8,), batch_size=8), behaviour_dataset(4), steps=7, log_every=3, checkpoint_every=4,
        eval_every=0, progress=False, out=tmp_path / "run", hooks=[told],
    )  # fmt: skip
    assert told.heard == [("log", 3), ("checkpoint", 4), ("log", 6), ("log", 7), ("checkpoint", 7)]
    written = [(int(row["step"]), float(row["loss"])) for row in run.metrics()]
    assert [(row["step"], pytest.approx(row["loss"], rel=1e-6)) for row in told.rows] == written


def test_stopped_before_its_first_step_it_has_nothing_to_write_but_where_it_is(tmp_path: Path) -> None:
    told = Told()
    with pytest.raises(TimeLimitReached, match="at step 0 of 4"):
        sapp.train(
            sapp.BC(hidden=(8,), batch_size=8), behaviour_dataset(4), steps=4, log_every=1, eval_every=1,
            progress=False, out=tmp_path / "run", hooks=[told], time_limit=1e-6,
        )  # fmt: skip
    assert told.heard == [("checkpoint", 0)]
    run = sapp.Run(tmp_path / "run")
    assert (run.metrics(), run.evaluations(), list(run.checkpoints)) == ([], [], [0])


def test_chunks_grow_fourfold_at_most_and_shrink_at_once_to_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("sapp.training.loop.time.perf_counter", lambda: now[0])
    pace = Pace(10)

    def chunk(most: int, seconds_a_step: float) -> int:
        steps = pace.next(most)
        now[0] += steps * seconds_a_step
        pace.made(steps)
        return steps

    quick, slow = CHUNK_SECONDS / 1_024, CHUNK_SECONDS / 32
    assert [chunk(10_000, quick) for _ in range(6)] == [10, 40, 160, 640, 1_020, 1_020]
    assert chunk(995, quick) == 990  # whole strides, of what is left
    assert [chunk(7, quick), chunk(10_000, slow)] == [7, 1_020]  # what ended early says nothing of the pace
    assert [chunk(10_000, slow) for _ in range(2)] == [30, 30]
    assert [chunk(10_000, CHUNK_SECONDS / 4) for _ in range(2)] == [30, 10]  # a stride at least


@pytest.mark.parametrize("stride", [1, 8])
def test_a_chunk_is_never_shorter_than_a_stride(stride: int, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("sapp.training.loop.time.perf_counter", lambda: now[0])
    pace = Pace(stride)
    for _ in range(3):
        assert pace.next(100) == stride
        now[0] += 1_000 * CHUNK_SECONDS
        pace.made(stride)


@pytest.mark.parametrize("every", [(3, 4, 6), (5, 0, 7), (8, 0, 0), (100, 100, 100)])
def test_the_next_boundary_is_the_first_step_at_which_anything_is_due(every: tuple[int, int, int]) -> None:
    """By the phase's own count, which begins at 11 here; it ends at 30."""
    plan: Any = SimpleNamespace(log_every=every[0], eval_every=every[1], checkpoint_every=every[2])
    for step in range(11, 30):
        due = [later for later in range(step + 1, 30) if any(_due(each, 11, later) for each in every)]
        assert _boundary(plan, 11, step, 30) == min([*due, 30])
    assert [step for step in range(11, 30) if _due(6, 11, step)] == [11, 17, 23, 29]
