"""What many dropout samples say of many rows, without their hidden layers ever reaching memory.

Dropout samples of a network with two hidden layers share the first one's values h. Sample t keeps the units k of h with
keep[t,k] = 1, and weighs the units of the second layer by its own head, in which dropped ones are 0:

    values[t,r] = Σ_j head[t,j]·relu(Σ_k keep[t,k]·h[r,k]·w[k,j] + bias[j])

As a compiler makes it, the second layer of a hundred samples is written and read as a whole: half a gigabyte for a
batch of ten actions per state. Here a program takes some rows and some of the second layer's units, holds h and w, and
goes through samples; only the sums leave it. The gradient towards h computes the second layer again.

Operands are float16 numbers, scaled by powers of two (see ``sapp.kernels.split_fp16``): 11 bits, as many as TF32 has;
sums are float32. Since relu(s·z) = s·relu(z) for s > 0, bias and head take the scale.

Written in Pallas for its Triton back end; on a CPU it runs by interpretation, for tests.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

from sapp.core.backend import on_cuda
from sapp.kernels.split_fp16 import power_of_two

COLUMNS = 128
"""Units of the second layer a program takes, at most."""
ROWS = 64
"""Rows a program takes; the gradient's holds two products at once."""
WARPS = 4
"""Of 32 threads each, a program."""
SAMPLES, SAMPLES_BACK = 25, 10
"""Samples a program goes through, at most: few enough that there are programs for every multiprocessor."""
SHRINK = 2.0**-6
"""The gradient's two factors are multiplied before they become float16: each below 2⁷, their product is below 2¹⁴."""
WIDTHS = (64, 128, 256)
"""What hidden layers may have: w of a program fits on a multiprocessor."""


def misfit(hidden: tuple[int, ...]) -> str | None:
    """What keeps a network from being computed like this, or None if nothing does."""
    if len(hidden) != 2 or any(width not in WIDTHS for width in hidden):
        return f"hidden layers {hidden}: it takes two, of {', '.join(map(str, WIDTHS))} units"
    return None


@jax.custom_vjp
def dropout_values(hidden: Array, weight: Array, bias: Array, heads: Array, keep: Array) -> Array:
    """values [T, R] of h [R, K] by w [K, N], bias [N], heads [T, N] and keep [T, K], which holds zeros and ones.

    Differentiable once, and towards ``hidden`` alone: the rest counts as constant.
    """
    return _forward(hidden, weight, bias, heads, keep)[0]


