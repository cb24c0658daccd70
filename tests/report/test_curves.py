from __future__ import annotations

import numpy as np

from sapp.report.curves import Curve, downsampled


def test_a_downsampled_curve_keeps_mean_range_and_ends() -> None:
    rng = np.random.default_rng(0)
    steps, mean = np.arange(1.0, 1201.0), rng.normal(size=1200)
    low, high = mean - 1.0, mean + 1.0
    high[777] = 50.0
    thin = downsampled(Curve("x", steps, mean, low, high), most=100)
    assert len(thin.steps) == 100
    np.testing.assert_allclose(thin.steps, steps.reshape(100, 12).mean(1))
    np.testing.assert_allclose(thin.mean, mean.reshape(100, 12).mean(1))
    np.testing.assert_array_equal(thin.low, low.reshape(100, 12).min(1))
    assert thin.high.max() == 50.0  # a spike is never lost
    odd = downsampled(Curve("x", steps[:777], mean[:777], low[:777], high[:777]), most=100)
    np.testing.assert_allclose(
        np.average(odd.mean, weights=np.diff(np.append(np.linspace(0, 777, 101).astype(int)[:-1], 777))),
        mean[:777].mean(),
    )


def test_a_short_curve_is_left_alone() -> None:
    curve = Curve("x", np.arange(5.0), np.arange(5.0), np.arange(5.0), np.arange(5.0))
    assert downsampled(curve, most=5) is curve
