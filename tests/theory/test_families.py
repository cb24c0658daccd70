"""Families of random problems: the same for the same seeds, and inside the support of their logs."""

from __future__ import annotations

import numpy as np
import pytest

from sapp.theory.families import FAMILIES, REDRAWN, instances


@pytest.mark.parametrize("family", FAMILIES)
def test_families_keep_to_the_support_and_to_their_seed(family: str) -> None:
    made, again = instances(family, [3, 4], 0.9), instances(family, [4], 0.9)
    np.testing.assert_array_equal(made.model.transition[1], again.model.transition[0])
    np.testing.assert_array_equal(made.policies[1], again.policies[0])
    assert np.all(made.policies[(made.policies > 0)] > 0)
    assert np.all(np.where(made.model.support[:, None], 0, made.policies) == 0)
    assert np.all(made.model.visits > 0)
    if family in REDRAWN:
        np.testing.assert_array_equal(made.mdp.transition[0], made.mdp.transition[1])
