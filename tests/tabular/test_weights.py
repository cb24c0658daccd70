"""f of exact ratios, by hand: also where a state is never reached, or was never logged."""

from __future__ import annotations

import numpy as np
import pytest

from sapp.tabular.weights import Fixed, LogMinMax, Ratio, Uniform, Weights, is_normalised

RATIO = np.array([0.0, 1.0, np.e, np.e**4, np.inf])


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (Uniform(0.5), [0.5] * 5),
        (Ratio(), RATIO),
        (Ratio(power=0.5, ceiling=2.0), [0.0, 1.0, np.exp(0.5), 2.0, 2.0]),
        # the range is that of the positive and finite ones, whose logarithms are 0, 1 and 4
        (LogMinMax(0.5, 2.0), [0.5, 0.5, 1.0, 2.5, 2.5]),
        (Fixed(np.arange(5.0)), np.arange(5.0)),
    ],
)
def test_weights_by_hand(weights: Weights, expected: list[float]) -> None:
    np.testing.assert_allclose(weights(RATIO), expected)


def test_equal_ratios_have_the_least_weight() -> None:
    np.testing.assert_array_equal(LogMinMax(0.5, 2.0)(np.full(3, 7.0)), 0.5)


def test_which_ratio_is_wanted() -> None:
    assert is_normalised(Ratio())
    assert is_normalised(LogMinMax())
    assert not is_normalised(Ratio(normalised=False))


@pytest.mark.parametrize("width", [0.1, 0.5, 3.0])
def test_log_min_max_reaches_from_its_least_to_its_greatest_however_near_the_ratios_are(width: float) -> None:
    found = LogMinMax(0.5, 2.0)(np.exp(1.0 + width * np.array([[0.0, 0.25, 1.0], [1.0, 0.0, 0.5]])))
    np.testing.assert_allclose(found, [[0.5, 1.0, 2.5], [2.5, 0.5, 1.5]])
