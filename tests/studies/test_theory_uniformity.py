"""The counterexample to a union bound over pairs fails as often as it must."""

from __future__ import annotations

import pytest

from sapp.core.errors import SappError
from studies.theory.uniformity import uniformity


def test_a_union_over_pairs_is_not_uniform_over_policies() -> None:
    found = uniformity(logs=300)
    assert found.loss > found.bound
    assert found.violated > 0.99
    with pytest.raises(SappError, match="successors is 3"):
        uniformity(successors=3)
