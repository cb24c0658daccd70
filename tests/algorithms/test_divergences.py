"""MMDs from draws against loops over pairs."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from numpy_reference import brute

from sapp import BEAR, SappError
from sapp.algorithms.bear import mmd
from sapp.algorithms.divergences import mmd_squared


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
@pytest.mark.parametrize("sigma", [0.5, 20.0])
def test_mmd_is_that_of_all_pairs(kernel: str, sigma: float) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 4, 3)), 0.5 + rng.normal(size=(6, 5, 3))
    found = mmd_squared(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), sigma, kernel)
    expected = [brute(x[b], y[b], sigma, kernel) for b in range(6)]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    rooted = mmd(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32), sigma, kernel)
    np.testing.assert_allclose(rooted, np.sqrt(np.array(expected) + 1e-6), rtol=1e-3)


def test_mmd_of_equal_draws_is_zero_and_has_a_finite_root() -> None:
    x = jnp.asarray(np.random.default_rng(1).normal(size=(4, 4, 2)), jnp.float32)
    np.testing.assert_allclose(mmd_squared(x, x, 1.0, "laplacian"), 0.0, atol=1e-6)
    np.testing.assert_allclose(mmd(x, x, 1.0, "gaussian"), 1e-3, rtol=0.5)


def test_unknown_kernel_is_named() -> None:
    with pytest.raises(SappError, match="gaussian or laplacian"):
        BEAR(kernel="cauchy")
