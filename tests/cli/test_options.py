"""Options as people write them."""

from __future__ import annotations

import pytest

from sapp.cli.options import split_options, whole_number
from sapp.core.errors import SappError


def test_split_options():
    words = ["sa-cql", "--alpha", "-5", "a.npz", "--weights.hidden=64,64", "b.npz", "--b0", "0.5"]
    positional, changes = split_options(words)
    assert positional == ["sa-cql", "a.npz", "b.npz"]
    assert changes == {"alpha": "-5", "weights.hidden": "64,64", "b0": "0.5"}


def test_a_comma_groups_thousands_and_joins_no_numbers():
    assert whole_number("--steps", "1,200,000") == whole_number("--steps", "1_200_000") == 1_200_000
    for text in ("1,2", "10,20", "1000,000", ",100"):
        with pytest.raises(SappError, match=f"--steps '{text}': give a whole number"):
            whole_number("--steps", text)
