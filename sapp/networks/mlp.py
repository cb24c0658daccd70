"""Multilayer perceptrons; how their products are computed is in ``sapp.core.precision``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.core.backend import on_cuda
from sapp.core.errors import SappError
from sapp.core.precision import BF16, Precision, last_product, matmul, resolve, rough_matmul, rounded

Start = Literal["torch", "he"]
"""How a layer begins: weight and bias uniform in ±1/√fan_in, as PyTorch has it; or weights in ±√6/√fan_in and no bias,
which keeps the size of what passes through ReLUs (He and others, 2015)."""


class Linear(eqx.Module):
    """Affine map, by default with PyTorch's initialisation: weight and bias uniform in ±scale/√fan_in."""

    weight: Array
    bias: Array

    def __init__(self, key: Array, inputs: int, outputs: int, scale: float = 1.0, start: Start = "torch") -> None:
        bound = (6.0**0.5 if start == "he" else 1.0) * scale / inputs**0.5
        weight_key, bias_key = jax.random.split(key)
        self.weight = jax.random.uniform(weight_key, (inputs, outputs), minval=-bound, maxval=bound)
        self.bias = jnp.zeros(outputs)
        if start == "torch":
            self.bias = jax.random.uniform(bias_key, (outputs,), minval=-bound, maxval=bound)

    def __call__(self, x: Array, precision: Precision) -> Array:
        """Apply to the last axis of ``x``."""
        return matmul(x, self.weight, precision) + self.bias

    def output(self, x: Array, precision: Precision) -> Array:
        """Apply as a network's last layer; a value, its only output, is computed in float32."""
        return last_product(x, self.weight, precision) + self.bias


class MLP(eqx.Module):
    """ReLU network; the last layer of one with a single output is float32 whatever the precision.

    ``scale`` shrinks the initial weights of the last layer, ``bias`` (if given) sets its initial bias. ``split_fp16``
    lets float32 be computed by half-precision products where that is faster and as exact; then it is differentiable
    once. ``trunk``: what it returns is a hidden layer of a larger network, and computed like one.
    """

    layers: tuple[Linear, ...]
    precision: Precision = eqx.field(static=True)
    split_fp16: bool = eqx.field(static=True)
    trunk: bool = eqx.field(static=True)

    def __init__(
        self,
        key: Array,
        inputs: int,
        hidden: Sequence[int],
        outputs: int,
        precision: Precision = "float32",
        *,
        scale: float = 1.0,
        bias: float | None = None,
        split_fp16: bool = False,
        trunk: bool = False,
    ) -> None:
        widths = [inputs, *hidden, outputs]
        keys = jax.random.split(key, len(widths) - 1)
        scales = [1.0] * (len(widths) - 2) + [scale]
        layers = [Linear(k, i, o, s) for k, i, o, s in zip(keys, widths[:-1], widths[1:], scales, strict=True)]
        if bias is not None:
            layers[-1] = eqx.tree_at(lambda layer: layer.bias, layers[-1], jnp.full((outputs,), bias, jnp.float32))
        self.layers = tuple(layers)
        self.trunk = trunk
        self.precision = resolve(precision)
        exact = self.precision == "float32"
        self.split_fp16 = split_fp16 and exact and _suits_split_fp16(inputs, tuple(hidden), outputs)

    def __call__(self, x: Array) -> Array:
        """Map ``[..., inputs]`` to ``[..., outputs]``."""
        if self.split_fp16 and on_cuda():
            from sapp.kernels.split_fp16 import perceptron

            layers = tuple((layer.weight, layer.bias) for layer in self.layers)
            return perceptron(layers, x.reshape(-1, x.shape[-1])).reshape(*x.shape[:-1], -1)
        for layer in self.layers[:-1]:
            x = jax.nn.relu(layer(x, self.precision))
        return self.layers[-1](x, self.precision) if self.trunk else self.layers[-1].output(x, self.precision)


def _suits_split_fp16(inputs: int, hidden: tuple[int, ...], outputs: int) -> bool:
    from sapp.kernels.availability import unavailable  # not before it is needed: Pallas is slow to import

    if unavailable() is not None:
        return False
    from sapp.kernels.split_fp16 import misfit

    return misfit(inputs, hidden, outputs) is None


class StateActionNetwork(eqx.Module):
    """A scalar function of a state and an action, ``Q(s, a)`` or a density ratio.

    The first layer's product with the state is computed once per state and shared by all of that state's actions: CQL
    scores thirty of them.
    """

    mlp: MLP
    state_size: int = eqx.field(static=True)

    def __init__(
        self,
        key: Array,
        state_size: int,
        action_size: int,
        hidden: Sequence[int],
        precision: Precision = "float32",
        *,
        scale: float = 1.0,
        bias: float | None = None,
        split_fp16: bool = False,
    ) -> None:
        if not hidden:
            raise SappError("hidden sizes are empty: a critic needs at least one hidden layer")
        size = state_size + action_size
        self.mlp = MLP(key, size, hidden, 1, precision, scale=scale, bias=bias, split_fp16=split_fp16)
        self.state_size = state_size

    def __call__(self, state: Array, action: Array) -> Array:
        """Score ``state [B, S]`` with ``action [B, A]`` → ``[B]``, or with ``action [B, K, A]`` → ``[B, K]``."""
        if action.ndim == state.ndim:
            return self.mlp(jnp.concatenate([state, action], axis=-1))[..., 0]
        first, *rest = self.mlp.layers
        precision = self.mlp.precision
        of_state = matmul(state, first.weight[: self.state_size], precision)
        of_action = matmul(action, first.weight[self.state_size :], precision)
        x = jax.nn.relu((of_state + first.bias)[:, None, :] + of_action)
        for layer in rest[:-1]:
            x = jax.nn.relu(layer(x, precision))
        return rest[-1].output(x, precision)[..., 0]

    def rough(self, state: Array, action: Array) -> Array:
        """Scores [B, K] of K actions per state from bfloat16 operands: for what is never bootstrapped.

        What ``sapp.kernels.conservative`` computes on a GPU.
        """
        first, *inner, head = self.mlp.layers
        of_state = matmul(state, first.weight[: self.state_size], "tf32") + first.bias
        x = jax.nn.relu(rounded(of_state, BF16)[:, None, :] + rough_matmul(action, first.weight[self.state_size :]))
        for layer in inner:
            x = jax.nn.relu(rough_matmul(x, layer.weight) + layer.bias)
        return head.output(x, "tf32")[..., 0]


def ensemble(network: StateActionNetwork, state: Array, action: Array) -> Array:
    """Evaluate a network whose parameters carry a leading member axis: ``[members, B]`` or ``[members, B, K]``."""
    if not on_cuda() or action.ndim > state.ndim:
        return jax.vmap(lambda member: member(state, action))(network)
    # Of one shared input a GPU's compiler makes a single wide product for all members, and passes over all hidden units
    # to lay them out anew. So each has an input of its own.
    count = len(jax.tree.leaves(network)[0])
    own = jax.lax.optimization_barrier(tuple(jnp.broadcast_to(x, (count, *x.shape)) for x in (state, action)))
    return jax.vmap(lambda member, state, action: member(state, action))(network, *own)
