"""Where the kernels of this package can run: older GPUs and JAX without their back end get the plain counterparts."""

from __future__ import annotations

import jax

from sapp.core.backend import on_cuda

OLDEST = 8.0
"""Compute capability of the oldest NVIDIA GPUs that Pallas' Triton back end and bfloat16 products take: Ampere."""


def unavailable() -> str | None:
    """Why the kernels cannot be used here, or None if they can; on a CPU they run by interpretation, for tests."""
    try:
        from jax.experimental.pallas import triton  # noqa: F401
    except ImportError:
        return f"JAX {jax.__version__} has no Triton back end of Pallas"
    device = jax.devices()[0]
    capability = getattr(device, "compute_capability", None)
    if on_cuda() and capability is not None and float(capability) < OLDEST:
        return f"{device.device_kind} has compute capability {capability}; the kernels need {OLDEST:g}"
    return None
