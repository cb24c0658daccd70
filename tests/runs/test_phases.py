"""Training protocols as phases."""

from __future__ import annotations

import pytest

from sapp import Phase, SappError, sa_protocol
from sapp.runs.phases import locate, plain_protocol, total_steps


def test_the_papers_protocol() -> None:
    phases = sa_protocol()
    assert [(p.steps, p.base, p.ratio, p.weighted) for p in phases] == [
        (20_000, True, False, False), (100_000, False, True, False), (1_000_000, True, True, True),
    ]  # fmt: skip
    assert total_steps(phases) == 1_120_000
    assert [(p.steps, p.base, p.ratio, p.weighted) for p in plain_protocol(7)] == [(7, True, False, True)]


def test_locate_finds_the_phase_of_the_next_step() -> None:
    phases = (Phase("a", 3), Phase("empty", 0), Phase("b", 2))
    assert [locate(phases, step) for step in range(6)] == [(0, 3), (0, 3), (0, 3), (2, 5), (2, 5), (2, 5)]


def test_negative_steps_are_refused() -> None:
    with pytest.raises(SappError, match="'a' has -1 steps"):
        Phase("a", -1)
