"""How tests compile: most compile programs and hardly run them, and compiling is most of their time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version

EMITTERS = tuple(int(part) for part in version("jax").split(".")[:2]) < (0, 11)
"""Whether the compiler still has the flag; later ones know no other fusion."""

FLAGS = "--xla_backend_optimization_level=0" + (" --xla_cpu_use_fusion_emitters=false" if EMITTERS else "")
"""XLA_FLAGS of the tests (see conftest.py): without optimisation a program compiles in a third of the time."""

LONG = {"xla_backend_optimization_level": 1}
"""Compiler options of a program that runs for thousands of steps."""

LONG_FLAGS = FLAGS.replace("level=0", "level=1")
"""XLA_FLAGS of a process that runs for thousands of steps."""

USUAL_FUSION = {"xla_cpu_use_fusion_emitters": True} if EMITTERS else {}
"""The fusion that users get: on it depends whether two programs have equal bits."""

USUAL = USUAL_FUSION | {"xla_backend_optimization_level": 3}
"""What users get."""


@contextmanager
def training(options: dict[str, int]) -> Iterator[None]:
    """Training compiled with these options instead of ``FLAGS``."""
    import jax

    from sapp.training import program

    quick = program.run
    program.run = jax.jit(quick.__wrapped__, **program.COMPILED, compiler_options=options)
    try:
        yield
    finally:
        program.run = quick
