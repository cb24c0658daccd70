"""The log-sum-exp of CQL's penalty and its gradient with as few passes over memory as the matrix products allow.

The program that a compiler makes of the plain term writes and reads the activations of 30 actions per state many times:
each bias, ReLU, mask, conversion and reduction between two matrix products becomes a pass of its own. Here three small
kernels do all of that, and the large products between them are left to the vendor's library:

    first   h₁ = relu(x̃ W̃)                                        writes h₁
            h_l = h_{l−1} W_l                                      library
    last    relu, scores, log-sum-exp over a state's actions,      reads h_L, writes dh_L
            its gradient down to the last hidden layer
            dh_{l−1} = dh_l W_lᵀ,  dW_l = h_{l−1}ᵀ dh_l            library
    back    mask of the first layer, x̃ᵀ dh₁                        reads dh₁

A state's actions fill ``slots`` rows (30 proposals and two empty slots make 32), and a tile of rows holds whole states.
With the augmented inputs x̃ = [action, one-hot of the state within the tile] and the augmented first layer W̃ = [action
rows of W₁; the tile's rows of s·W₁ + b₁], the state's half of the first layer is computed once per state, and x̃ᵀ dh₁
holds both the gradient of the action rows and, a row per state, that of the state's half.

Operands, and what lies in memory between two products, are bfloat16; scores, log-sum-exps and the gradients that leave
are float32. Nothing here is bootstrapped: what the actions' scores lose in bits does not come back. The logged action's
value and its TD error are computed elsewhere, in more.

Written in Pallas for its Triton back end; on a CPU it runs by interpretation, for tests.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

ROWS = 128
"""Rows of a tile of the first and the back kernel."""

COLUMNS = 64
"""Columns of such a tile."""

NEVER = -1e30
"""Score of a slot without a proposal, low enough to vanish from every log-sum-exp."""

Layers = tuple[tuple[Array, Array], ...]


class Penalty(NamedTuple):
    """L(s), [C, B], and the gradient of its weighted sum towards each layer's (weight, bias)."""

    log_sum_exp: Array
    layers: Layers


