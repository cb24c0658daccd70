"""A finding in a line."""

from __future__ import annotations

from sapp.data.finding import Finding, Sure


def test_it_says_what_how_sure_and_what_to_do() -> None:
    assert str(Finding("only 3 episodes", Sure.CERTAIN, "collect more")) == "only 3 episodes (certain): collect more"
