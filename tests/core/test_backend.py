"""What programs run on, told from what JAX says of its devices."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import pytest

from sapp.core.backend import device, on_cuda


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
