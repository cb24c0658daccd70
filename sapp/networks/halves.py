"""Perceptrons in float32 by half-precision products, for devices whose float32 units are slow.

A float32 number has 24 bits, a half-precision one 11. With x = x₁ + x₂, x₁ the half nearest to x and x₂ the half
nearest to what is left, 22 bits are kept, and

    x·w ≈ x₁w₂ + x₂w₁ + x₁w₁

leaves out a term of relative size 2⁻²²: less than float32 loses by adding up. Each term's products are exact in the
tensor cores, which add in float32. The three terms are **one** product, over an axis three times as long, small terms
first so that adding them costs nothing:

    [x₁ x₂ x₁] · [w₂; w₁; w₁]

and the array [rows, 3, K] of the left factor is read again, as it lies in memory, by the gradient of w, which contracts
over rows and thirds together.

Halves have a narrow range, so each matrix is first scaled by a power of two, exactly. Its largest number would cost a
pass over memory to find; a *bound* on it does as well, since halves are floating-point numbers: a bound that is 2⁷
times too large costs numbers below 2⁻⁸ of the largest some of their last bits. Bounds follow from the layer below:
|relu(x·w + b)| ≤ max|x|·maxⱼΣₖ|wₖⱼ| + max|b|. So a layer is one pass that undoes the last product's scale, adds the
bias, takes the ReLU and splits, and one product.
"""

from __future__ import annotations

from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array

Thirds = Literal["121", "211"]
"""Which parts fill the three thirds; the two factors of a product take one each."""

Layers = tuple[tuple[Array, Array], ...]
"""(weight [in, out], bias [out]) of each layer."""

TOP = 12
"""A matrix is scaled so that its bound comes to 2¹² … 2¹³: far from the largest half, 2¹⁶."""
WIDTH = 64
"""Networks with narrower hidden layers are left to float32: splitting costs more than it saves."""
HALF = {"exponent_bits": 5, "mantissa_bits": 10}


@jax.custom_vjp
def perceptron(layers: Layers, x: Array) -> Array:
    """The ReLU network of some layers, at rows [R, in] → [R, out]; differentiable once."""
    return _forward(layers, x)[0]


def _forward(layers: Layers, x: Array) -> tuple[Array, Any]:
    (weight, bias), *inner, (head, head_bias) = layers
    pre = _plain(x, weight) + bias
    bound = jnp.max(jnp.abs(x)) * _column_sum(weight) + jnp.max(jnp.abs(bias))
    pres, parts = [pre], []
    for w, b in inner:
        scale, w_scale = power_of_two(bound), power_of_two(jnp.max(jnp.abs(w)))
        left = split(jax.nn.relu(pre), scale, "121", axis=1)
        right = split(w, w_scale, "211", axis=0)
        flat = left.reshape(len(x), -1), right.reshape(-1, w.shape[1])
        pre = _dot(*flat, ((1,), (0,)), scale, w_scale) + b
        bound = bound * _column_sum(w) + jnp.max(jnp.abs(b))
        pres.append(pre)
        parts.append((left, scale))
    return _plain(jax.nn.relu(pre), head) + head_bias, (layers, x, pres, parts)


def _backward(residuals: Any, dy: Array) -> tuple[Layers, Array]:
    layers, x, pres, parts = residuals
    (weight, _), *inner, (head, _) = layers
    gradients = [(_plain(jax.nn.relu(pres[-1]).T, dy), jnp.sum(dy, axis=0))]
    d = jnp.where(pres[-1] > 0, _plain(dy, head.T), 0.0)
    bound = jnp.max(jnp.abs(dy)) * _column_sum(head.T)
    for (w, _), (left, scale), below in reversed(list(zip(inner, parts, pres[:-1], strict=True))):
        d_scale, w_scale = power_of_two(bound), power_of_two(jnp.max(jnp.abs(w)))
        own = split(d, d_scale, "211", axis=1)
        long = left.reshape(-1, w.shape[0]), own.reshape(-1, w.shape[1])
        gradients.append((_dot(*long, ((0,), (0,)), scale, d_scale), jnp.sum(d, axis=0)))
        turned = split(w, w_scale, "121", axis=1)
        flat = own.reshape(len(d), -1), turned.reshape(len(w), -1)
        d = jnp.where(below > 0, _dot(*flat, ((1,), (1,)), d_scale, w_scale), 0.0)
        bound = bound * _column_sum(w.T)
    gradients.append((_plain(x.T, d), jnp.sum(d, axis=0)))
    return tuple(reversed(gradients)), _plain(d, weight.T)


perceptron.defvjp(_forward, _backward)


def power_of_two(bound: Array) -> Array:
    """The power of two that brings a bound to 2^TOP … 2^(TOP+1): from its exponent's bits, so exactly."""
    exponent = jax.lax.bitcast_convert_type(bound, jnp.int32) >> 23  # biased by 127; the sign's bit is 0
    wanted = jnp.clip(254 + TOP - exponent, 27, 227)  # so that its reciprocal is a normal number, too
    return jax.lax.bitcast_convert_type(wanted << 23, jnp.float32)


def split(x: Array, scale: Array, order: Thirds, axis: int) -> Array:
    """``x·scale`` in its two halves, stacked along a new axis in the order asked for."""
    scaled = x * scale
    # not a conversion there and back, which compilers are allowed to leave out
    first = jax.lax.reduce_precision(scaled, **HALF)
    parts = {"1": first.astype(jnp.float16), "2": (scaled - first).astype(jnp.float16)}
    return jnp.stack([parts[part] for part in order], axis)


def _dot(
    left: Array, right: Array, contracted: tuple[tuple[int, ...], tuple[int, ...]], *scales: Array
) -> Array:  # fmt: skip
    product = jax.lax.dot_general(left, right, (contracted, ((), ())), preferred_element_type=jnp.float32)
    for scale in scales:  # one by one: their product may be out of range
        product = product * (1.0 / scale)
    return product


def _plain(x: Array, w: Array) -> Array:
    return jnp.matmul(x, w, precision=jax.lax.Precision.HIGHEST)


def _column_sum(w: Array) -> Array:
    """maxⱼ Σₖ |wₖⱼ|: how much a product with w can enlarge the largest number of a row."""
    return jnp.max(jnp.sum(jnp.abs(w), axis=0))
