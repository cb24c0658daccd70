"""CQL's log-sum-exp and its gradient, each hidden layer's product and all that is done to it in one visit of a tile.

What ``sapp.kernels.conservative`` computes, with operands and sums of the same types. There the large products are the
library's, and what lies between two of them is written and read again; here a tile of rows stays on the chip from a
product's operands to what the next product reads, and its sums are rounded only after bias, ReLU and mask:

    forward    h₁ = relu(x̃ W̃) made as it is multiplied, and written     reads x̃, writes h₁, h_l
               h_l = relu(h_{l−1} W_l + b_l)
               last layer: scores, log-sum-exp over a state's actions,     writes dh_L in place of h_L
               its gradient down to dh_L
    backward   dh_{l−1} = dh_l W_lᵀ where h_{l−1} > 0, and its sums        reads dh_l, h_{l−1}, writes dh_{l−1}
               first layer: x̃ᵀ dh₁ in place of dh₁, h₁ made again          reads dh₂, writes next to nothing
    dW_l = h_{l−1}ᵀ dh_l                                                   library

``python bench/traffic.py`` counts the bytes that this saves. It compiles for an H200 but has not run on one yet, so it
is used only where it is asked for.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

from sapp.kernels import conservative
from sapp.kernels.conservative import COLUMNS, NEVER, ROWS, Layers, Penalty, Tiles, dot, product

Given = tuple[Array, pl.BlockSpec]
"""What a kernel reads besides its product's operands."""

WIDEST = 256
"""Units of a layer at most: a tile's sums fill the registers."""

TOGETHER = 2
"""Tiles whose gradient of the first layer is summed on the chip."""

BACK_COLUMNS = 128
"""Columns of the first layer's gradient that a program makes: its sums and the mask beside them."""


def misfit(hidden: tuple[int, ...], actions: int, proposals: int, batch: int) -> str | None:
    """As ``sapp.kernels.conservative.misfit``."""
    if max(hidden) > WIDEST:
        return f"hidden layers {hidden}: it takes up to {WIDEST} units"
    return conservative.misfit(hidden, actions, proposals, batch)


def log_sum_exp_gradient(
    layers: Layers,
    observation: Array,
    actions: Array,
    log_probs: Array,
    scale: Array,
    *,
    operands: Any = jnp.bfloat16,
    interpret: bool = False,
) -> Penalty:
    """As ``sapp.kernels.conservative.log_sum_exp_gradient``."""
    tiles = Tiles.of(layers, actions)
    call = functools.partial(
        pl.pallas_call, compiler_params=plt.CompilerParams(num_warps=8, num_stages=3), interpret=interpret
    )
    inputs = tiles.inputs(actions, operands)
    augmented = tiles.augmented(layers[0], observation, operands)
    weights = [weight.astype(operands) for weight, _ in layers[1:-1]]
    shape = (tiles.critics, tiles.count, ROWS)

    source: tuple[Array, ...] = (inputs, augmented)
    hidden: list[Array] = []
    for weight, (_, bias) in zip(weights[:-1], layers[1:-2], strict=True):
        out = [_rows_of(tiles, weight, operands)]
        hidden += _forward(call, tiles, source, weight, [(bias, _of_critic(bias))], out, _rectified)
        source = (hidden[-1],)
    (head, head_bias), (_, bias) = layers[-1], layers[-2]
    offsets = jnp.pad(-log_probs, ((0, 0), (0, tiles.slots - tiles.used)), constant_values=NEVER)
    offsets, scales = offsets.reshape(tiles.count, tiles.states, tiles.slots), scale.reshape(tiles.count, tiles.states)
    given = [(array, _of_critic(array)) for array in (bias, head[..., 0], head_bias)]
    given += [(array, _of_states(array)) for array in (offsets, scales)]
    width = weights[-1].shape[-1]
    sums = jax.ShapeDtypeStruct((*shape[:2], width), jnp.float32)
    scores = jax.ShapeDtypeStruct((*shape[:2], tiles.states), jnp.float32)
    *below, lse, d, d_head, d_bias = _forward(
        call, tiles, source, weights[-1], given, [scores, _rows_of(tiles, weights[-1], operands), sums, sums], _scored
    )
    hidden += below

    gradients: list[tuple[Array, Array]] = []
    bias_sum = jnp.sum(d_bias, axis=1)
    for number in reversed(range(len(weights))):
        below_rows, d_rows = (x.reshape(tiles.critics, -1, x.shape[-1]) for x in (hidden[number], d))
        gradients.append((product("cri,crj->cij", below_rows, d_rows, operands), bias_sum))
        if number > 0:
            d, d_bias = _masked(call, tiles, d, weights[number], hidden[number], operands)
            bias_sum = jnp.sum(d_bias, axis=1)
    first = _first_gradient(call, tiles, inputs, augmented, d, weights[0], observation, operands)
    of_head = jnp.sum(d_head, axis=1)[..., None], jnp.broadcast_to(jnp.sum(scale), (tiles.critics, 1))
    found = lse.reshape(tiles.critics, tiles.batch)
    return Penalty(found, (first, *reversed(gradients), of_head))


