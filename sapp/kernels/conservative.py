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
With the augmented inputs x̃ = [action, one-hot of the state within the tile, 1] and the augmented first layer W̃ =
[action rows of W₁; the tile's rows of s·W₁ + b₁; 0], the state's half of the first layer is computed once per state. In
x̃ᵀ dh₁ are the gradients of the action rows, of each state's half (a row per state) and of the bias.

Operands, and what lies in memory between two products, are bfloat16; scores, log-sum-exps and the gradients that leave
are float32. Nothing here is bootstrapped: what the actions' scores lose in bits does not come back. The logged action's
value and its TD error are computed elsewhere, in more.

Written in Pallas for its Triton back end; on a CPU it runs by interpretation, for tests.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
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
    if actions + states > 63:
        return f"{actions} action dimensions: it takes up to {63 - states}"
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
    tiles = Tiles.of(layers, actions)
    call = functools.partial(
        pl.pallas_call, compiler_params=plt.CompilerParams(num_warps=4, num_stages=1), interpret=interpret
    )
    inputs = tiles.inputs(actions, operands)
    augmented = tiles.augmented(layers[0], observation, operands)
    first = _first_layer(call, tiles, inputs, augmented, operands)
    hidden, pre = _inner_layers(first, layers[1:-1], operands)
    scored = _scores(call, pre, layers, -log_probs, scale, operands)
    inner, d_first = _backward(scored, hidden, layers[1:-1], operands)
    outer = _first_gradient(call, tiles, inputs, augmented, d_first, observation, operands)
    return Penalty(scored.log_sum_exp, (outer, *inner, scored.head))


@dataclass(frozen=True)
class Tiles:
    """How the rows of all states' actions lie in tiles of ``ROWS``, each of whole states."""

    critics: int
    batch: int
    used: int
    """Proposals of a state."""
    actions: int
    """Action dimensions."""
    first_width: int

    @staticmethod
    def of(layers: Layers, actions: Array) -> Tiles:
        """The tiles of a problem."""
        critics, first_width = layers[0][1].shape
        batch, used, size = actions.shape
        return Tiles(critics, batch, used, size, first_width)

    @property
    def slots(self) -> int:
        """Rows of a state."""
        return _next_power_of_two(self.used)

    @property
    def states(self) -> int:
        """States of a tile."""
        return ROWS // self.slots

    @property
    def count(self) -> int:
        """Tiles of a batch."""
        return self.batch // self.states

    @property
    def width(self) -> int:
        """Columns of x̃: what the GPU's products take, at least 16."""
        return max(16, _next_power_of_two(self.actions + self.states + 1))

    @property
    def empty(self) -> int:
        """Columns of x̃ that hold nothing."""
        return self.width - self.actions - self.states - 1

    def inputs(self, actions: Array, operands: Any) -> Array:
        """x̃ = [action, one-hot of the state within the tile, one, zeros], [tiles, rows, width]."""
        columns = [
            jnp.pad(actions, ((0, 0), (0, self.slots - self.used), (0, 0))).reshape(self.count, ROWS, self.actions),
            jnp.broadcast_to(jnp.repeat(jnp.eye(self.states), self.slots, axis=0), (self.count, ROWS, self.states)),
            jnp.ones((self.count, ROWS, 1)),
            jnp.zeros((self.count, ROWS, self.empty)),
        ]
        return jnp.concatenate(columns, axis=2).astype(operands)

    def augmented(self, layer: tuple[Array, Array], observation: Array, operands: Any) -> Array:
        """W̃ = [action rows of W₁; the tile's rows of s·W₁ + b₁; zeros], [critics, tiles, width, units]."""
        weight, bias = layer
        state_size = observation.shape[1]
        of_state = product("bs,csh->cbh", observation, weight[:, :state_size], operands) + bias[:, None]
        shape = (self.critics, self.count)
        rows = [
            jnp.broadcast_to(weight[:, None, state_size:], (*shape, self.actions, self.first_width)),
            of_state.reshape(*shape, self.states, self.first_width),
            jnp.zeros((*shape, 1 + self.empty, self.first_width)),
        ]
        return jnp.concatenate(rows, axis=2).astype(operands)

    @property
    def grid(self) -> tuple[int, int, int]:
        """Programs of the first and the back kernel."""
        return self.critics, self.count, self.first_width // COLUMNS

    @property
    def input_spec(self) -> pl.BlockSpec:
        """x̃ of one tile."""
        return pl.BlockSpec((None, ROWS, self.width), lambda c, t, k: (t, 0, 0))

    @property
    def augmented_spec(self) -> pl.BlockSpec:
        """Some columns of one tile's W̃."""
        return pl.BlockSpec((None, None, self.width, COLUMNS), lambda c, t, k: (c, t, 0, k))

    @property
    def hidden_spec(self) -> pl.BlockSpec:
        """Some columns of one tile's h₁."""
        return pl.BlockSpec((None, None, ROWS, COLUMNS), lambda c, t, k: (c, t, 0, k))


class _Scored(NamedTuple):
    """What the last kernel makes of the activations before the last ReLU."""

    log_sum_exp: Array
    head: tuple[Array, Array]
    """Gradient of the head's (weight, bias)."""
    d: Array
    """Gradient of the last hidden layer's activations before their ReLU, [critics, rows, units]."""
    d_bias: Array
    """Gradient of that layer's bias."""


def _first_layer(call: Any, tiles: Tiles, inputs: Array, augmented: Array, operands: Any) -> Array:
    """h₁, [critics, rows, units]."""
    h = call(
        _first,
        grid=tiles.grid,
        in_specs=[tiles.input_spec, tiles.augmented_spec],
        out_specs=tiles.hidden_spec,
        out_shape=jax.ShapeDtypeStruct((tiles.critics, tiles.count, ROWS, tiles.first_width), operands),
        name="first",
    )(inputs, augmented)
    return h.reshape(tiles.critics, tiles.batch * tiles.slots, tiles.first_width)


def _inner_layers(first: Array, inner: Layers, operands: Any) -> tuple[list[Array], Array]:
    """Every hidden layer's activations but the last one's, and that one's before its bias and ReLU.

    The barrier keeps an activation whole: folded into the next product it would be computed again for the weights'
    gradient.
    """
    hidden = [first]
    for number, (w, b) in enumerate(inner):
        pre = product("cri,cij->crj", hidden[-1], w, operands, operands)
        if number + 1 < len(inner):
            hidden.append(jax.lax.optimization_barrier(jax.nn.relu(pre + b.astype(operands)[:, None])))
    return hidden, pre


def _scores(call: Any, pre: Array, layers: Layers, offsets: Array, scale: Array, operands: Any) -> _Scored:
    """Scores, their loss, and its gradient down to the last hidden layer: one program per state and critic."""
    (head, head_bias), (_, last_bias) = layers[-1], layers[-2]
    critics, rows, width = pre.shape
    count, used = offsets.shape
    slots = rows // count
    of_rows = pl.BlockSpec((None, None, slots, width), lambda c, b: (c, b, 0, 0))
    of_critic = pl.BlockSpec((None, width), lambda c, b: (c, 0))
    of_scalar = pl.BlockSpec((None, None, 1), lambda c, b: (c, b, 0))
    of_sums = pl.BlockSpec((None, None, width), lambda c, b: (c, b, 0))
    sums = jax.ShapeDtypeStruct((critics, count, width), jnp.float32)
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
            jax.ShapeDtypeStruct((critics, count, 1), jnp.float32),
            jax.ShapeDtypeStruct((critics, count, slots, width), operands),
            sums,
            sums,
        ],
        name="last",
    )(
        pre.reshape(critics, count, slots, width),
        last_bias,
        head[..., 0],
        head_bias,
        jnp.pad(offsets, ((0, 0), (0, slots - used)), constant_values=NEVER),
        scale[:, None],
    )
    # A state's softmax sums to one.
    of_head = (jnp.sum(d_head, axis=1)[..., None], jnp.broadcast_to(jnp.sum(scale), (critics, 1)))
    return _Scored(log_sum_exp[..., 0], of_head, d.reshape(pre.shape), jnp.sum(d_bias, axis=1))


