"""The switch of precision: what it means on each machine, and how far each setting's products are from float64's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import sapp
from sapp.core import precision as module
from sapp.core.errors import SappError
from sapp.core.precision import (
    BF16,
    TF32,
    check_precision,
    half_product,
    last_product,
    matmul,
    resolve,
    resolved,
    rough_matmul,
    rounded,
)


def test_auto_is_float32_on_a_cpu_and_mixed_on_an_nvidia_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolve("auto") == "float32"
    monkeypatch.setattr(module, "on_cuda", lambda: True)
    assert resolve("auto") == "mixed"
    assert resolve("tf32") == "tf32"


def test_an_algorithm_is_resolved_with_all_that_it_holds() -> None:
    algorithm = resolved(sapp.CQL(weights=sapp.OccupancyModel()))
    assert (algorithm.precision, algorithm.weights.precision) == ("float32", "float32")
    assert resolved(sapp.DQN()).network.precision == "float32"
    chosen = sapp.CQL(precision="mixed")
    assert resolved(chosen) is chosen


def test_a_run_records_what_auto_was(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from sapp.envs.point import behaviour_dataset

    small = sapp.CQL(hidden=(8,), batch_size=8, action_samples=1)
    run = sapp.train(small, behaviour_dataset(5, seed=0), steps=2, eval_every=0, out=tmp_path / "run", progress=False)
    assert run.plan.members[0].algorithm.precision == "float32"


@pytest.mark.parametrize(("bits", "step"), [(TF32, 2.0**-10), (BF16, 2.0**-7)])
def test_rounding_is_to_the_nearest(bits: int, step: float) -> None:
    x = jnp.asarray([1.0 + 0.4 * step, 1.0 + 0.6 * step, -(1.0 + 0.6 * step)])
    np.testing.assert_array_equal(rounded(x, bits), np.float32([1.0, 1.0 + step, -1.0 - step]))
    np.testing.assert_array_equal(jax.grad(lambda y: jnp.sum(rounded(y, bits)))(x), 1.0)


def products(function, seed: int = 0):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    x, w = rng.uniform(0, 1, (64, 128)), rng.uniform(0, 1, (128, 64))
    found = np.asarray(function(jnp.asarray(x, jnp.float32), jnp.asarray(w, jnp.float32)), np.float64)
    return (found - x @ w) / (x @ w)


def test_products_are_unbiased_and_as_exact_as_their_operands() -> None:
    exact = products(lambda x, w: matmul(x, w, "float32"))
    tf32 = products(lambda x, w: matmul(x, w, "tf32"))
    rough = products(rough_matmul)
    assert np.abs(exact).max() < 2e-6
    assert 1e-6 < np.sqrt(np.mean(tf32**2)) < 1e-4
    assert 1e-4 < np.sqrt(np.mean(rough**2)) < 3e-3
    # too small a part of the size is what a fixed point amplifies
    assert abs(np.mean(tf32)) < 2e-6
    assert abs(np.mean(rough)) < 1e-4


@pytest.mark.parametrize("precision", ["tf32", "mixed"])
def test_a_single_output_is_float32(precision: str) -> None:
    rng = np.random.default_rng(1)
    x, w = rng.uniform(0, 1, (64, 128)).astype(np.float32), rng.uniform(0, 1, (128, 1)).astype(np.float32)
    truth = x.astype(np.float64) @ w.astype(np.float64)
    assert np.abs(np.asarray(last_product(jnp.asarray(x), jnp.asarray(w), precision)) / truth - 1).max() < 1e-6


def test_gradients_have_rounded_operands_and_float32_sums() -> None:
    rng = np.random.default_rng(2)
    x, w = (jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in ((32, 64), (64, 16)))
    direction = jnp.asarray(rng.normal(size=(32, 16)), jnp.float32)

    def gradient(precision: str):  # type: ignore[no-untyped-def]
        return jax.grad(lambda w: jnp.sum(direction * matmul(x, w, precision)))(w)

    expected = np.asarray(rounded(x, TF32), np.float64).T @ np.asarray(rounded(direction, TF32), np.float64)
    np.testing.assert_allclose(gradient("tf32"), expected, rtol=1e-5, atol=1e-5)
    assert not np.array_equal(gradient("tf32"), gradient("float32"))


def test_the_gpus_rough_product_is_the_emulated_one() -> None:
    """Values and both gradients; what differs is the order of float32 sums, and the bits that it turns over."""
    rng = np.random.default_rng(3)
    x, w = jnp.asarray(rng.normal(size=(8, 5, 64)), jnp.float32), jnp.asarray(rng.normal(size=(64, 16)), jnp.float32)
    direction = jnp.asarray(rng.normal(size=(8, 5, 16)), jnp.float32)
    found = [
        jax.value_and_grad(lambda x, w, f=f: jnp.sum(direction * f(x, w)), argnums=(0, 1))(x, w)
        for f in (rough_matmul, half_product)
    ]
    np.testing.assert_allclose(half_product(x, w), rough_matmul(x, w), rtol=2.0**-7, atol=1e-5)
    assert np.mean(np.asarray(half_product(x, w)) == np.asarray(rough_matmul(x, w))) > 0.99
    for emulated, own in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_allclose(own, emulated, rtol=1e-5, atol=1e-5)


def test_an_unknown_precision_is_refused_by_name() -> None:
    with pytest.raises(SappError, match=r"'bf16'.*auto, float32, tf32, mixed"):
        check_precision("bf16")
