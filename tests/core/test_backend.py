"""What programs run on, told from what JAX says of its devices."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import pytest

from sapp.core.backend import compiled_once, device, on_cuda


@pytest.mark.parametrize(
    ("backend", "version", "expected"),
    [
        ("gpu", "PJRT C API\ncuda 13000", True),
        ("cuda", "cuda 12040", True),
        ("gpu", "PJRT C API\nrocm 60443484", False),
        ("cpu", "cpu", False),
        ("tpu", "TPU v5e", False),
    ],
)
def test_only_nvidia_is_cuda(monkeypatch: pytest.MonkeyPatch, backend: str, version: str, expected: bool) -> None:
    one = SimpleNamespace(client=SimpleNamespace(platform_version=version), device_kind="Kind 7")
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    monkeypatch.setattr(jax, "devices", lambda: [one])
    assert on_cuda() is expected
    assert device() == ("CPU" if backend == "cpu" else "Kind 7")


def test_a_compiler_is_given_only_flags_that_it_has() -> None:
    plain = {"xla_backend_optimization_level": 0}
    assert compiled_once((0, 11, 0)) == compiled_once((1, 0)) == plain
    assert compiled_once((0, 10, 2)) == plain | {"xla_cpu_use_fusion_emitters": False}
    if jax.default_backend() == "cpu":  # this one has them
        assert jax.jit(lambda x: x + 1, compiler_options=compiled_once())(1) == 2
