"""Options as people write them."""

from __future__ import annotations

from sapp.cli.options import split_options


def test_split_options():
    words = ["sa-cql", "--alpha", "-5", "a.npz", "--weights.hidden=64,64", "b.npz", "--b0", "0.5"]
    positional, changes = split_options(words)
    assert positional == ["sa-cql", "a.npz", "b.npz"]
    assert changes == {"alpha": "-5", "weights.hidden": "64,64", "b0": "0.5"}