def _rows_of(tiles: Tiles, weight: Array, operands: Any) -> jax.ShapeDtypeStruct:
    """What a product with a weight makes, [critics, tiles, rows, units]."""
    return jax.ShapeDtypeStruct((tiles.critics, tiles.count, ROWS, weight.shape[-1]), operands)


def _of_tile(array: Any) -> pl.BlockSpec:
    """A critic's and a tile's part of an array [critics, tiles, …]."""
    rest = array.shape[2:]
    return pl.BlockSpec((None, None, *rest), lambda c, t: (c, t, *(0 for _ in rest)))


def _of_critic(array: Any) -> pl.BlockSpec:
    """A critic's part of an array [critics, …]."""
    return pl.BlockSpec((None, *array.shape[1:]), lambda c, t: (c, *(0 for _ in array.shape[1:])))


def _of_states(array: Any) -> pl.BlockSpec:
    """A tile's part of an array [tiles, …] that all critics share."""
    return pl.BlockSpec((None, *array.shape[1:]), lambda c, t: (t, *(0 for _ in array.shape[1:])))


def _forward(
    call: Any, tiles: Tiles, source: tuple[Array, ...], weight: Array, given: list[Given], out: list[Any], finish: Any
) -> list[Array]:
    """One hidden layer of all tiles: its product, then ``finish``. From (x̃, W̃) h₁ is made on the way, and given back
    before what ``finish`` writes."""
    first = len(source) == 2
    out = [_rows_of(tiles, source[1], source[1].dtype), *out] if first else out
    sources = [_of_states(source[0]), _of_tile(source[1])] if first else [_of_tile(source[0])]

    def kernel(*refs: Any) -> None:
        operands, rest = refs[: len(source) + 1], refs[len(source) + 1 :]
        if first:
            hidden_out = rest[len(given)]
            total = _product_from_first(operands[0], operands[1], operands[2], hidden_out)
            finish(total, *rest[: len(given)], *rest[len(given) + 1 :])
        else:
            finish(_product(operands[0], operands[1]), *rest)

    found = call(
        kernel,
        grid=(tiles.critics, tiles.count),
        in_specs=[*sources, _of_critic(weight), *(spec for _, spec in given)],
        out_specs=[_of_tile(array) for array in out],
        out_shape=out,
        name=f"forward{finish.__name__}",
    )(*source, weight, *(array for array, _ in given))
    return list(found)


