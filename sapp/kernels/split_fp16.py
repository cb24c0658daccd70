"""Scalar perceptrons in float32 by half-precision products, for devices whose float32 units are slow.

A float32 number has 24 bits, a half-precision one 11. With x = x₁ + x₂, x₁ the half nearest to x and x₂ the half
nearest to what is left, 22 bits are kept, and

    x·w ≈ x₁w₂ + x₂w₁ + x₁w₁

leaves out a term of relative size 2⁻²²: less than float32 loses by adding up. Each term's products are exact in the
tensor cores, which add in float32. The three terms are **one** product of the vendor's library, over an axis three
times as long, small terms first so that adding them costs nothing:

    [x₁ x₂ x₁] · [w₂; w₁; w₁]

and the array [rows, 3, K] of the left factor is read again, as it lies in memory, by the gradient of w, which contracts
over rows and thirds together.

Float16 numbers have a narrow range, so each matrix is first scaled by a power of two, exactly. Its largest number would
cost a pass over memory to find; a *bound* on it does as well, since float16 numbers are floating-point numbers: a bound
that is 2⁷ times too large costs numbers below 2⁻⁸ of the largest some of their last bits. Bounds follow from the layer
below: |relu(x·w + b)| ≤ max|x|·maxⱼΣₖ|wₖⱼ| + max|b|.

Between two products lies one pass over memory each, as a kernel of its own:

    first      the first layer's product, which is narrow; then as `activate`        reads x,     writes [h₁ h₂ h₁]
    activate   undo the product's scale, bias, ReLU, split                           reads z,     writes [h₁ h₂ h₁]
    last       the last hidden layer's share of the gradient, split;                 reads z,     writes [d₂ d₁ d₁]
               the sums over rows that the head's and the bias' gradients are
    between    undo the scale, mask, split; the sum that the bias' gradient is       reads d, h₁, writes [d₂ d₁ d₁]
    back       undo the scale, mask; the first layer's gradients                     reads d, h₁, x

Written in Pallas for its Triton back end; on a CPU they run by interpretation, for tests.
"""

from __future__ import annotations

import functools
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

from sapp.core.backend import on_cuda

Thirds = Literal["121", "211"]
"""Which parts fill the three thirds; the two factors of a product take one each."""

Layers = tuple[tuple[Array, Array], ...]
"""(weight [in, out], bias [out]) of each layer."""

Scales = tuple[Array, Array]
"""Of a product's two factors."""

TOP = 12
"""A matrix is scaled so that its bound comes to 2¹² … 2¹³: far from the largest half, 2¹⁶."""
ROWS, COLUMNS = 32, 256
"""A kernel's tile, at most."""
TALL, NARROW = 128, 64
"""The last kernel's: it adds up over rows."""
WIDTH = 64
"""Hidden layers are multiples of this; of narrower ones splitting costs more than it saves."""
DEPTH = 32
"""Inputs are filled up with zeros to a multiple of this; the first kernel takes so many at a time."""
WIDEST = 128
"""Inputs at most: the first layer's products are made for narrow ones."""
LONGEST = 256
"""A gradient's product contracts so many rows at most, and those products are added up: tensor cores round each partial
sum towards zero, which over thousands of rows would come to several times float32's own error."""


def misfit(inputs: int, hidden: tuple[int, ...], outputs: int) -> str | None:
    """What keeps a network from being computed like this, or None if nothing does."""
    if inputs > WIDEST:
        return f"{inputs} inputs: it takes up to {WIDEST}"
    if len(hidden) < 2 or any(width % WIDTH for width in hidden):
        return f"hidden layers {hidden}: it takes two or more, of multiples of {WIDTH} units"
    return None if outputs == 1 else f"{outputs} outputs: it takes one"


@jax.custom_vjp
def perceptron(layers: Layers, x: Array) -> Array:
    """The ReLU network of some layers, at rows [R, in] → [R, 1]; differentiable once."""
    return _forward(layers, x)[0]


