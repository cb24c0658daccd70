"""Which device JAX computes on, and whether the CPU's cores are free meanwhile."""

from __future__ import annotations

from typing import Any

import jax

OLDER_EMITTERS_UNTIL = (0, 11)
"""The JAX whose compiler no longer has the flag: it would refuse it."""


def compiled_once(version: tuple[int, ...] = jax.__version_info__) -> dict[str, Any]:
    """How a CPU's compiler makes a program that runs once: without optimisation and, where it still has them, by its
    older emitters, in a fraction of the time and of the memory. One run does not notice that its kernels are slower."""
    older = {"xla_cpu_use_fusion_emitters": False} if version < OLDER_EMITTERS_UNTIL else {}
    return {"xla_backend_optimization_level": 0, **older}


def on_cuda() -> bool:
    """Whether programs run on an NVIDIA GPU; JAX calls AMD's "gpu", too."""
    if jax.default_backend() not in ("gpu", "cuda"):
        return False
    return "rocm" not in jax.devices()[0].client.platform_version.lower()


def device() -> str:
    """What programs run on, as a person calls it: CPU, or the kind of the accelerator."""
    return "CPU" if jax.default_backend() == "cpu" else str(jax.devices()[0].device_kind)


def host_is_free() -> bool:
    """Whether training leaves the CPU's cores free: it runs on something else."""
    return jax.default_backend() != "cpu"
