"""What is shown while one thing is made or fetched."""

from __future__ import annotations

import pytest

from sapp.core.progress_bar import reported


def test_without_a_report_one_line_says_what_takes_its_time(capfd: pytest.CaptureFixture[str]) -> None:
    with reported(None, "making hopper-medium") as report:
        report(1, 2)
    assert capfd.readouterr() == ("", "making hopper-medium\n")


def test_a_report_of_the_callers_is_all_there_is(capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[int, int]] = []
    with reported(lambda done, total: seen.append((done, total)), "making hopper-medium") as report:
        report(1, 2)
    assert seen == [(1, 2)]
    assert capfd.readouterr() == ("", "")


def test_a_terminal_has_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import sys

    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with reported(None, "making hopper-medium") as report:
        report(1, 2)
    said = capsys.readouterr().err
    assert said.startswith("making hopper-medium\n")
    assert "50%" in said
