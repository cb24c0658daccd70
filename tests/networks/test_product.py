"""Products from halves: as exact as float32's own against float64, at any scale, with gradients of first and second
order."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.networks.product import power_of_two, product, split

EXACT = jax.lax.Precision.HIGHEST


def matrices(rows: int, inner: int, columns: int, scale: float = 1.0, spread: float = 0.0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    x, w, dy = (rng.normal(size=shape) for shape in ((rows, inner), (inner, columns), (rows, columns)))
    x = x * scale * np.exp(spread * rng.normal(size=x.shape))
    return tuple(np.asarray(value, np.float32) for value in (x, w, dy))


def error(found: jax.Array, exact: np.ndarray) -> float:
    return float(np.abs(np.asarray(found, np.float64) - exact).max() / np.abs(exact).max())


def test_the_scale_is_a_power_of_two_that_brings_the_largest_number_below_two_to_the_thirteenth() -> None:
    for largest in (1e-30, 3e-7, 0.9, 1.0, 1.5, 70_000.0, 1e30):
        scale = float(power_of_two(jnp.float32([0.1 * largest, -largest])))
        assert np.log2(scale) == round(np.log2(scale))
        assert 2**12 <= largest * scale < 2**13


def test_the_parts_add_up_to_the_number_within_two_to_the_minus_22() -> None:
    x = jnp.asarray(np.random.default_rng(1).normal(size=(50, 8)), jnp.float32)
    scale = power_of_two(x)
    parts = split(x, scale, "121", axis=1)
    assert parts.dtype == jnp.float16
    assert parts.shape == (50, 3, 8)
    np.testing.assert_array_equal(parts[:, 0], parts[:, 2])
    whole = np.asarray(parts[:, 0], np.float64) + np.asarray(parts[:, 1], np.float64)
    np.testing.assert_allclose(whole, np.asarray(x, np.float64) * float(scale), rtol=2**-21, atol=2**-24)
    assert np.any(np.asarray(parts[:, 1]) != 0)


@pytest.mark.parametrize("scale", [1e-18, 1e-6, 1.0, 1e6, 1e18])
@pytest.mark.parametrize("spread", [0.0, 3.0])
def test_value_and_gradients_are_as_exact_as_float32s_own(scale: float, spread: float) -> None:
    x, w, dy = matrices(96, 128, 64, scale, spread)
    wide = [value.astype(np.float64) for value in (x, w, dy)]
    exact = wide[0] @ wide[1], wide[2] @ wide[1].T, wide[0].T @ wide[2]

    def all_three(multiply: object) -> list[float]:
        y, pull = jax.vjp(multiply, x, w)
        return [error(found, true) for found, true in zip((y, *pull(jnp.asarray(dy))), exact, strict=True)]

    ours = all_three(jax.jit(product))
    plain = all_three(jax.jit(lambda x, w: jnp.matmul(x, w, precision=EXACT)))
    assert max(ours) < 1e-6
    assert max(ours) < 2.5 * max(plain)


def test_half_precision_alone_would_be_a_thousand_times_worse() -> None:
    x, w, _ = matrices(96, 128, 64)
    exact = x.astype(np.float64) @ w.astype(np.float64)
    halves = jnp.matmul(x.astype(np.float16), w.astype(np.float16), preferred_element_type=jnp.float32)
    assert error(halves, exact) > 100 * error(jax.jit(product)(x, w), exact)


def test_members_of_a_population_have_scales_of_their_own() -> None:
    x, w, _ = matrices(32, 64, 64)
    both = jax.vmap(product)(jnp.stack([x, 2.0**40 * x]), jnp.stack([w, w]))
    np.testing.assert_array_equal(both[0], product(x, w))
    np.testing.assert_array_equal(both[1], 2.0**40 * both[0])


def test_gradients_of_gradients() -> None:
    x, w, _ = matrices(16, 64, 64)

    def penalty(multiply: object, w: jax.Array) -> jax.Array:
        slope = jax.grad(lambda x: jnp.sum(jnp.sin(multiply(x, w))))(x)
        return jnp.mean(jnp.sum(jnp.square(slope), axis=-1))

    ours = jax.grad(lambda w: penalty(product, w))(w)
    plain = jax.grad(lambda w: penalty(lambda x, w: jnp.matmul(x, w, precision=EXACT), w))(w)
    assert error(ours, np.asarray(plain, np.float64)) < 1e-5


def test_zeros_give_zeros_and_what_is_not_finite_stays_so() -> None:
    x, w, _ = matrices(8, 64, 64)
    np.testing.assert_array_equal(product(jnp.zeros_like(x), w), jnp.zeros((8, 64)))
    assert not bool(jnp.all(jnp.isfinite(product(jnp.asarray(x).at[0, 0].set(jnp.inf), w))))
    assert not bool(jnp.all(jnp.isfinite(product(jnp.asarray(x).at[0, 0].set(jnp.nan), w))))
