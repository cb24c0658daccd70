"""Convolutions: against loops written out in NumPy, alone and in a population, by both methods."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.algorithms import DiscreteCQL
from sapp.algorithms.config import build, describe, override
from sapp.core.errors import SappError
from sapp.core.spec import Spec
from sapp.networks.action_scores import Scores, Standardised
from sapp.networks.conv import Conv, ConvScores, DefaultScores, Encoder, ImageScores, output_size, patches


def naive(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, stride: int) -> np.ndarray:
    """Valid cross-correlation, every sum written out: x [B, H, W, C], weight [k, k, C, F]."""
    size = weight.shape[0]
    rows, columns = (x.shape[1] - size) // stride + 1, (x.shape[2] - size) // stride + 1
    out = np.zeros((len(x), rows, columns, weight.shape[3]))
    for b in range(len(x)):
        for i in range(rows):
            for j in range(columns):
                window = x[b, i * stride : i * stride + size, j * stride : j * stride + size]
                for f in range(weight.shape[3]):
                    out[b, i, j, f] = np.sum(window * weight[:, :, :, f]) + bias[f]
    return out


@pytest.mark.parametrize("method", ["patches", "conv"])
@pytest.mark.parametrize(("size", "kernel", "stride"), [(9, 3, 1), (13, 4, 2), (12, 8, 4), (11, 3, 2), (15, 8, 4)])
def test_a_layer_is_the_sum_over_its_window(method: str, size: int, kernel: int, stride: int) -> None:
    rng = np.random.default_rng(size)
    layer = Conv(jax.random.PRNGKey(kernel), 3, 5, kernel, stride, method)  # type: ignore[arg-type]
    x = rng.normal(size=(2, size, size + 2, 3)).astype(np.float32)
    wanted = naive(x, np.asarray(layer.weight()), np.asarray(layer.linear.bias), stride)
    found = jax.jit(lambda x: layer(x, "float32"))(jnp.asarray(x))
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


def test_patches_cut_nothing_but_what_no_kernel_reaches() -> None:
    x = jnp.arange(2 * 11 * 10).reshape(2, 11, 10, 1).astype(jnp.uint8)
    found = patches(x, 4, 2)
    assert found.shape == (2, output_size(11, 4, 2), output_size(10, 4, 2), 16)
    assert found.dtype == jnp.uint8
    window = np.asarray(x)[1, 4:8, 2:6, 0]
    assert sorted(np.asarray(found[1, 2, 1]).tolist()) == sorted(window.reshape(-1).tolist())


def nature(network, stacks: np.ndarray) -> np.ndarray:
    x = stacks.astype(np.float64).transpose(0, 2, 3, 1) / 255.0
    for layer in network.encoder.layers:
        x = np.maximum(naive(x, np.asarray(layer.weight()), np.asarray(layer.linear.bias), layer.stride), 0)
    dense, head = network.encoder.dense, network.head.linear
    x = np.maximum(x.reshape(len(x), -1) @ np.asarray(dense.weight) + np.asarray(dense.bias), 0)
    return x @ np.asarray(head.weight) + np.asarray(head.bias)


@pytest.mark.parametrize("method", ["patches", "conv"])
def test_the_whole_network_beside_loops(method: str) -> None:
    structure = ConvScores((6, 8, 8), (8, 4, 3), (4, 2, 1), 16, method=method)  # type: ignore[arg-type]
    spec = Spec(4 * 40 * 36, 3, jnp.float32(0), jnp.float32(1), True, frame=(4, 40, 36))
    network = structure.build(jax.random.PRNGKey(0), spec, heads=5)
    stacks = np.random.default_rng(0).integers(0, 256, (3, 4, 40, 36)).astype(np.uint8)
    wanted = nature(network, stacks).reshape(3, 3, 5)
    many, mean, features = jax.jit(lambda x: (network.many(x), network(x), network.features(x)))(jnp.asarray(stacks))
    np.testing.assert_allclose(many, wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mean, wanted.mean(-1), rtol=1e-4, atol=1e-5)
    assert features.shape == (3, 16)
    np.testing.assert_allclose(network.head(features), mean, rtol=1e-5)


def test_the_default_is_the_nature_network() -> None:
    spec = Spec(4 * 84 * 84, 6, jnp.float32(0), jnp.float32(1), True, frame=(4, 84, 84))
    network = jax.eval_shape(lambda key: DefaultScores().build(key, spec), jax.random.PRNGKey(0))
    shapes = [layer.linear.weight.shape for layer in network.encoder.layers]
    assert shapes == [(8 * 8 * 4, 32), (4 * 4 * 32, 64), (3 * 3 * 64, 64)]
    assert network.encoder.dense.weight.shape == (3136, 512)
    assert network.head.linear.weight.shape == (512, 6)
    assert [(c.kernel, c.stride) for c in network.encoder.layers] == [(8, 4), (4, 2), (3, 1)]


def test_members_and_precisions_agree() -> None:
    spec = Spec(4 * 20 * 20, 2, jnp.float32(0), jnp.float32(1), True, frame=(4, 20, 20))
    structure = ConvScores((4, 4), (4, 3), (2, 1), 8)
    networks = jax.jit(jax.vmap(lambda key: structure.build(key, spec)))(jax.random.split(jax.random.PRNGKey(0), 3))
    stacks = jnp.asarray(np.random.default_rng(0).integers(0, 256, (3, 5, 4, 20, 20)), jnp.uint8)
    score = jax.jit(lambda network, x: network(x))
    together = jax.jit(jax.vmap(lambda network, x: network(x)))(networks, stacks)
    for i in range(3):
        alone = jax.tree.map(lambda leaf, i=i: leaf[i], networks)
        np.testing.assert_allclose(together[i], score(alone, stacks[i]), rtol=1e-5, atol=1e-6)
    full = jax.tree.map(lambda leaf: leaf[0], networks)
    half = ImageScores(Encoder(full.encoder.layers, full.encoder.dense, "tf32"), Scores(full.head.linear, 1, "tf32"))
    exact, rounded = score(full, stacks[0]), score(half, stacks[0])
    assert rounded.dtype == jnp.float32
    np.testing.assert_allclose(rounded, exact, atol=1e-3)
    assert not np.array_equal(rounded, exact)


def test_one_default_serves_vectors_and_frames() -> None:
    vectors = Spec(3, 2, jnp.zeros(3), jnp.ones(3), True)
    assert isinstance(DefaultScores(hidden=(8,)).build(jax.random.PRNGKey(0), vectors), Standardised)
    algorithm = override(DiscreteCQL(), {"channels": "4,4", "kernels": "3,3", "strides": "1,1", "features": "8"})
    assert build(describe(algorithm)).network == algorithm.network
    assert algorithm.network.channels == (4, 4)


def test_an_encoder_by_he_keeps_the_size_of_what_passes_through_it() -> None:
    """Pixels of ±1 around zero go in; PyTorch's start loses a factor of about √6 a layer."""
    spec = Spec(4 * 84 * 84, 6, jnp.float32(0), jnp.float32(1), True, frame=(4, 84, 84))
    pixels = jnp.asarray(np.random.default_rng(0).choice([-1.0, 1.0], (2, 84, 84, 4)), jnp.float32)

    def sizes(start: Any) -> list[float]:
        network = DefaultScores(start=start).build(jax.random.PRNGKey(0), spec)
        x, found = pixels, []
        for layer in network.encoder.layers:
            x = jax.nn.relu(layer(x, "float32"))
            found.append(float(jnp.sqrt(jnp.mean(jnp.square(x)))))
        assert (start == "he") == bool((network.encoder.dense.bias == 0).all())
        assert network.head.linear.bias.any()  # the head begins as PyTorch's in both
        return found

    assert sizes("he") == pytest.approx([1.0, 1.0, 1.0], rel=0.25)
    shrunk = sizes("torch")
    assert shrunk[0] > 1.4 * shrunk[1] > 1.4 * 1.4 * shrunk[2]
    assert shrunk[0] < 0.5


def test_what_cannot_be_built_is_said() -> None:
    with pytest.raises(SappError, match="start 'large' is unknown: use torch or he"):
        DefaultScores(start="large")  # type: ignore[arg-type]
    small = Spec(4 * 20 * 20, 2, jnp.float32(0), jnp.float32(1), True, frame=(4, 20, 20))
    with pytest.raises(SappError, match=r"20 by 20 are too small for kernels \[8, 4, 3\]"):
        ConvScores().build(jax.random.PRNGKey(0), small)
    with pytest.raises(SappError, match="one layer each"):
        ConvScores((4,), (3, 3), (1,)).build(jax.random.PRNGKey(0), small)
    with pytest.raises(SappError, match="vectors, not frames; use MLPScores"):
        ConvScores().build(jax.random.PRNGKey(0), Spec(3, 2, jnp.zeros(3), jnp.ones(3), True))
