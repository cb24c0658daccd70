"""What a person sees while members train."""

from __future__ import annotations

import pytest

from sapp.runs.progress import STOPPING, Silent, Terminal


def row(seed: int, value: float, **more: float) -> dict:
    return {"algorithm": "cql", "dataset": "hopper", "seed": seed, "return_mean": value, **more}


def test_few_members_are_listed_and_many_are_gathered(capfd: pytest.CaptureFixture[str]) -> None:
    with Terminal(total=100, members=4) as view:
        view.update(10, "train")
        view.evaluated(1000, [row(0, 1.0), row(1, 2.5)])
        view.evaluated(2000, [row(seed, float(seed), score_mean=10.0 * seed) for seed in range(4)])
        view.say("[bold]as it is[/]")
    said = capfd.readouterr().err
    assert "step     1,000  cql/hopper/0  return 1.0\n" in said
    assert "step     1,000  cql/hopper/1  return 2.5\n" in said
    assert "step     2,000  cql/hopper  score 0.0 10.0 20.0 30.0\n" in said
    assert "[bold]as it is[/]" in said


def test_a_request_to_stop_shows_in_the_bar(capfd: pytest.CaptureFixture[str]) -> None:
    with Terminal(total=100, members=4) as view:
        view.stopping()
        view.update(10, "train")
    assert STOPPING in capfd.readouterr().err


def test_silence(capfd: pytest.CaptureFixture[str]) -> None:
    with Silent() as view:
        view.update(1, "train")
        view.stopping()
        view.say("nothing")
        view.evaluated(1, [row(0, 1.0)])
    assert capfd.readouterr() == ("", "")
