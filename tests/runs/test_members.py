"""What members are called, in columns of their own."""

from __future__ import annotations

import pytest

from sapp.core.errors import SappError
from sapp.runs.members import ID_COLUMNS, MemberId


def test_a_name_with_slashes_comes_back_from_its_columns() -> None:
    member = MemberId("sa-cql", "mujoco/hopper/medium-v0", 7)
    row = {name: str(value) for name, value in member.row().items()}
    assert tuple(row) == ID_COLUMNS == ("algorithm", "dataset", "seed")
    assert MemberId.of(row) == member
    assert str(member) == "sa-cql/mujoco/hopper/medium-v0/7"


def test_members_are_ordered_by_name_then_data_then_seed() -> None:
    ids = [MemberId("b", "x", 0), MemberId("a", "y", 2), MemberId("a", "x", 10), MemberId("a", "y", 1)]
    assert [str(each) for each in sorted(ids)] == ["a/x/10", "a/y/1", "a/y/2", "b/x/0"]


def test_a_table_without_its_columns_is_named() -> None:
    with pytest.raises(SappError, match="has no column 'dataset'; restore the file"):
        MemberId.of({"algorithm": "cql"})