def _forward(layers: Layers, x: Array) -> tuple[Array, Any]:
    (weight, bias), *inner, (head, head_bias) = layers
    largest = jnp.max(jnp.abs(x))
    x_scale, scale = power_of_two(largest), power_of_two(jnp.max(jnp.abs(weight)))
    missing = -x.shape[1] % DEPTH
    inputs = split(jnp.pad(x, ((0, -len(x) % ROWS), (0, missing))), x_scale, "121", axis=1)
    first = split(jnp.pad(weight, ((0, missing), (0, 0))), scale, "211", axis=0)
    bound = largest * _column_sum(weight) + jnp.max(jnp.abs(bias))
    h_scale = power_of_two(bound)
    parts: list[tuple[Array, Array]] = [
        (inputs, x_scale),
        (_first(inputs, first, bias, (x_scale, scale), h_scale), h_scale),
    ]
    turned: list[tuple[Array, Array]] = []
    for number, (w, bias) in enumerate(inner):
        hidden, h_scale = parts[-1]
        scale = power_of_two(jnp.max(jnp.abs(w)))
        right, across = _split_weight(w, scale)
        turned.append((across, scale))
        z, scales = _over_columns(hidden, right), (h_scale, scale)
        if number + 1 < len(inner):
            bound = bound * _column_sum(w) + jnp.max(jnp.abs(bias))
            h_scale = power_of_two(bound)
            parts.append((_activate(z, bias, scales, h_scale), h_scale))
    y = _plain(jax.nn.relu(_undone(z, *scales) + bias)[: len(x)], head) + head_bias
    return y, (layers, parts, turned, z, scales, x)


def _backward(residuals: Any, dy: Array) -> tuple[Layers, Array]:
    layers, parts, turned, z, scales, x = residuals
    (weight, _), *inner, (head, _) = layers
    bound = jnp.max(jnp.abs(dy)) * jnp.max(jnp.abs(head))
    scale = power_of_two(bound)
    padded = jnp.pad(dy[:, 0], (0, len(z) - len(dy)))
    own, d_head, d_bias = _last(z, inner[-1][1], head[:, 0], padded, scales, scale)
    gradients = [(d_head[:, None], jnp.sum(dy, axis=0))]
    layered = list(zip(inner, parts[1:], turned, strict=True))
    for number, ((w, _), (hidden, h_scale), (across, w_scale)) in reversed(list(enumerate(layered))):
        gradients.append((_undone(_over_rows(hidden, own), h_scale, scale), d_bias))
        d, scales = _dot(own.reshape(len(own), -1), across.reshape(len(across), -1), ((1,), (1,))), (scale, w_scale)
        bound = bound * _column_sum(w.T)
        scale = power_of_two(bound)
        if number > 0:
            own, d_bias = _between(d, hidden, scales, scale)
    inputs, x_scale = parts[0]
    d_weight, d_bias = _back(d, hidden, inputs, scales, scale)
    gradients.append((_undone(d_weight, x_scale, scale)[: len(weight)], d_bias))
    whole = jnp.where(hidden[:, 0] > 0, _undone(d, *scales), 0.0)[: len(x)]
    return tuple(reversed(gradients)), _plain(whole, weight.T)


perceptron.defvjp(_forward, _backward)


def power_of_two(bound: Array) -> Array:
    """The power of two that brings a bound to 2^TOP … 2^(TOP+1): from its exponent's bits, so exactly."""
    exponent = jax.lax.bitcast_convert_type(bound, jnp.int32) >> 23  # biased by 127; the sign's bit is 0
    wanted = jnp.clip(254 + TOP - exponent, 27, 227)  # so that its reciprocal is a normal number, too
    return jax.lax.bitcast_convert_type(wanted << 23, jnp.float32)


def split(x: Array, scale: Array, order: Thirds, axis: int) -> Array:
    """``x·scale`` in two float16 parts, stacked along a new axis in the order asked for."""
    scaled = x * scale
    # not a conversion there and back, which compilers are allowed to leave out
    first = jax.lax.reduce_precision(scaled, exponent_bits=5, mantissa_bits=10)
    parts = {"1": first.astype(jnp.float16), "2": (scaled - first).astype(jnp.float16)}
    return jnp.stack([parts[part] for part in order], axis)