def _forward(hidden: Array, weight: Array, bias: Array, heads: Array, keep: Array) -> tuple[Array, Any]:
    h_scale, w_scale = (power_of_two(jnp.max(jnp.abs(x))) for x in (hidden, weight))
    h, w = (hidden * h_scale).astype(jnp.float16), (weight * w_scale).astype(jnp.float16)
    # one scale after the other: their product may be out of range
    bias, unscaled, kept = bias * h_scale * w_scale, heads / h_scale / w_scale, keep.astype(jnp.float16)
    rows, samples = len(hidden), len(heads)
    h = jnp.pad(h, ((0, -rows % ROWS), (0, 0)))
    group = _group(samples, SAMPLES)
    parts = _call(
        _values_kernel,
        (len(h) // ROWS, weight.shape[1] // _columns(weight), samples // group),
        weight,
        ROWS,
        WARPS,
        group,
        out_specs=pl.BlockSpec((None, group, ROWS), lambda r, c, t: (c, t, r)),
        out_shape=jax.ShapeDtypeStruct((weight.shape[1] // _columns(weight), samples, len(h)), jnp.float32),
        name="dropout_values",
    )(h, w, bias, unscaled, kept)
    return jnp.sum(parts, axis=0)[:, :rows], (h, w, bias, heads, kept, w_scale, rows)


def _backward(residuals: Any, d_values: Array) -> tuple[Array, None, None, None, None]:
    h, w, bias, heads, kept, w_scale, rows = residuals
    d_scale, head_scale = (power_of_two(jnp.max(jnp.abs(x))) for x in (d_values, heads))
    d_scale, head_scale = d_scale * SHRINK, head_scale * SHRINK
    d = jnp.pad(d_values * d_scale, ((0, 0), (0, len(h) - rows)))
    samples = len(heads)
    group = _group(samples, SAMPLES_BACK)
    parts = _call(
        _gradient_kernel,
        (len(h) // ROWS, w.shape[1] // _columns(w), samples // group),
        w,
        ROWS,
        WARPS,
        group,
        more=[pl.BlockSpec((group, ROWS), lambda r, c, t: (t, r))],
        out_specs=pl.BlockSpec((None, None, ROWS, len(w)), lambda r, c, t: (c, t, r, 0)),
        out_shape=jax.ShapeDtypeStruct((w.shape[1] // _columns(w), samples // group, len(h), len(w)), jnp.float32),
        name="dropout_gradient",
    )(h, w, bias, heads * head_scale, kept, d)
    d_hidden = jnp.sum(parts, axis=(0, 1))[:rows] / d_scale / head_scale / w_scale
    return d_hidden, None, None, None, None


dropout_values.defvjp(_forward, _backward)


def _values_kernel(h: Any, w: Any, bias: Any, heads: Any, keep: Any, out: Any) -> None:
    """Some units' share of some samples' values of some rows."""
    rows, units, shift = h[...], w[...], bias[...][None, :]

    def one(sample: Array, _: None) -> None:
        z = _dot(rows * keep[sample, :][None, :], units, (1, 0)) + shift
        out[sample, :] = jnp.sum(jnp.maximum(z, 0.0) * heads[sample, :][None, :], axis=1)

    jax.lax.fori_loop(0, len(out), one, None)


def _gradient_kernel(h: Any, w: Any, bias: Any, heads: Any, keep: Any, d_values: Any, out: Any) -> None:
    """Some units' share of the gradient towards some rows of h, summed over some samples."""
    rows, units, shift = h[...], w[...], bias[...][None, :]

    def one(sample: Array, total: Array) -> Array:
        kept = keep[sample, :][None, :]
        z = _dot(rows * kept, units, (1, 0)) + shift
        d = jnp.where(z > 0.0, d_values[sample, :][:, None] * heads[sample, :][None, :], 0.0)
        return total + _dot(d.astype(jnp.float16), units, (1, 1)) * kept.astype(jnp.float32)

    out[...] = jax.lax.fori_loop(0, len(d_values), one, jnp.zeros(out.shape, jnp.float32))


def _call(
    kernel: Any, grid: tuple[int, ...], weight: Array, rows: int, warps: int, group: int,
    more: list[pl.BlockSpec] | None = None, **rest: Any,
) -> Any:  # fmt: skip
    depth, columns = len(weight), _columns(weight)
    return pl.pallas_call(
        kernel,
        grid=grid,
        in_specs=[
            pl.BlockSpec((rows, depth), lambda r, c, t: (r, 0)),
            pl.BlockSpec((depth, columns), lambda r, c, t: (0, c)),
            pl.BlockSpec((columns,), lambda r, c, t: (c,)),
            pl.BlockSpec((group, columns), lambda r, c, t: (t, c)),
            pl.BlockSpec((group, depth), lambda r, c, t: (t, 0)),
            *(more or []),
        ],
        compiler_params=plt.CompilerParams(num_warps=warps, num_stages=1),
        interpret=not on_cuda(),
        **rest,
    )


def _columns(weight: Array) -> int:
    return min(COLUMNS, weight.shape[1])


def _group(samples: int, most: int) -> int:
    """The largest group that a number of samples consists of."""
    return max(size for size in range(1, most + 1) if samples % size == 0)


def _dot(left: Array, right: Array, over: tuple[int, int]) -> Array:
    contracted = (((over[0],), (over[1],)), ((), ()))
    return jax.lax.dot_general(left, right, contracted, preferred_element_type=jnp.float32)
