"""Q(s,a) and its gradient ∇_a Q(s,a) of a ReLU network, with a gradient that computes nothing twice."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.core.precision import Precision, matmul
from sapp.networks.mlp import Linear, StateActionNetwork

Layers = tuple[Linear, ...]


def values_and_action_gradients(critics: StateActionNetwork, state: Array, action: Array) -> tuple[Array, Array]:
    """Q_i(s,a), [N, B], and ∇_a Q_i(s,a), [N, B, A], of every critic of an ensemble; differentiable once.

    What plain differentiation of a loss of both computes twice, the way back through the layers, is shared here: with
    three hidden layers 8 products between hidden layers a critic instead of 12.
    """
    return jax.vmap(lambda one: value_and_action_gradient(one.mlp.precision, one.mlp.layers, state, action))(critics)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def value_and_action_gradient(precision: Precision, layers: Layers, state: Array, action: Array) -> tuple[Array, Array]:
    """Q(s,a), [B], and ∇_a Q(s,a), [B, A], of ReLU layers on state and action side by side.

    With h_0 = (s,a), h_l = relu(h_{l−1} W_l + b_l) and Q = h_L·w + b, the way back is

        g_L = [h_L > 0]·w,   g_l = [h_l > 0]·(g_{l+1} W_{l+1}ᵀ),   ∇_a Q = the action's columns of g_1 W_1ᵀ.

    Let a loss have the gradients q towards Q and v towards ∇_a Q. Since ReLUs do not bend, v·∇_a Q is linear in each
    layer, and it is what Q would change by if the action moved by v:

        t_0 = (0,v),   t_l = [h_l > 0]·(t_{l−1} W_l)

    so that the loss's gradients are ∇W_l = (q·h_{l−1} + t_{l−1})ᵀ g_l, ∇b_l = qᵀ g_l and ∇w = Σ_B (q·h_L + t_L): one
    product per layer for both, with the g that the action gradient has needed anyway.
    """
    return _forward(precision, layers, state, action)[0]


def _forward(precision: Precision, layers: Layers, state: Array, action: Array) -> tuple[tuple[Array, Array], Any]:
    *inner, head = layers
    hidden = [jnp.concatenate([state, action], axis=-1)]
    for layer in inner:
        hidden.append(jax.nn.relu(layer(hidden[-1], precision)))
    value = head.output(hidden[-1], precision)[..., 0]
    back = [_where_on(hidden[-1], jnp.broadcast_to(head.weight[:, 0], hidden[-1].shape))]
    for layer, below in zip(inner[:0:-1], hidden[-2:0:-1], strict=True):
        back.append(_where_on(below, matmul(back[-1], layer.weight.T, precision)))
    action_gradient = matmul(back[-1], inner[0].weight[state.shape[-1] :].T, precision)
    return (value, action_gradient), (layers, hidden, back[::-1], action_gradient)


def _backward(precision: Precision, kept: Any, gradients: tuple[Array, Array]) -> tuple[Layers, Array, Array]:
    layers, hidden, back, action_gradient = kept
    of_value, of_gradient = gradients
    *inner, head = layers
    size = hidden[0].shape[-1] - of_gradient.shape[-1]
    moved = jnp.pad(of_gradient, ((0, 0), (size, 0)))
    found = []
    for number, (layer, below, g) in enumerate(zip(inner, hidden[:-1], back, strict=True)):
        weight = matmul(_both(of_value, below, moved).T, g, precision)
        found.append(_layer(layer, weight, matmul(of_value[None], g, precision)[0]))
        moving = moved[:, size:] if number == 0 else moved
        moved = _where_on(hidden[number + 1], matmul(moving, layer.weight[-moving.shape[-1] :], precision))
    weight = jnp.sum(_both(of_value, hidden[-1], moved), axis=0)
    found.append(_layer(head, weight[:, None], jnp.sum(of_value, keepdims=True)))
    of_state = of_value[:, None] * matmul(back[0], inner[0].weight[:size].T, precision)
    return tuple(found), of_state, of_value[:, None] * action_gradient


value_and_action_gradient.defvjp(_forward, _backward)


def _where_on(hidden: Array, x: Array) -> Array:
    """``x`` where a unit is on, else 0."""
    return jnp.where(hidden > 0, x, jnp.zeros((), x.dtype))


def _both(of_value: Array, hidden: Array, moved: Array) -> Array:
    """q·h + t, a row per state."""
    return of_value[:, None] * hidden + moved


def _layer(like: Linear, weight: Array, bias: Array) -> Linear:
    return eqx.tree_at(lambda layer: (layer.weight, layer.bias), like, (weight, bias))
