"""A time limit is shared out by the sizes of jobs, ends each cleanly, and the same call goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tiny_experiment import tiny_grid

from sapp.core.errors import TimeLimitReached
from sapp.experiments import driver
from sapp.experiments.driver import Clock, run_experiment
from sapp.experiments.grid import Grid
from sapp.experiments.store import Store


def two_jobs() -> Grid:
    """The tiny experiment as two families."""
    tiny = tiny_grid()
    (family,) = tiny.families
    halves = [dict(list(family.variants.items())[part]) for part in (slice(0, 2), slice(2, None))]
    return replace(
        tiny,
        families=tuple(
            replace(family, name=name, variants=half) for name, half in zip(("first", "second"), halves, strict=True)
        ),
    )


def test_what_is_left_is_shared_by_the_sizes_of_what_is_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(driver.time, "monotonic", lambda: now[0])
    clock = Clock(60.0, [1, 2, 3])
    assert clock.share() == pytest.approx(10.0)
    now[0] += 20.0
    assert clock.share() == pytest.approx(16.0)
    now[0] += 100.0
    assert clock.share() == 0.0
    assert Clock(None, [1]).share() is None
    turns = Clock(60.0, [1, 5], in_turn=True)
    assert [turns.share(), turns.share()] == [60.0, 60.0]


def test_jobs_in_turn_leave_the_last_one_unbegun_where_time_is_over(tmp_path: Path) -> None:
    said: list[str] = []
    clock = iter([600.0, 0.0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Clock, "share", lambda _: next(clock))
        run_experiment(two_jobs(), tmp_path, progress=False, time_limit=600.0, in_turn=True, say=said.append)
    assert said[-2:] == [
        "second: not begun, the time is over",
        "1 of 2 jobs are unfinished; give the same command again to go on",
    ]
    with Store(tmp_path / "results.sqlite") as store:
        assert {row["variant"] for row in store.rows("cells")} == {"CQL", "SA-CQL"}


def test_a_job_whose_time_is_over_does_not_end_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = driver.train_job

    def job(grid, family, *rest):
        if family.name == "first":
            raise TimeLimitReached("over")
        return honest(grid, family, *rest)

    monkeypatch.setattr(driver, "train_job", job)
    said: list[str] = []
    run_experiment(two_jobs(), tmp_path, progress=False, time_limit=600.0, say=said.append)
    assert said[0] == "first: its share of the time is over; everything is saved"
    assert said[-1] == "1 of 2 jobs are unfinished; give the same command again to go on"
    with Store(tmp_path / "results.sqlite") as store:
        assert {row["variant"] for row in store.rows("cells")} == {"shuffled", "matched", "random"}


def test_what_a_limit_stopped_goes_on_without_one(tmp_path: Path) -> None:
    said: list[str] = []
    run_experiment(tiny_grid(steps=10**6), tmp_path / "endless", progress=False, time_limit=0.5, say=said.append)
    assert said[-1].startswith("1 of 1 jobs are unfinished")
    run_experiment(tiny_grid(), tmp_path / "out", progress=False, time_limit=1e-3, say=said.append)
    run_experiment(tiny_grid(), tmp_path / "out", progress=False, say=said.append)
    with Store(tmp_path / "out" / "results.sqlite") as store:
        assert len(store.rows("runs")) == 10
