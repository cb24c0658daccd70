"""What programs run on."""

from __future__ import annotations

import jax


def on_cuda() -> bool:
    """Whether programs run on an NVIDIA GPU."""
    return jax.default_backend() in ("gpu", "cuda")


def host_is_free() -> bool:
    """Whether training leaves the CPU's cores free: it runs on something else."""
    return jax.default_backend() != "cpu"
