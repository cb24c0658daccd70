"""Problems for the kernels of CQL's penalty, and their plain answers."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from sapp.algorithms.cql import propose
from sapp.core.spec import Batch
from sapp.networks import StateActionNetwork, ensemble

S, A, B = 5, 3, 8


def problem(hidden: tuple[int, ...], samples: int = 10, actions: int = A, precision: str = "float32", seed: int = 0):
    keys = jax.random.split(jax.random.PRNGKey(seed), 12)
    critics = jax.vmap(lambda k: StateActionNetwork(k, S, actions, hidden, precision))(jax.random.split(keys[0], 2))
    normal = lambda key, *shape: jax.random.normal(key, shape)  # noqa: E731
    batch = Batch(
        normal(keys[1], B, S), jnp.tanh(normal(keys[2], B, actions)), normal(keys[3], B), normal(keys[4], B, S),
        jnp.zeros(B), normal(keys[5], B, S),
    )  # fmt: skip
    here = jnp.tanh(normal(keys[6], B, samples, actions)), normal(keys[7], B, samples)
    there = jnp.tanh(normal(keys[8], B, samples, actions)), normal(keys[9], B, samples)
    proposals = propose(here, there, keys[10])
    weights = jax.random.uniform(keys[11], (B,), minval=0.2, maxval=2.0)
    return critics, batch, normal(keys[11], B), proposals, weights, jnp.float32(2.5)


def by(module, critics, batch, target, proposals, weights, coefficient, operands=jnp.float32):
    """L_i(s) and its gradient, by a module of kernels."""
    del target
    return module.log_sum_exp_gradient(
        tuple((layer.weight, layer.bias) for layer in critics.mlp.layers),
        batch.observation, *proposals, coefficient * weights / B, operands=operands, interpret=True,
    )  # fmt: skip


def plain(critics, batch, target, proposals, weights, coefficient):
    """The same by differentiation."""

    def weighted(critics):
        scores = ensemble(critics, batch.observation, proposals[0])
        found = jax.nn.logsumexp(scores - proposals[1], axis=-1)
        return jnp.sum(coefficient * weights / B * found), found

    (_, found), gradient = jax.value_and_grad(weighted, has_aux=True)(critics)
    return found, gradient


def distance(mine: object, theirs: object) -> float:
    """Largest relative distance of two gradients, over layers."""
    pairs = zip(jax.tree.leaves(mine), jax.tree.leaves(theirs), strict=True)
    return max(float(jnp.linalg.norm(a - b) / jnp.linalg.norm(b)) for a, b in pairs)
