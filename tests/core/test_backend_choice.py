"""A device that is asked for and is not there is named, in one line."""

from __future__ import annotations

import jax
import pytest

from sapp.core.backend_choice import unusable_backend


def test_only_a_device_that_was_asked_for_can_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> list:
        raise RuntimeError("Unable to initialize backend 'tpu'\n(set JAX_PLATFORMS='')")

    monkeypatch.setenv("JAX_PLATFORMS", "tpu")
    assert unusable_backend() == ""  # there is one all the same
    monkeypatch.setattr(jax, "devices", fails)
    said = unusable_backend()
    assert said.startswith("JAX_PLATFORMS=tpu: there is no such device here (Unable to initialize backend 'tpu' (set ")
    assert said.endswith("unset it, or set it to cpu")
    monkeypatch.delenv("JAX_PLATFORMS")
    assert unusable_backend() == ""
