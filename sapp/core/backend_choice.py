"""Whether the device that JAX_PLATFORMS asks for is there; does not import JAX."""

from __future__ import annotations

import os
import sys

from sapp.core.errors import one_line


def unusable_backend() -> str:
    """What to say where JAX can compute on nothing it was told to use; empty where it can, or was told nothing."""
    wanted, jax = os.environ.get("JAX_PLATFORMS"), sys.modules.get("jax")
    if not wanted or jax is None:
        return ""
    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:
        return f"JAX_PLATFORMS={wanted}: there is no such device here ({one_line(error)}); unset it, or set it to cpu"
    return ""
