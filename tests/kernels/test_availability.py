"""Kernels are used where they can run: without their back end, or on an older GPU, the plain counterparts serve."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from sapp.algorithms import CQL
from sapp.algorithms.cql import critic_gradient
from sapp.core.errors import SappError
from sapp.kernels import availability
from sapp.kernels.availability import unavailable
from sapp.networks import MLP, DropoutCritic

LEARNER, NETWORKS = (importlib.import_module(name) for name in ("sapp.algorithms.cql", "sapp.networks.ensemble"))


@pytest.fixture
def without_back_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a JAX that has dropped it: its import fails."""
    for name in list(sys.modules):
        if name.startswith("sapp.kernels.") and name != availability.__name__:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jax.experimental.pallas.triton", None)
    monkeypatch.delattr("jax.experimental.pallas.triton", raising=False)


def gpu(monkeypatch: pytest.MonkeyPatch, capability: str) -> None:
    device = SimpleNamespace(compute_capability=capability, device_kind="Tesla T4")
    monkeypatch.setattr(jax, "devices", lambda: [device])
    monkeypatch.setattr(availability, "on_cuda", lambda: True)


def test_here_they_can_be_used() -> None:
    assert unavailable() is None


@pytest.mark.parametrize(("capability", "usable"), [("7.5", False), ("8.0", True), ("9.0", True), ("12.0", True)])
def test_older_gpus_have_the_plain_counterparts(
    monkeypatch: pytest.MonkeyPatch, capability: str, usable: bool
) -> None:
    gpu(monkeypatch, capability)
    why = unavailable()
    assert (why is None) is usable
    assert usable or why == "Tesla T4 has compute capability 7.5; the kernels need 8"


@pytest.mark.usefixtures("without_back_end")
def test_a_jax_without_the_back_end_has_the_plain_counterparts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unavailable() == f"JAX {jax.__version__} has no Triton back end of Pallas"
    monkeypatch.setattr(LEARNER, "on_cuda", lambda: True)  # where auto would take a kernel
    batch = SimpleNamespace(action=np.zeros((64, 2)))
    chosen = CQL(precision="mixed", kernel="auto", hidden=(64, 64))._gradient_by(batch)
    assert chosen is critic_gradient
    with pytest.raises(SappError, match=r"kernel fused cannot be used: JAX .* use kernel xla"):
        CQL(precision="mixed", kernel="fused", hidden=(64, 64))._gradient_by(batch)
    key = jax.random.PRNGKey(0)
    assert not MLP(key, 8, (64, 64), 1, "float32", split_fp16=True).split_fp16
    monkeypatch.setattr(NETWORKS, "on_cuda", lambda: True)
    assert not DropoutCritic(key, 4, 2, (64, 64), "tf32").fused


def test_with_the_back_end_they_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LEARNER, "on_cuda", lambda: True)
    batch = SimpleNamespace(action=np.zeros((64, 2)))
    assert CQL(precision="mixed", kernel="auto", hidden=(64, 64))._gradient_by(batch) is not critic_gradient
    key = jax.random.PRNGKey(0)
    assert MLP(key, 8, (64, 64), 1, "float32", split_fp16=True).split_fp16
    monkeypatch.setattr(NETWORKS, "on_cuda", lambda: True)
    assert DropoutCritic(key, 4, 2, (64, 64), "tf32").fused