def _backward(scored: _Scored, hidden: list[Array], inner: Layers, operands: Any) -> tuple[Layers, Array]:
    """Gradients of the inner layers' (weight, bias), and that of h₁ before the first layer's mask."""
    gradients: list[tuple[Array, Array]] = []
    d, d_bias = scored.d, scored.d_bias
    for number in reversed(range(len(inner))):
        w, below = inner[number][0], hidden[number]
        gradients.append((product("cri,crj->cij", below, d, operands), d_bias))
        d = product("crj,cji->cri", d, _transposed(w, operands), operands, operands)
        if number > 0:
            d = jax.lax.optimization_barrier(jnp.where(below > 0, d, jnp.zeros((), operands)))
            d_bias = jnp.sum(d, axis=1, dtype=jnp.float32)
    return tuple(reversed(gradients)), d


def _first_gradient(
    call: Any, tiles: Tiles, inputs: Array, augmented: Array, d: Array, observation: Array, operands: Any
) -> tuple[Array, Array]:
    """Gradient of the first layer's (weight, bias)."""
    d_augmented = call(
        _back,
        grid=tiles.grid,
        in_specs=[tiles.input_spec, tiles.augmented_spec, tiles.hidden_spec],
        out_specs=tiles.augmented_spec,
        out_shape=jax.ShapeDtypeStruct(augmented.shape, jnp.float32),
        name="back",
    )(inputs, augmented, d.reshape(tiles.critics, tiles.count, ROWS, tiles.first_width))
    size = tiles.actions
    of_state = d_augmented[:, :, size : size + tiles.states].reshape(tiles.critics, tiles.batch, tiles.first_width)
    of_actions = jnp.sum(d_augmented[:, :, :size], axis=1)
    bias = jnp.sum(d_augmented[:, :, size + tiles.states], axis=1)
    weight = jnp.concatenate([product("bs,cbh->csh", observation, of_state, operands), of_actions], axis=1)
    return weight, bias


def _first(inputs: Any, augmented: Any, out: Any) -> None:
    """relu(x̃ W̃) of one tile and some columns."""
    out[...] = jnp.maximum(dot(inputs[...], augmented[...]), 0.0).astype(out.dtype)


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
    d = jnp.where(dot(x, augmented[...]) > 0.0, d_hidden[...], 0).astype(x.dtype)
    out[...] = dot(x, d, over=(0, 0))


def dot(a: Array, b: Array, *, over: tuple[int, int] = (1, 0)) -> Array:
    """Product of two matrices over the given dimensions, with a float32 sum."""
    dimensions = (((over[0],), (over[1],)), ((), ()))
    return jax.lax.dot_general(a, b, dimensions, precision=_precision(a.dtype), preferred_element_type=jnp.float32)


def product(subscripts: str, a: Array, b: Array, operands: Any, result: Any = jnp.float32) -> Array:
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