def misfit(hidden: tuple[int, ...], actions: int, proposals: int, batch: int) -> str | None:
    """What keeps a problem from using these kernels, or None if nothing does.

    Args:
        hidden: sizes of the critics' hidden layers.
        actions: action dimensions.
        proposals: scored actions per state.
        batch: states.
    """
    if len(hidden) < 2 or any(width % COLUMNS or _next_power_of_two(width) != width for width in hidden):
        return f"hidden layers {hidden}: it takes two or more, of {COLUMNS}, {2 * COLUMNS}, {4 * COLUMNS} … units"
    if (slots := _next_power_of_two(proposals)) > ROWS:
        return f"{proposals} proposals per state: it takes up to {ROWS}"
    if batch % (states := ROWS // slots):
        return f"a batch of {batch}: it takes multiples of {states}"
    if actions + states > 64:
        return f"{actions} action dimensions: it takes up to {64 - states}"
    return None


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
    """L_i(s) = log Σ_k exp(Q_i(s,ã_k) − ℓ_k), and the gradient of Σ_i Σ_B scale(s)·L_i(s).

    Args:
        layers: (weight [C, in, out], bias [C, out]) of each layer of C critics of concatenated state and action.
        observation: states [B, S].
        actions: ã [B, K, A].
        log_probs: ℓ [B, K].
        scale: weight of each state's term [B], with everything that multiplies it (coefficient, 1/B).
        operands: type of the matrix products' operands and of what is kept between them; sums are float32.
        interpret: run without a GPU.
    """
    count, used, size = actions.shape
    slots = _next_power_of_two(used)
    states = ROWS // slots
    tiles = count // states
    width = max(16, _next_power_of_two(size + states))
    (weight, bias), *inner, (head, head_bias) = layers
    critics, first_width = bias.shape
    state_size = observation.shape[1]
    call = functools.partial(
        pl.pallas_call, compiler_params=plt.CompilerParams(num_warps=4, num_stages=1), interpret=interpret
    )

    of_state = _product("bs,csh->cbh", observation, weight[:, :state_size], operands) + bias[:, None]
    augmented = jnp.concatenate(
        [
            jnp.broadcast_to(weight[:, None, state_size:], (critics, tiles, size, first_width)),
            of_state.reshape(critics, tiles, states, first_width),
            jnp.zeros((critics, tiles, width - size - states, first_width)),
        ],
        axis=2,
    ).astype(operands)
    inputs = jnp.concatenate(
        [
            jnp.pad(actions, ((0, 0), (0, slots - used), (0, 0))).reshape(tiles, ROWS, size),
            jnp.broadcast_to(jnp.repeat(jnp.eye(states), slots, axis=0), (tiles, ROWS, states)),
            jnp.zeros((tiles, ROWS, width - size - states)),
        ],
        axis=2,
    ).astype(operands)

    # First layer.
    grid = (critics, tiles, first_width // COLUMNS)
    of_inputs = pl.BlockSpec((None, ROWS, width), lambda c, t, k: (t, 0, 0))
    of_augmented = pl.BlockSpec((None, None, width, COLUMNS), lambda c, t, k: (c, t, 0, k))
    of_hidden = pl.BlockSpec((None, None, ROWS, COLUMNS), lambda c, t, k: (c, t, 0, k))
    activation = jax.ShapeDtypeStruct((critics, tiles, ROWS, first_width), operands)
    h = call(
        _first, grid=grid, in_specs=[of_inputs, of_augmented], out_specs=of_hidden, out_shape=activation, name="first"
    )(inputs, augmented)

    # Inner layers, the last one without its ReLU. The barrier keeps the activation whole: folded into the next product
    # it would have to be computed again for the weights' gradient.
    hidden = [h.reshape(critics, count * slots, first_width)]
    for number, (w, b) in enumerate(inner):
        pre = _product("cri,cij->crj", hidden[-1], w, operands, operands)
        if number + 1 < len(inner):
            hidden.append(jax.lax.optimization_barrier(jax.nn.relu(pre + b.astype(operands)[:, None])))

    # Scores, their loss, and its gradient down to the last hidden layer: one program a state and critic.
    last_width = pre.shape[-1]
    of_rows = pl.BlockSpec((None, None, slots, last_width), lambda c, b: (c, b, 0, 0))
    of_critic = pl.BlockSpec((None, last_width), lambda c, b: (c, 0))
    of_scalar = pl.BlockSpec((None, None, 1), lambda c, b: (c, b, 0))
    of_sums = pl.BlockSpec((None, None, last_width), lambda c, b: (c, b, 0))
    scalar = jax.ShapeDtypeStruct((critics, count, 1), jnp.float32)
    sums = jax.ShapeDtypeStruct((critics, count, last_width), jnp.float32)
    offsets = jnp.pad(-log_probs, ((0, 0), (0, slots - used)), constant_values=NEVER)
    log_sum_exp, d, d_head, d_bias = call(
        _last,
        grid=(critics, count),
        in_specs=[
            of_rows,
            of_critic,
            of_critic,
            pl.BlockSpec((None, 1), lambda c, b: (c, 0)),
            pl.BlockSpec((None, slots), lambda c, b: (b, 0)),
            pl.BlockSpec((None, 1), lambda c, b: (b, 0)),
        ],
        out_specs=[of_scalar, of_rows, of_sums, of_sums],
        out_shape=[
            scalar,
            jax.ShapeDtypeStruct((critics, count, slots, last_width), operands),
            sums,
            sums,
        ],
        name="last",
    )(
        pre.reshape(critics, count, slots, last_width),
        inner[-1][1],
        head[..., 0],
        head_bias,
        offsets,
        scale[:, None],
    )
    # A state's softmax sums to one.
    gradients = [(jnp.sum(d_head, axis=1)[..., None], jnp.broadcast_to(jnp.sum(scale), (critics, 1)))]
    d, d_bias = d.reshape(critics, count * slots, last_width), jnp.sum(d_bias, axis=1)
    for number in reversed(range(len(inner))):
        w, below = inner[number][0], hidden[number]
        gradients.append((_product("cri,crj->cij", below, d, operands), d_bias))
        d = _product("crj,cji->cri", d, _transposed(w, operands), operands, operands)
        if number > 0:
            d = jax.lax.optimization_barrier(jnp.where(below > 0, d, jnp.zeros((), operands)))
            d_bias = jnp.sum(d, axis=1, dtype=jnp.float32)

    d_augmented = call(
        _back,
        grid=grid,
        in_specs=[of_inputs, of_augmented, of_hidden],
        out_specs=of_augmented,
        out_shape=jax.ShapeDtypeStruct(augmented.shape, jnp.float32),
        name="back",
    )(inputs, augmented, d.reshape(activation.shape))
    d_of_state = d_augmented[:, :, size : size + states].reshape(critics, count, first_width)
    d_weight = [_product("bs,cbh->csh", observation, d_of_state, operands), jnp.sum(d_augmented[:, :, :size], axis=1)]
    gradients.append((jnp.concatenate(d_weight, axis=1), jnp.sum(d_of_state, axis=1)))
    return Penalty(log_sum_exp[..., 0], tuple(reversed(gradients)))


def _first(inputs: Any, augmented: Any, out: Any) -> None:
    """relu(x̃ W̃) of one tile and some columns."""
    out[...] = jnp.maximum(_dot(inputs[...], augmented[...]), 0.0).astype(out.dtype)


def _last(
    pre: Any, bias: Any, head: Any, head_bias: Any, offsets: Any, scale: Any,
    lse_out: Any, d_out: Any, d_head_out: Any, d_bias_out: Any,
) -> None:  # fmt: skip
    """Scores of one state's actions, their log-sum-exp and the gradient of its share."""
    hidden = jnp.maximum(pre[...].astype(jnp.float32) + bias[...][None, :], 0.0)
    head_weight = head[...]
    proposal = jnp.sum(hidden * head_weight[None, :], axis=1) + head_bias[0] + offsets[...]
    peak = jnp.max(proposal)
    lse = peak + jnp.log(jnp.sum(jnp.exp(proposal - peak)))
    lse_out[0] = lse
    d_score = scale[0] * jnp.exp(proposal - lse)
    d_head_out[...] = jnp.sum(hidden * d_score[:, None], axis=0)
    d = jnp.where(hidden > 0.0, d_score[:, None] * head_weight[None, :], 0.0)
    d_bias_out[...] = jnp.sum(d, axis=0)
    d_out[...] = d.astype(d_out.dtype)


def _back(inputs: Any, augmented: Any, d_hidden: Any, out: Any) -> None:
    """x̃ᵀ dh₁ of one tile and some columns; where h₁ is zero is computed again, which is cheaper than reading it."""
    x = inputs[...]
    d = jnp.where(_dot(x, augmented[...]) > 0.0, d_hidden[...], 0).astype(x.dtype)
    out[...] = _dot(x, d, over=(0, 0))


def _dot(a: Array, b: Array, *, over: tuple[int, int] = (1, 0)) -> Array:
    """Product of two matrices over the given dimensions, with a float32 sum."""
    dimensions = (((over[0],), (over[1],)), ((), ()))
    return jax.lax.dot_general(a, b, dimensions, precision=_precision(a.dtype), preferred_element_type=jnp.float32)


def _product(subscripts: str, a: Array, b: Array, operands: Any, result: Any = jnp.float32) -> Array:
    """Product by the library, with operands of the given type, a float32 sum, and a result of the given type."""
    a, b = a.astype(operands), b.astype(operands)
    return jnp.einsum(subscripts, a, b, precision=_precision(operands), preferred_element_type=result)


def _transposed(weight: Array, operands: Any) -> Array:
    """A layer's weights the other way round, laid out so: the library is faster with them than with a transposition."""
    return jax.lax.optimization_barrier(jnp.swapaxes(weight, -1, -2).astype(operands))


def _precision(operands: Any) -> jax.lax.Precision | None:
    return jax.lax.Precision.HIGHEST if operands == jnp.float32 else None


def _next_power_of_two(number: int) -> int:
    """The smallest power of two that is not below a number."""
    return 1 << (number - 1).bit_length()
