"""f: invariances, ranges, and what one outlier does."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from sapp import SappError
from sapp.weights import Clip, Identity, LogMinMax, Power

RATIO = np.exp(np.random.default_rng(0).normal(size=256)).astype(np.float32)


def weights(f, ratio: np.ndarray) -> np.ndarray:
    return np.asarray(f(jnp.asarray(ratio, jnp.float32))[0])


@pytest.mark.parametrize("quantile", [0.0, 0.01, 0.1])
@pytest.mark.parametrize(("scale", "power"), [(100.0, 1.0), (1e-3, 1.0), (1.0, 2.0), (0.03, 0.5)])
def test_log_min_max_is_invariant_to_scale_and_power(quantile: float, scale: float, power: float) -> None:
    f = LogMinMax(0.5, 2.0, quantile)
    np.testing.assert_allclose(weights(f, scale * RATIO**power), weights(f, RATIO), atol=2e-5)


def test_log_min_max_formula() -> None:
    u = (np.log(RATIO) - np.log(RATIO).min()) / np.ptp(np.log(RATIO))
    np.testing.assert_allclose(weights(LogMinMax(0.5, 2.0, 0.0), RATIO), 0.5 + 2.0 * u, atol=1e-5)
    np.testing.assert_allclose(weights(LogMinMax(0.5, 2.0, 0.0, "upper"), RATIO), 0.5 + 1.5 * u, atol=1e-5)


@pytest.mark.parametrize(
    ("span", "b0", "b1", "top"), [("added", 0.5, 5.0, 5.5), ("upper", 0.5, 5.0, 5.0), ("added", 0.0, 1.0, 1.0)]
)
def test_log_min_max_spans(span: str, b0: float, b1: float, top: float) -> None:
    f = LogMinMax(b0, b1, span=span)
    w = weights(f, RATIO)
    assert w.min() == pytest.approx(b0)
    assert w.max() == pytest.approx(top)
    assert [float(x) for x in f.bounds()] == [b0, top]


def test_log_min_max_is_monotone_and_centred_for_log_normal_ratios() -> None:
    w = weights(LogMinMax(quantile=0.0), RATIO)
    assert np.all(np.diff(w[np.argsort(RATIO)]) >= 0)
    assert w.mean() == pytest.approx(0.5, abs=0.06)


def test_one_ratio_near_zero_barely_moves_the_clamped_weights_but_ruins_the_raw_ones() -> None:
    outlier = RATIO.copy()
    outlier[7] = 1e-8
    with_clamp, raw = LogMinMax(quantile=0.01), LogMinMax(quantile=0.0)
    assert abs(weights(with_clamp, outlier).mean() - weights(with_clamp, RATIO).mean()) < 0.02
    assert weights(raw, RATIO).mean() < 0.6
    assert weights(raw, outlier).mean() > 0.85
    assert weights(raw, outlier).std() < 0.6 * weights(raw, RATIO).std()


def test_by_default_one_per_cent_at_either_end_is_clamped() -> None:
    """Log-ratios 0, 0.1, …, 20: the first and the last per cent end at 0.2 and 19.8."""
    log_ratio = np.arange(201.0) / 10
    found, clamped = LogMinMax(0.5, 2.0)(jnp.asarray(np.exp(log_ratio), jnp.float32))
    np.testing.assert_allclose(found, 0.5 + 2.0 * (np.clip(log_ratio, 0.2, 19.8) - 0.2) / 19.6, atol=1e-4)
    assert float(clamped) == pytest.approx(4 / 201)


def test_clamped_share_is_that_of_the_quantiles() -> None:
    _, clamped = LogMinMax(quantile=0.05)(jnp.asarray(RATIO))
    assert float(clamped) == pytest.approx(0.1, abs=0.01)
    assert float(LogMinMax(quantile=0.0)(jnp.asarray(RATIO))[1]) == 0.0


@pytest.mark.parametrize("value", [1e-8, 1.0, 37.0, 0.0, -1.0])
def test_a_flat_batch_gets_the_middle_of_the_range(value: float) -> None:
    np.testing.assert_array_equal(weights(LogMinMax(0.0, 1.0), np.full(64, value)), 0.5)
    np.testing.assert_array_equal(weights(LogMinMax(0.5, 5.0), np.full(64, value)), 3.0)


def test_log_min_max_without_range_is_exactly_one() -> None:
    np.testing.assert_array_equal(weights(LogMinMax(1.0, 0.0), RATIO), 1.0)


def test_unknown_span_is_refused() -> None:
    with pytest.raises(SappError, match=r"'added'.*'upper'"):
        LogMinMax(span="both")


def test_identity() -> None:
    w, clamped = Identity()(jnp.asarray([0.5, -1.0, 2.0, -3.0]))
    np.testing.assert_array_equal(w, [0.5, 0.0, 2.0, 0.0])
    assert float(clamped) == 0.5


@pytest.mark.parametrize("exponent", [0.0, 0.5, 2.0])
def test_power(exponent: float) -> None:
    np.testing.assert_allclose(weights(Power(exponent), RATIO), RATIO.astype(np.float64) ** exponent, rtol=1e-5)
    w, clamped = Power(0.5)(jnp.asarray([4.0, -1.0]))
    np.testing.assert_allclose(w, [2.0, 1e-6], atol=1e-6)
    assert float(clamped) == 0.5


def test_clip() -> None:
    w, clamped = Clip(0.2, 3.0)(jnp.asarray([0.1, 0.2, 1.0, 3.0, 9.0]))
    np.testing.assert_allclose(w, [0.2, 0.2, 1.0, 3.0, 3.0])
    assert float(clamped) == pytest.approx(0.4)
    assert [float(x) for x in Clip(0.2, 3.0).bounds()] == pytest.approx([0.2, 3.0])


def test_the_f_that_is_run_is_no_increasing_function_of_one_ratio() -> None:
    """What docs/theory.md says of it: the theorems on f ask for one, and for f(x) ≥ √x."""
    f = LogMinMax(b0=0.5, b1=1.0)
    assert [float(weights(f, np.array(batch))[0]) for batch in ([2.0, 4.0], [2.0, 1.0])] == [0.5, 1.5]
    for changed in (7.0 * RATIO, RATIO**3):
        np.testing.assert_allclose(weights(f, changed), weights(f, RATIO), atol=1e-5)
    ordered = weights(f, np.sort(RATIO))
    assert ordered[-1] == ordered[-2] == 1.5  # constant beyond the batch's quantiles
    large = 1.5**2 + 0.1
    assert weights(f, np.array([1.0, large]))[1] < large**0.5
