"""Thinned networks by their kernel: the values and gradients of one network after another."""

from __future__ import annotations

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.algorithms.uwac import dropout_moments
from sapp.kernels import dropout_samples as module
from sapp.kernels.dropout_samples import dropout_values, misfit
from sapp.networks import DropoutCritic, many

networks = importlib.import_module("sapp.networks.ensemble")  # sapp.networks has a function of this name


def problem(
    rows: int, depth: int, width: int, samples: int, scale: float = 1.0
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Operands as float32 that float16 holds exactly, and a gradient of the values."""
    rng = np.random.default_rng(0)

    def short(x: np.ndarray) -> np.ndarray:
        return x.astype(np.float16).astype(np.float32) * np.float32(scale)

    operands = (
        short(np.maximum(rng.normal(size=(rows, depth)), 0.0)),
        short(rng.normal(size=(depth, width)) / depth**0.5),
        rng.normal(size=width).astype(np.float32) * np.float32(scale) ** 2,
        rng.normal(size=(samples, width)).astype(np.float32) * rng.integers(0, 2, (samples, width)),
        (rng.random((samples, depth)) < 0.9).astype(np.float32),
    )
    return tuple(np.asarray(x, np.float32) for x in operands), rng.normal(size=(samples, rows)).astype(np.float32)


def by_hand(operands: tuple[np.ndarray, ...], d_values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    hidden, weight, bias, heads, keep = (x.astype(np.float64) for x in operands)
    values, gradient = [], np.zeros_like(hidden)
    for head, kept, d in zip(heads, keep, d_values.astype(np.float64), strict=True):
        z = (hidden * kept) @ weight + bias
        values.append(np.maximum(z, 0.0) @ head)
        gradient += ((z > 0) * d[:, None] * head) @ weight.T * kept
    return np.asarray(values), gradient


@pytest.mark.parametrize(
    ("rows", "depth", "width", "samples"), [(128, 64, 64, 3), (200, 128, 256, 4), (37, 256, 128, 20)]
)
@pytest.mark.parametrize("scale", [1.0, 2.0**-20, 2.0**15])
def test_values_and_gradients(rows: int, depth: int, width: int, samples: int, scale: float) -> None:
    operands, d_values = problem(rows, depth, width, samples, scale)
    values, pull = jax.vjp(lambda hidden: dropout_values(hidden, *map(jnp.asarray, operands[1:])), operands[0])
    true_values, true_gradient = by_hand(operands, d_values)
    assert values.shape == (samples, rows)
    np.testing.assert_allclose(values, true_values, atol=2e-6 * np.abs(true_values).max())
    (gradient,) = pull(jnp.asarray(d_values))
    # the gradient's own factors are rounded to float16
    np.testing.assert_allclose(gradient, true_gradient, atol=1e-3 * np.abs(true_gradient).max())


def test_operands_are_rounded_as_tf32_rounds_them() -> None:
    (hidden, *rest), _ = problem(128, 64, 64, 2)
    hidden = hidden * np.float32(1.0 + 2.0**-13)
    values = dropout_values(*map(jnp.asarray, (hidden, *rest)))
    true_values, _ = by_hand((hidden, *rest), np.zeros((2, 128), np.float32))
    error = np.abs(np.asarray(values) - true_values).max() / np.abs(true_values).max()
    assert 2.0**-16 < error < 2.0**-10


def test_which_networks_it_takes() -> None:
    assert misfit((256, 256)) is None
    assert misfit((64, 128)) is None
    assert "it takes two" in str(misfit((256, 256, 256)))
    assert "it takes two" in str(misfit((256, 100)))


@pytest.mark.parametrize("several", [False, True])
def test_a_dropout_critics_samples_are_the_same_by_either_way(monkeypatch: pytest.MonkeyPatch, several: bool) -> None:
    critics = many(lambda key: DropoutCritic(key, 5, 3, (64, 128), "tf32"), jax.random.PRNGKey(0), 2)
    state = jax.random.normal(jax.random.PRNGKey(1), (9, 5))
    action = jax.random.normal(jax.random.PRNGKey(2), (9, 4, 3) if several else (9, 3))

    def moments() -> tuple[list[np.ndarray], jax.Array]:
        def both(action: jax.Array) -> tuple[jax.Array, jax.Array]:
            return dropout_moments(critics, state, action, jax.random.PRNGKey(3), 6)

        gradient = jax.grad(lambda action: jnp.sum(jnp.sin(both(action)[0])))(action)
        return [np.asarray(x) for x in both(action)], gradient

    plain, plain_gradient = moments()
    assert not critics.fused
    monkeypatch.setattr(networks, "on_cuda", lambda: True)
    assert critics.fused
    fused, fused_gradient = moments()
    assert plain[0].shape == fused[0].shape == (2, *action.shape[:-1])
    assert np.any(plain[0] != fused[0])
    for one, other in zip(plain, fused, strict=True):
        np.testing.assert_allclose(one, other, rtol=5e-3, atol=1e-3 * np.abs(one).max())
    # rounding switches a unit here and there, which moves the gradient of its row
    error = np.abs(plain_gradient - fused_gradient) / np.abs(plain_gradient).max()
    assert np.quantile(error, 0.75) < 1e-3
    assert error.max() < 5e-2


def test_float32_asks_for_all_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "on_cuda", lambda: True)
    key = jax.random.PRNGKey(0)
    assert not DropoutCritic(key, 5, 3, (64, 64), "float32").fused
    assert DropoutCritic(key, 5, 3, (64, 64), "mixed").fused
    assert not DropoutCritic(key, 5, 3, (64, 64, 64), "tf32").fused


def test_the_kernels_can_be_made_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their translation needs no GPU, only their compilation does."""
    monkeypatch.setattr(module, "on_cuda", lambda: True)
    shapes = (3, 300, 256), (3, 256, 256), (3, 256), (3, 100, 256), (3, 100, 256)
    gradient = jax.jit(jax.vmap(jax.grad(lambda *operands: jnp.sum(dropout_values(*operands)))))
    text = gradient.trace(*map(jnp.zeros, shapes)).lower(lowering_platforms=("cuda",)).as_text()
    for name in ("dropout_values", "dropout_gradient"):
        assert f'name = "{name}"' in text