def _first(x: Array, w: Array, bias: Array, scales: Scales, scale: Array) -> Array:
    rows, _, depth = x.shape
    width = w.shape[-1]
    _, thirds, vector, _, few = _specs(width)
    return _call(
        _first_kernel,
        rows,
        width,
        in_specs=[
            pl.BlockSpec((ROWS, 3, depth), lambda r, c: (r, 0, 0)),
            pl.BlockSpec((3, depth, _columns(width)), lambda r, c: (0, 0, c)),
            vector,
            few,
        ],
        out_specs=thirds,
        out_shape=jax.ShapeDtypeStruct((rows, 3, width), jnp.float16),
        name="first_hidden",
    )(x, w, bias, _numbers(scales, scale))


def _first_kernel(x: Any, w: Any, bias: Any, numbers: Any, out: Any) -> None:
    """relu(x·w + b) of one tile, scaled and split; x comes as [x₁ x₂ x₁], w as [w₂; w₁; w₁]."""

    def add(step: Array | int, total: Array) -> Array:
        here = pl.ds(step * DEPTH, DEPTH)
        x_first, x_rest, w_first, w_rest = x[:, 0, here], x[:, 1, here], w[1, here, :], w[0, here, :]
        over = ((1,), (0,))
        return total + _dot(x_first, w_rest, over) + _dot(x_rest, w_first, over) + _dot(x_first, w_first, over)

    steps, total = x.shape[-1] // DEPTH, jnp.zeros((out.shape[0], out.shape[-1]), jnp.float32)
    z = add(0, total) if steps == 1 else jax.lax.fori_loop(0, steps, add, total)
    hidden = jnp.maximum(z * numbers[0] * numbers[1] + bias[...][None, :], 0.0)
    _store(out, hidden * numbers[2], "121")


def _activate(z: Array, bias: Array, scales: Scales, scale: Array) -> Array:
    rows, width = z.shape
    tile, thirds, vector, _, few = _specs(width)
    return _call(
        _activate_kernel,
        rows,
        width,
        in_specs=[tile, vector, few],
        out_specs=thirds,
        out_shape=jax.ShapeDtypeStruct((rows, 3, width), jnp.float16),
        name="activate",
    )(z, bias, _numbers(scales, scale))


def _activate_kernel(z: Any, bias: Any, numbers: Any, out: Any) -> None:
    """relu(z + b) of one tile, scaled and split."""
    hidden = jnp.maximum(z[...] * numbers[0] * numbers[1] + bias[...][None, :], 0.0)
    _store(out, hidden * numbers[2], "121")


