"""The comparison of true losses: what it must do whatever it finds."""

from __future__ import annotations

import pytest

from sapp import SappError
from studies.theory.comparison import METHODS, compare


def test_methods_are_compared_on_the_same_instances() -> None:
    rows = {row.method: row for row in compare("sparse", "tv", mdps=60, policies=50)}
    assert tuple(rows) == METHODS
    assert rows["pp"].difference == 0
    assert rows["pp"].interval == (0, 0)
    assert rows["none"].alpha == 0
    for row in rows.values():
        assert row.loss > 0
        assert row.difference == pytest.approx(row.loss - rows["pp"].loss)
        assert row.interval[0] <= row.difference <= row.interval[1]


def test_bad_arguments() -> None:
    with pytest.raises(SappError, match="mdps is 2"):
        compare("garnet", mdps=2)
    with pytest.raises(SappError, match="family 'x'"):
        compare("x")
