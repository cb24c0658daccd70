"""Which device JAX computes on, and whether the CPU's cores are free meanwhile."""

from __future__ import annotations

import jax


def on_cuda() -> bool:
    """Whether programs run on an NVIDIA GPU; JAX calls AMD's "gpu", too."""
    if jax.default_backend() not in ("gpu", "cuda"):
        return False
    return "rocm" not in jax.devices()[0].client.platform_version.lower()


def host_is_free() -> bool:
    """Whether training leaves the CPU's cores free: it runs on something else."""
    return jax.default_backend() != "cpu"
