"""Operations on pytrees that several packages need: selection, averages, shapes."""

from __future__ import annotations

from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array

T = TypeVar("T")


def select(condition: Array, yes: T, no: T) -> T:
    """``yes`` where the scalar condition holds, else ``no``, leaf by leaf."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), yes, no)


def polyak(target: T, online: T, rate: Array | float) -> T:
    """Soft target update: target ← (1 − rate)·target + rate·online."""
    return jax.tree.map(lambda t, o: t + rate * (o - t), target, online)


def usable(gradients: T) -> T:
    """Gradients in which what is not finite, or has no finite square, is 0.

    Number by number, because a sum over all of them would have to be waited for before any parameter can move.
    """
    return jax.tree.map(lambda g: jnp.where(jnp.isfinite(jnp.square(g)), g, 0.0), gradients)


def shapes(tree: object) -> dict[str, tuple[int, ...]]:
    """Shapes of a pytree's leaves by their path: two trees with equal shapes can take each other's arrays."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path): tuple(jnp.shape(leaf)) for path, leaf in leaves}


def all_finite(tree: object) -> Array:
    """Whether every number of every leaf is finite."""
    return jnp.isfinite(sum((jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(tree)), jnp.float32(0.0)))