def _last(z: Array, bias: Array, head: Array, dy: Array, scales: Scales, scale: Array) -> tuple[Array, Array, Array]:
    rows, width = z.shape
    tile, thirds, vector, sums, few = _specs(width)
    total = jax.ShapeDtypeStruct((rows // ROWS, width), jnp.float32)
    own, d_head, d_bias = _call(
        _last_kernel,
        rows,
        width,
        in_specs=[tile, vector, vector, pl.BlockSpec((ROWS,), lambda r, c: (r,)), few],
        out_specs=[thirds, sums, sums],
        out_shape=[jax.ShapeDtypeStruct((rows, 3, width), jnp.float16), total, total],
        name="last_hidden",
    )(z, bias, head, dy, _numbers(scales, scale))
    return own, jnp.sum(d_head, axis=0), jnp.sum(d_bias, axis=0)


def _last_kernel(
    z: Any, bias: Any, head: Any, dy: Any, numbers: Any, out: Any, d_head: Any, d_bias: Any
) -> None:  # fmt: skip
    """d = dy·headᵀ where the unit is on, of one tile, scaled and split; its share of Σ h·dy and Σ d."""
    hidden = jnp.maximum(z[...] * numbers[0] * numbers[1] + bias[...][None, :], 0.0)
    slope = dy[...][:, None]
    d_head[...] = jnp.sum(hidden * slope, axis=0)
    d = jnp.where(hidden > 0.0, slope * head[...][None, :], 0.0)
    d_bias[...] = jnp.sum(d, axis=0)
    _store(out, d * numbers[2], "211")


def _between(d: Array, hidden: Array, scales: Scales, scale: Array) -> tuple[Array, Array]:
    rows, width = d.shape
    tile, thirds, _, sums, few = _specs(width)
    own, d_bias = _call(
        _between_kernel,
        rows,
        width,
        in_specs=[tile, pl.BlockSpec((ROWS, None, _columns(width)), lambda r, c: (r, 0, c)), few],
        out_specs=[thirds, sums],
        out_shape=[
            jax.ShapeDtypeStruct((rows, 3, width), jnp.float16),
            jax.ShapeDtypeStruct((rows // ROWS, width), jnp.float32),
        ],
        name="between",
    )(d, hidden, _numbers(scales, scale))
    return own, jnp.sum(d_bias, axis=0)


def _between_kernel(d: Any, first: Any, numbers: Any, out: Any, d_bias: Any) -> None:
    """d where the unit below is on, of one tile, scaled and split; its share of Σ d."""
    own = jnp.where(first[...] > 0, d[...] * numbers[0] * numbers[1], 0.0)
    d_bias[...] = jnp.sum(own, axis=0)
    _store(out, own * numbers[2], "211")


def _back(d: Array, hidden: Array, x: Array, scales: Scales, scale: Array) -> tuple[Array, Array]:
    rows, width = d.shape
    depth, columns = x.shape[-1], min(NARROW, _columns(width))
    tall = next(tile for tile in (TALL, ROWS) if rows % tile == 0)
    tiles = rows // tall
    d_weight, d_bias = _call(
        _back_kernel,
        rows,
        width,
        grid=(tiles, width // columns),
        in_specs=[
            pl.BlockSpec((tall, columns), lambda r, c: (r, c)),
            pl.BlockSpec((tall, None, columns), lambda r, c: (r, 0, c)),
            pl.BlockSpec((tall, 3, depth), lambda r, c: (r, 0, 0)),
            pl.BlockSpec((4,), lambda r, c: (0,)),
        ],
        out_specs=[
            pl.BlockSpec((None, depth, columns), lambda r, c: (r, 0, c)),
            pl.BlockSpec((None, columns), lambda r, c: (r, c)),
        ],
        out_shape=[
            jax.ShapeDtypeStruct((tiles, depth, width), jnp.float32),
            jax.ShapeDtypeStruct((tiles, width), jnp.float32),
        ],
        name="back_to_inputs",
    )(d, hidden, x, _numbers(scales, scale))
    return jnp.sum(d_weight, axis=0), jnp.sum(d_bias, axis=0)


def _back_kernel(d: Any, first: Any, x: Any, numbers: Any, d_weight: Any, d_bias: Any) -> None:
    """One tile's share of xᵀ·d, d where the unit is on and scaled, and of Σ d."""
    own = jnp.where(first[...] > 0, d[...] * numbers[0] * numbers[1], 0.0)
    d_bias[...] = jnp.sum(own, axis=0)
    d_first, d_rest = _two_parts(own * numbers[2])
    over = ((0,), (0,))
    for start in range(0, x.shape[-1], DEPTH):
        here = slice(start, start + DEPTH)
        x_first, x_rest = x[:, 0, here], x[:, 1, here]
        total = _dot(x_first, d_rest, over) + _dot(x_rest, d_first, over) + _dot(x_first, d_first, over)
        d_weight[here, :] = total


def _split_weight(w: Array, scale: Array) -> tuple[Array, Array]:
    """w in thirds, for products over its rows [3, in, out] and over its columns [in, 3, out], from one reading."""
    rows, width = w.shape
    tile, across, *_ = _specs(width)
    return _call(
        _weight_kernel,
        rows,
        width,
        in_specs=[tile, pl.BlockSpec((1,), lambda r, c: (0,))],
        out_specs=[pl.BlockSpec((3, ROWS, _columns(width)), lambda r, c: (0, r, c)), across],
        out_shape=[
            jax.ShapeDtypeStruct((3, rows, width), jnp.float16),
            jax.ShapeDtypeStruct((rows, 3, width), jnp.float16),
        ],
        name="split_weight",
    )(w, scale[None])


def _weight_kernel(w: Any, scale: Any, down: Any, across: Any) -> None:
    first, rest = _two_parts(w[...] * scale[0])
    for number, part in enumerate((rest, first, first)):
        down[number, :, :] = part
    for number, part in enumerate((first, rest, first)):
        across[:, number, :] = part


def _store(out: Any, scaled: Array, order: Thirds) -> None:
    parts = dict(zip("12", _two_parts(scaled), strict=True))
    for number, part in enumerate(order):
        out[:, number, :] = parts[part]


def _two_parts(scaled: Array) -> tuple[Array, Array]:
    first = scaled.astype(jnp.float16)
    return first, (scaled - first.astype(jnp.float32)).astype(jnp.float16)


def _columns(width: int) -> int:
    """The widest tile that a width consists of."""
    return min(COLUMNS, width & -width)


def _specs(width: int) -> tuple[pl.BlockSpec, pl.BlockSpec, pl.BlockSpec, pl.BlockSpec, pl.BlockSpec]:
    """Of a matrix, its thirds, a vector over columns, sums over a tile's rows, and three numbers."""
    columns = _columns(width)
    return (
        pl.BlockSpec((ROWS, columns), lambda r, c: (r, c)),
        pl.BlockSpec((ROWS, 3, columns), lambda r, c: (r, 0, c)),
        pl.BlockSpec((columns,), lambda r, c: (c,)),
        pl.BlockSpec((None, columns), lambda r, c: (r, c)),
        pl.BlockSpec((4,), lambda r, c: (0,)),
    )


def _call(kernel: Any, rows: int, width: int, **rest: Any) -> Any:
    return pl.pallas_call(
        kernel,
        **{"grid": (rows // ROWS, width // _columns(width))} | rest,
        compiler_params=plt.CompilerParams(num_warps=4, num_stages=1),
        interpret=not on_cuda(),
    )


def _numbers(scales: Scales, scale: Array) -> Array:
    """What undoes a product's scales, and the scale of what follows."""
    left, right = scales
    return jnp.stack([1.0 / left, 1.0 / right, scale, jnp.ones_like(scale)])  # four: kernels take powers of two


def _over_columns(left: Array, right: Array) -> Array:
    """[R, 3, K] · [3, K, N]."""
    return _dot(left.reshape(len(left), -1), right.reshape(-1, right.shape[-1]), ((1,), (0,)))


def _over_rows(left: Array, right: Array) -> Array:
    """[R, 3, K]ᵀ · [R, 3, N], some rows after others."""
    rows = len(left)
    pieces = rows // LONGEST if rows % LONGEST == 0 else 1
    tall, wide = (x.reshape(pieces, -1, x.shape[-1]) for x in (left, right))
    products = jax.lax.dot_general(tall, wide, (((1,), (1,)), ((0,), (0,))), preferred_element_type=jnp.float32)
    # not a reduction, which compilers put into a kernel of its own kind together with what uses its result
    return functools.reduce(jnp.add, [products[piece] for piece in range(pieces)])


def _dot(left: Array, right: Array, contracted: tuple[tuple[int, ...], tuple[int, ...]]) -> Array:
    return jax.lax.dot_general(left, right, (contracted, ((), ())), preferred_element_type=jnp.float32)


def _undone(product: Array, *scales: Array) -> Array:
    for scale in scales:  # one by one: their product may be out of range
        product = product * (1.0 / scale)
    return product


def _plain(x: Array, w: Array) -> Array:
    return jnp.matmul(x, w, precision=jax.lax.Precision.HIGHEST)


def _column_sum(w: Array) -> Array:
    """maxⱼ Σₖ |wₖⱼ|: how much a product with w can enlarge the largest number of a row."""
    return jnp.max(jnp.sum(jnp.abs(w), axis=0))
