"""The f that is run, a log–min–max over the batch, is not what the paper's theorems on f are about."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from sapp.tabular.uneven_coverage import Setting, make_world
from sapp.weights.transforms import LogMinMax


def weight(ratios: list[float], f: LogMinMax | None = None) -> np.ndarray:
    return np.asarray((f or LogMinMax(quantile=0.0))(jnp.array(ratios))[0])


def test_one_ratio_has_any_weight_there_is() -> None:
    """So it is no function from R₊ to R₊: ratio 2 is charged not at all, half, or all, by what else is in the batch."""
    assert weight([2.0, 4.0])[0] == pytest.approx(0.0)
    assert weight([1.0, 2.0, 4.0])[1] == pytest.approx(0.5)
    assert weight([1.0, 2.0])[1] == pytest.approx(1.0)


def test_a_scale_and_a_power_of_the_ratios_change_nothing() -> None:
    """Which no increasing function of one ratio can be: it would have to be constant."""
    ratios = [0.2, 0.5, 3.0, 7.0]
    np.testing.assert_allclose(weight([100.0 * x for x in ratios]), weight(ratios), atol=1e-5)
    np.testing.assert_allclose(weight([x**3 for x in ratios]), weight(ratios), atol=1e-5)


def test_beyond_the_quantiles_it_does_not_increase() -> None:
    ratios = np.geomspace(0.01, 100.0, 256).tolist()
    found = weight(ratios, LogMinMax())
    assert found[0] == found[1] < found[3]
    assert found[-1] == found[-2] > found[-4]


@pytest.mark.parametrize(("b0", "b1"), [(0.0, 1.0), (0.5, 1.0)])
def test_it_is_bounded_so_it_is_not_above_the_root(b0: float, b1: float) -> None:
    """Theorem 6 asks for f(x) ≥ √x; with the presets' b₀ and b₁ that ends at (b₀ + b₁)², 1 or 2.25."""
    ratios = [0.1, 1.0, (b0 + b1) ** 2 + 0.1, 50.0]
    found = weight(ratios, LogMinMax(b0, b1, quantile=0.0))
    assert found.max() == pytest.approx(b0 + b1)
    assert found[2] < np.sqrt(ratios[2])
    assert found[3] < np.sqrt(ratios[3])


def test_it_is_no_power_so_the_proof_of_theorem_6_does_not_go_through() -> None:
    """The proof uses f(x/y) = f(x)/f(y)."""
    batch = [1.0, 2.0, 4.0, 8.0]
    found = dict(zip(batch, weight(batch, LogMinMax(0.5, 1.0, quantile=0.0)).tolist(), strict=True))
    assert found[4.0 / 2.0] != pytest.approx(found[4.0] / found[2.0], rel=0.05)


def test_in_uneven_coverage_every_policy_has_the_same_ratio() -> None:
    """There one range for all policies is each policy's own, which is why log–min–max can be best there."""
    setting = Setting(episodes=20, length=10)
    first, second = make_world(setting, 1), make_world(setting, 2)
    np.testing.assert_array_equal(first.occupancy, second.occupancy)  # of rewards, logs and policies it knows nothing
    assert first.occupancy.sum() == pytest.approx(1.0)
