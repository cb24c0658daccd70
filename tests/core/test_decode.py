"""From JSON to dataclasses: what fits comes through, anything else is named."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from sapp.core.decode import check_fits, check_least, decode, shown
from sapp.core.errors import SappError


@dataclass
class Thing:
    name: str
    count: int
    share: float = 0.5
    sizes: list[int] | None = None
    more: dict[str, bool] | None = None


def test_what_fits_comes_through() -> None:
    content = {"name": "a", "count": 2, "share": 1, "sizes": [1, 2], "more": {"x": True}}
    assert decode(Thing, content, "it") == Thing("a", 2, 1, [1, 2], {"x": True})
    assert decode(Thing, {"name": "a", "count": 2}, "it") == Thing("a", 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "it is []; it must be an object"),
        ({"name": "a"}, "it lacks 'count'"),
        ({"name": "a", "count": 1, "colour": 2}, "it has 'colour', which this version does not know"),
        ({"name": "a", "count": True}, "it: 'count' is True; it must be a whole number"),
        ({"name": "a", "count": 1.5}, "it: 'count' is 1.5; it must be a whole number"),
        ({"name": "a", "count": 2**64}, f"it: 'count' is {2**64}; it must be a whole number"),
        ({"name": "a", "count": 1, "share": float("nan")}, "it: 'share' is nan; it must be a finite number"),
        (
            {"name": "a", "count": 1, "sizes": [1, "2"]},
            "it: 'sizes' is [1, '2']; it must be a list, each a whole number or null",
        ),
        ({"name": "a", "count": 1, "more": {"x": 1}}, "it: 'more' is {'x': 1}; it must be an object or null"),
    ],
)
def test_what_does_not_fit_is_named(content: Any, message: str) -> None:
    with pytest.raises(SappError) as caught:
        decode(Thing, content, "it")
    assert str(caught.value) == message


def test_least_values_and_readable_lengths() -> None:
    check_least(Thing("a", 1), {"count": 1, "sizes": 1}, "it")
    with pytest.raises(SappError, match="it: 'count' is 0; it must be at least 1, and below 2\\^63"):
        check_least(Thing("a", 0), {"count": 1}, "it")
    assert shown("x" * 100) == "'" + "x" * 56 + "..."
    check_fits(None, int | None, "it")
