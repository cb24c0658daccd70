"""Divergences between a policy's and the behaviour's actions, estimated from draws: one number per state."""

from __future__ import annotations

from typing import Literal, get_args

import jax.numpy as jnp
from jax import Array

from sapp.core.errors import SappError

Kernel = Literal["gaussian", "laplacian"]


def check_kernel(kernel: str) -> None:
    """Refuse an unknown kernel by name."""
    if kernel not in get_args(Kernel):
        raise SappError(f"kernel {kernel!r} is unknown: use {' or '.join(get_args(Kernel))}")


def mean_kernel(x: Array, y: Array, sigma: Array | float, kernel: Kernel) -> Array:
    """Mean of k(x_i, y_j) over all pairs of draws [B, N, A] and [B, M, A] → [B].

    Gaussian k = exp(−‖x − y‖²/(2σ)), Laplacian k = exp(−‖x − y‖₁/(2σ)); σ is not squared, as in BEAR's code.
    """
    difference = x[:, :, None] - y[:, None]
    size = jnp.square(difference) if kernel == "gaussian" else jnp.abs(difference)
    return jnp.mean(jnp.exp(-jnp.sum(size, axis=-1) / (2.0 * sigma)), axis=(1, 2))


def mmd_squared(x: Array, y: Array, sigma: Array | float, kernel: Kernel) -> Array:
    """MMD² = E k(x,x') + E k(y,y') − 2·E k(x,y) a state, from all pairs, a draw with itself included."""
    cross = mean_kernel(x, y, sigma, kernel)
    return mean_kernel(x, x, sigma, kernel) + mean_kernel(y, y, sigma, kernel) - 2.0 * cross
