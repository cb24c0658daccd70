"""Seeds are a count or a list; anything else is refused in one line."""

from __future__ import annotations

import pytest

from sapp.core.errors import SappError
from sapp.core.seeds import parse_seeds


def test_a_count_or_which() -> None:
    assert parse_seeds("3") == [0, 1, 2]
    assert parse_seeds("7,3,11") == [7, 3, 11]
    assert parse_seeds("7,") == [7]


@pytest.mark.parametrize("text", ["0", "-1", "three", "1,1", "1,-2", "1,,", ",", ""])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(SappError, match="give a count such as 3, or which, such as 3,7,11"):
        parse_seeds(text)