def _product_from_first(inputs: Any, augmented: Any, weight: Any, hidden_out: Any) -> Array:
    """relu(x̃ W̃) W of one tile, some columns of h₁ after the other; these are written, too."""
    x = inputs[...]

    def add(number: Array, total: Array) -> Array:
        columns = pl.ds(number * COLUMNS, COLUMNS)
        hidden = jnp.maximum(dot(x, augmented[:, columns]), 0.0).astype(x.dtype)
        hidden_out[:, columns] = hidden
        return total + dot(hidden, weight[columns, :])

    start = jnp.zeros((ROWS, weight.shape[1]), jnp.float32)
    return jax.lax.fori_loop(0, weight.shape[0] // COLUMNS, add, start)


def _product(rows: Any, weight: Any) -> Array:
    """rows @ W of one tile with a float32 sum."""

    def add(number: Array, total: Array) -> Array:
        columns = pl.ds(number * COLUMNS, COLUMNS)
        return total + dot(rows[:, columns], weight[columns, :])

    return jax.lax.fori_loop(0, weight.shape[0] // COLUMNS, add, jnp.zeros((ROWS, weight.shape[1]), jnp.float32))


def _product_back(rows: Any, tile: Any, weight: Any) -> Array:
    """rows @ Wᵀ of one of some tiles [tiles, rows, units] with a float32 sum."""

    def add(number: Array, total: Array) -> Array:
        columns = pl.ds(number * COLUMNS, COLUMNS)
        return total + dot(rows[tile, :, columns], weight[:, columns], over=(1, 1))

    return jax.lax.fori_loop(0, weight.shape[1] // COLUMNS, add, jnp.zeros((ROWS, weight.shape[0]), jnp.float32))


def _rectified(total: Array, bias: Any, out: Any) -> None:
    """h = relu(pre + b)."""
    out[...] = jnp.maximum(total + bias[...][None, :], 0.0).astype(out.dtype)


def _scored(
    total: Array, bias: Any, head: Any, head_bias: Any, offsets: Any, scale: Any,
    lse_out: Any, d_out: Any, d_head_out: Any, d_bias_out: Any,
) -> None:  # fmt: skip
    """Scores of a tile's actions, their states' log-sum-exps and the gradient of these states' share."""
    hidden = jnp.maximum(total + bias[...][None, :], 0.0)
    head_weight, logged = head[...], offsets[...]
    scores = jnp.sum(hidden * head_weight[None, :], axis=1).reshape(logged.shape) + head_bias[0] + logged
    peak = jnp.max(scores, axis=1)
    lse = peak + jnp.log(jnp.sum(jnp.exp(scores - peak[:, None]), axis=1))
    lse_out[...] = lse
    d_score = (scale[...][:, None] * jnp.exp(scores - lse[:, None])).reshape(ROWS)
    d_head_out[...] = jnp.sum(hidden * d_score[:, None], axis=0)
    d = jnp.where(hidden > 0.0, d_score[:, None] * head_weight[None, :], 0.0)
    d_bias_out[...] = jnp.sum(d, axis=0)
    d_out[...] = d.astype(d_out.dtype)


def _masked(
    call: Any, tiles: Tiles, d: Array, weight: Array, below: Array, operands: Any
) -> tuple[Array, Array]:
    """dh_{l−1} = dh_l W_lᵀ where h_{l−1} > 0, [critics, tiles, rows, units], and its sums over a tile's rows."""

    def kernel(d_ref: Any, weight_ref: Any, below_ref: Any, out: Any, sums: Any) -> None:
        total = jnp.where(below_ref[...] > 0, _product_back(d_ref, 0, weight_ref), 0.0)
        out[...] = total.astype(out.dtype)
        sums[...] = jnp.sum(total, axis=0)

    of_rows = pl.BlockSpec((None, 1, *d.shape[2:]), lambda c, t: (c, t, 0, 0))
    outs = [
        jax.ShapeDtypeStruct(below.shape, operands),
        jax.ShapeDtypeStruct((*below.shape[:2], below.shape[3]), jnp.float32),
    ]
    found = call(
        kernel,
        grid=(tiles.critics, tiles.count),
        in_specs=[of_rows, _of_critic(weight), _of_tile(below)],
        out_specs=[_of_tile(each) for each in outs],
        out_shape=outs,
        name="backward_masked",
    )(d, weight, below)
    return found[0], found[1]


def _first_gradient(
    call: Any, tiles: Tiles, inputs: Array, augmented: Array, d: Array, weight: Array, observation: Array, operands: Any
) -> tuple[Array, Array]:
    """Gradient of the first layer's (weight, bias) from dh₂: the mask is of h₁ made again, which is cheaper than
    reading it."""
    together = TOGETHER if tiles.count % TOGETHER == 0 else 1
    columns = min(BACK_COLUMNS, tiles.first_width)
    grid = tiles.critics, tiles.count // together, tiles.first_width // columns

    def kernel(x_ref: Any, augmented_ref: Any, d_ref: Any, weight_ref: Any, of_rows: Any, of_states: Any) -> None:
        def add(number: Array, total: Array) -> Array:
            x = x_ref[number]
            d_first = _product_back(d_ref, number, weight_ref)
            d_first = jnp.where(dot(x, augmented_ref[number]) > 0.0, d_first, 0.0)
            of_states[number] = jnp.sum(d_first.reshape(tiles.states, tiles.slots, columns), axis=1).astype(operands)
            return total + dot(x, d_first.astype(x.dtype), over=(0, 0))

        of_rows[...] = jax.lax.fori_loop(0, together, add, jnp.zeros((tiles.width, columns), jnp.float32))

    of_rows, of_states = call(
        kernel,
        grid=grid,
        in_specs=[
            pl.BlockSpec((together, ROWS, tiles.width), lambda c, t, k: (t, 0, 0)),
            pl.BlockSpec((None, together, tiles.width, columns), lambda c, t, k: (c, t, 0, k)),
            pl.BlockSpec((None, together, ROWS, d.shape[-1]), lambda c, t, k: (c, t, 0, 0)),
            pl.BlockSpec((None, columns, weight.shape[2]), lambda c, t, k: (c, k, 0)),
        ],
        out_specs=[
            pl.BlockSpec((None, None, tiles.width, columns), lambda c, t, k: (c, t, 0, k)),
            pl.BlockSpec((None, together, tiles.states, columns), lambda c, t, k: (c, t, 0, k)),
        ],
        out_shape=[
            jax.ShapeDtypeStruct((*grid[:2], tiles.width, tiles.first_width), jnp.float32),
            jax.ShapeDtypeStruct((tiles.critics, tiles.count, tiles.states, tiles.first_width), operands),
        ],
        name="backward_first",
    )(inputs, augmented, d, weight)
    of_rows = jnp.sum(of_rows, axis=1)
    of_states = of_states.reshape(tiles.critics, tiles.batch, tiles.first_width)
    of_weight = product("bs,cbh->csh", observation, of_states, operands)
    of_bias = of_rows[:, tiles.actions + tiles.states]
    return jnp.concatenate([of_weight, of_rows[:, : tiles.actions]], axis=1), of_bias
