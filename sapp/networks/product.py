"""Float32 matrix products from half-precision ones, for devices whose float32 units are slow.

A float32 number has 24 bits, a half-precision one 11. With x = x₁ + x₂, x₁ the half nearest to x and x₂ the half
nearest to what is left, 22 bits are kept, and

    x·w ≈ x₁w₂ + x₂w₁ + x₁w₁

leaves out a term of relative size 2⁻²²: less than float32 loses by adding up. Each term's products are exact in the
tensor cores, which add in float32. The three terms are **one** product, over an axis three times as long, small terms
first so that adding them costs nothing:

    [x₁ x₂ x₁] · [w₂; w₁; w₁]

and the array [rows, 3, K] of the left factor is read again, as it lies in memory, by the gradient of w, which contracts
over rows and thirds together. Halves have a narrow range, so each matrix is first scaled by a power of two, exactly.
"""

from __future__ import annotations

from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array

Thirds = Literal["121", "211"]
"""Which parts fill the three thirds; the two factors of a product take one each."""

TOP = 12
"""The largest number of a matrix is scaled to 2¹² … 2¹³: far from the largest half, 2¹⁶, and what the second parts of
small numbers lose is 2⁻³⁷ of it at most."""
HALF = {"exponent_bits": 5, "mantissa_bits": 10}


def power_of_two(x: Array) -> Array:
    """The power of two that brings the largest |x| to 2^TOP … 2^(TOP+1): from its exponent's bits, so exactly."""
    largest = jnp.max(jnp.abs(x))
    exponent = jax.lax.bitcast_convert_type(largest, jnp.int32) >> 23  # biased by 127; the sign's bit is 0
    wanted = jnp.clip(254 + TOP - exponent, 1, 254)
    return jax.lax.bitcast_convert_type(wanted << 23, jnp.float32)


def split(x: Array, scale: Array, order: Thirds, axis: int) -> Array:
    """``x·scale`` in its two halves, stacked along a new axis in the order asked for."""
    scaled = x * scale
    # not a conversion there and back, which compilers are allowed to leave out
    first = jax.lax.reduce_precision(scaled, **HALF)
    parts = {"1": first.astype(jnp.float16), "2": (scaled - first).astype(jnp.float16)}
    return jnp.stack([parts[part] for part in order], axis)


def _dot(left: Array, right: Array, contracted: tuple[tuple[int, ...], tuple[int, ...]], scale: Array) -> Array:
    product = jax.lax.dot_general(left, right, (contracted, ((), ())), preferred_element_type=jnp.float32)
    return product / scale  # a power of two: exact


def _parts(x: Array) -> tuple[Array, Array]:
    """Of a left factor: what the product reads and the gradients read again; and its scale."""
    scale = power_of_two(x)
    return split(x, scale, "121", axis=1), scale


@jax.custom_vjp
def _cotangents(x: Array, w: Array, dy: Array, saved: tuple[Array, Array]) -> tuple[Array, Array]:
    """dx = dy·wᵀ and dw = xᵀ·dy."""
    parts, x_scale = saved
    w_scale, dy_scale = power_of_two(w), power_of_two(dy)
    own = split(dy, dy_scale, "211", axis=1)
    turned = split(w, w_scale, "121", axis=1)
    flat = own.reshape(len(dy), -1), turned.reshape(len(w), -1)
    dx = _dot(*flat, ((1,), (1,)), dy_scale * w_scale)
    long = parts.reshape(-1, x.shape[1]), own.reshape(-1, w.shape[1])
    return dx, _dot(*long, ((0,), (0,)), x_scale * dy_scale)


def _cotangents_forward(x: Array, w: Array, dy: Array, saved: tuple[Array, Array]) -> Any:
    return _cotangents(x, w, dy, saved), (x, w, dy, saved)


def _cotangents_backward(residuals: Any, cotangents: tuple[Array, Array]) -> Any:
    """Gradients of gradients, by products of the same kind; the saved parts are x again and take none."""
    x, w, dy, saved = residuals
    _, pull = jax.vjp(lambda x, w, dy: (product(dy, w.T), product(x.T, dy)), x, w, dy)
    return *pull(cotangents), jax.tree.map(jnp.zeros_like, saved)


_cotangents.defvjp(_cotangents_forward, _cotangents_backward)


@jax.custom_vjp
def product(x: Array, w: Array) -> Array:
    """``x @ w`` of float32 matrices [rows, K] and [K, N], as exact as float32's own, with gradients of any order."""
    (parts, x_scale), w_scale = _parts(x), power_of_two(w)
    flat = parts.reshape(len(x), -1), split(w, w_scale, "211", axis=0).reshape(-1, w.shape[1])
    return _dot(*flat, ((1,), (0,)), x_scale * w_scale)


def _product_forward(x: Array, w: Array) -> tuple[Array, Any]:
    # The rule's own code is what gradients of gradients differentiate: through `product`, not through its halves. The
    # parts are computed once, the compiler sees to that.
    return product(x, w), (x, w, jax.lax.stop_gradient(_parts(x)))


def _product_backward(residuals: Any, dy: Array) -> tuple[Array, Array]:
    return _cotangents(*residuals[:2], dy, residuals[2])


product.defvjp(_product_forward, _product_backward)
