"""What programs run on."""

from __future__ import annotations

import jax


def on_cuda() -> bool:
    """Whether programs run on an NVIDIA GPU."""
    return jax.default_backend() in ("gpu", "cuda")
