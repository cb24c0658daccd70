"""Two-sample distances against their definitions and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from studies.benchmark_data.two_sample import energy_distance, ks_distance, standardised


def test_ks_is_scipys() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(50, 3)), rng.normal(0.3, 1.2, size=(70, 3))
    other[:20] = one[:20]  # ties
    expected = [stats.ks_2samp(one[:, i], other[:, i]).statistic for i in range(3)]
    np.testing.assert_allclose(ks_distance(one, other), expected)


def test_energy_distance_is_unbiased_and_grows() -> None:
    rng = np.random.default_rng(0)
    alike = [energy_distance(rng.normal(size=(30, 2)), rng.normal(size=(40, 2))) for _ in range(200)]
    assert abs(np.mean(alike)) < 3 * np.std(alike) / 200**0.5
    assert energy_distance(rng.normal(size=(30, 2)), rng.normal(2, 1, size=(40, 2))) > 1
    # by its definition, on three points
    assert energy_distance([[0.0], [1.0]], [[3.0]]) == pytest.approx(2 * 2.5 - 1)


def test_standardised_has_one_scale() -> None:
    rng = np.random.default_rng(0)
    one, other = standardised(rng.normal(5, 3, (40, 2)), rng.normal(5, 3, (60, 2)))
    both = np.concatenate([one, other])
    np.testing.assert_allclose(both.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(both.std(0), 1)
