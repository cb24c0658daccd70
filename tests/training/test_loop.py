"""The host loop: how deep it is, and that a limit of time ends it like Ctrl-C."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import sapp
from sapp.algorithms import cql
from sapp.core.errors import TimeLimitReached
from sapp.envs.point import behaviour_dataset

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
