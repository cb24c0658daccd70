"""Perceptrons by split float16 operands: as exact as float32's own against float64, at any scale."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from sapp.algorithms import CQL
from sapp.kernels import split_fp16 as module
from sapp.kernels.split_fp16 import Layers, perceptron, power_of_two, split
from sapp.networks import MLP, mlp

ROWS = 96


def problem(
    hidden: tuple[int, ...], scale: float = 1.0, spread: float = 0.0, rows: int = ROWS, inputs: int = 23
) -> tuple[MLP, Layers, np.ndarray]:
    network = MLP(jax.random.PRNGKey(0), inputs, hidden, 1)
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(rows, inputs)) * scale * np.exp(spread * rng.normal(size=(rows, 1)))).astype(np.float32)
    return network, tuple((layer.weight, layer.bias) for layer in network.layers), x


def activations(wide: list[tuple[np.ndarray, np.ndarray]], x: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    inputs, pres = [x.astype(np.float64)], []
    for w, b in wide:
        pres.append(inputs[-1] @ w + b)
        inputs.append(np.maximum(pres[-1], 0.0))
    return inputs, pres


def clear(layers: Layers, x: np.ndarray) -> np.ndarray:
    """Rows [R, 1] none of whose hidden units is so near to 0 that rounding could switch it."""
    wide = [(np.asarray(w, np.float64), np.asarray(b, np.float64)) for w, b in layers]
    hidden = activations(wide, x)[1][:-1]
    return np.all([(np.abs(pre) > 1e-5 * np.abs(pre).max()).all(1) for pre in hidden], axis=0)[:, None]


def by_hand(layers: Layers, x: np.ndarray, dy: np.ndarray) -> list[np.ndarray]:
    """Values and gradients in float64: the network's output, then each layer's weight and bias."""
    wide = [(np.asarray(w, np.float64), np.asarray(b, np.float64)) for w, b in layers]
    inputs, pres = activations(wide, x)
    d, found = dy.astype(np.float64), []
    for number in reversed(range(len(wide))):
        found.append((inputs[number].T @ d, d.sum(0)))
        if number:
            d = (d @ wide[number][0].T) * (pres[number - 1] > 0)
    return [pres[-1], *(each for pair in reversed(found) for each in pair)]


def computed(
    function: Callable[[Layers, jax.Array], jax.Array], layers: Layers, x: np.ndarray, dy: np.ndarray
) -> list[jax.Array]:
    y, pull = jax.vjp(lambda layers: function(layers, jnp.asarray(x)), layers)
    return [y, *(each for pair in pull(jnp.asarray(dy))[0] for each in pair)]


def plain(layers: Layers, x: jax.Array) -> jax.Array:
    for w, b in layers[:-1]:
        x = jax.nn.relu(jnp.matmul(x, w, precision="highest") + b)
    return jnp.matmul(x, layers[-1][0], precision="highest") + layers[-1][1]


def errors(found: list[jax.Array], true: list[np.ndarray]) -> list[float]:
    return [
        float(np.abs(np.asarray(a, np.float64) - b).max() / np.abs(b).max()) for a, b in zip(found, true, strict=True)
    ]


@pytest.mark.parametrize(
    ("hidden", "rows", "inputs"), [((64, 128), 128, 23), ((192, 64, 64), 50, 40), ((64, 64, 64, 64), 96, 7)]
)
@pytest.mark.parametrize(("scale", "spread"), [(1.0, 0.0), (1.0, 3.0), (1e-12, 0.0), (1e9, 0.0)])
def test_values_and_gradients_are_as_exact_as_float32s_own(
    hidden: tuple[int, ...], rows: int, inputs: int, scale: float, spread: float
) -> None:
    _, layers, x = problem(hidden, scale, spread, rows, inputs)
    dy = (np.random.default_rng(1).normal(size=(rows, 1)) * 1e-5).astype(np.float32)
    dy[::3] *= 1e-2  # as the initial states' share of DualDICE's gradient is
    dy *= clear(layers, x)
    true = by_hand(layers, x, dy)
    ours, theirs = (errors(computed(jax.jit(each), layers, x, dy), true) for each in (perceptron, plain))
    assert max(ours) < 4e-6
    assert max(ours) < 2.5 * max(theirs)


def test_large_weights_are_in_range() -> None:
    _, layers, x = problem((64, 64, 64))
    large = tuple((w * 2.0**14, b) for w, b in layers)
    dy = clear(large, x).astype(np.float32)
    assert max(errors(computed(perceptron, large, x, dy), by_hand(large, x, dy))) < 2e-6


@pytest.mark.parametrize("name", ["split", "_two_parts"])
def test_half_precision_alone_would_be_far_worse(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    _, layers, x = problem((64, 64))
    dy = np.ones((ROWS, 1), np.float32)
    true = by_hand(layers, x, dy)
    good = max(errors(computed(perceptron, layers, x, dy), true))
    monkeypatch.setattr(module, name, {"split": _split_without_rests, "_two_parts": _no_rest}[name])
    assert max(errors(computed(perceptron, layers, x, dy), true)) > 100 * good


def _split_without_rests(x: jax.Array, scale: jax.Array, order: module.Thirds, axis: int) -> jax.Array:
    first = jnp.asarray([part == "1" for part in order], jnp.float16)
    return split(x, scale, order, axis) * (first[:, None, None] if axis == 0 else first[None, :, None])


def _no_rest(scaled: jax.Array) -> tuple[jax.Array, jax.Array]:
    first = scaled.astype(jnp.float16)
    return first, jnp.zeros_like(first)


def test_members_of_a_population_have_scales_of_their_own() -> None:
    _, layers, x = problem((64, 64))
    alone = [perceptron(layers, factor * x) for factor in (1.0, 2.0**40)]
    both = jax.vmap(perceptron, in_axes=(None, 0))(layers, jnp.stack([x, 2.0**40 * x]))
    for one, other in zip(both, alone, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6 * float(jnp.abs(other).max()))


def test_the_gradient_of_the_inputs() -> None:
    _, layers, x = problem((64, 64))
    ours, theirs = (
        jax.grad(lambda x, f=f: jnp.sum(jnp.sin(f(layers, x))))(jnp.asarray(x)) for f in (perceptron, plain)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)


def test_zeros_give_the_biases_and_what_is_not_finite_stays_so() -> None:
    network, layers, x = problem((64, 64))
    np.testing.assert_allclose(perceptron(layers, jnp.zeros_like(x)), network(jnp.zeros_like(x)), rtol=1e-6)
    nothing = tuple((jnp.zeros_like(w), jnp.zeros_like(b)) for w, b in layers)
    y, pull = jax.vjp(perceptron, nothing, jnp.asarray(x))
    np.testing.assert_array_equal(y, jnp.zeros((ROWS, 1)))
    assert all(bool(jnp.all(jnp.isfinite(each))) for each in jax.tree.leaves(pull(jnp.ones_like(y))))
    for bad in (np.inf, np.nan):
        assert not bool(jnp.all(jnp.isfinite(perceptron(layers, jnp.asarray(x).at[0, 0].set(bad)))))


def test_the_scale_is_a_power_of_two_that_brings_the_bound_below_two_to_the_thirteenth() -> None:
    for bound in (1e-20, 3e-7, 0.9, 1.0, 1.5, 70_000.0, 1e30):
        scale = float(power_of_two(jnp.float32(bound)))
        assert np.log2(scale) == round(np.log2(scale))
        assert 2**12 <= bound * scale < 2**13
    for bound in (0.0, 1e-45, float(np.finfo(np.float32).max), np.inf):
        scale = float(power_of_two(jnp.float32(bound)))
        assert 0.0 < scale < np.inf
        assert 0.0 < 1.0 / scale < np.inf


def test_the_parts_add_up_to_the_number_within_two_to_the_minus_22() -> None:
    x = jnp.asarray(np.random.default_rng(1).normal(size=(50, 8)), jnp.float32)
    scale = power_of_two(jnp.max(jnp.abs(x)))
    parts = split(x, scale, "121", axis=1)
    assert parts.dtype == jnp.float16
    assert parts.shape == (50, 3, 8)
    np.testing.assert_array_equal(parts[:, 0], parts[:, 2])
    whole = np.asarray(parts[:, 0], np.float64) + np.asarray(parts[:, 1], np.float64)
    np.testing.assert_allclose(whole, np.asarray(x, np.float64) * float(scale), rtol=2**-21, atol=2**-24)
    assert np.any(np.asarray(parts[:, 1]) != 0)


def test_a_network_is_evaluated_by_split_fp16_on_a_gpu_and_plainly_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    plain_network, layers, x = problem((64, 64))
    network = MLP(jax.random.PRNGKey(0), 23, (64, 64), 1, split_fp16=True)
    grid = jnp.asarray(x).reshape(8, 12, 23)
    np.testing.assert_array_equal(network(grid), plain_network(grid))
    monkeypatch.setattr(mlp, "on_cuda", lambda: True)
    np.testing.assert_array_equal(network(grid), perceptron(layers, jnp.asarray(x)).reshape(8, 12, 1))
    np.testing.assert_array_equal(plain_network(grid), plain(layers, grid))


def test_only_wide_float32_networks_with_a_layer_between_hidden_ones_use_split_fp16() -> None:
    key = jax.random.PRNGKey(0)
    assert MLP(key, 23, (64, 64), 1, split_fp16=True).split_fp16
    assert not MLP(key, 23, (64, 64), 1, "tf32", split_fp16=True).split_fp16
    assert not MLP(key, 23, (256,), 1, split_fp16=True).split_fp16
    assert not MLP(key, 23, (256, 32), 1, split_fp16=True).split_fp16
    assert not MLP(key, 23, (256, 100), 1, split_fp16=True).split_fp16
    assert not MLP(key, 23, (256, 256), 2, split_fp16=True).split_fp16
    assert not MLP(key, 512, (256, 256), 1, split_fp16=True).split_fp16
    assert not MLP(key, 23, (256, 256), 1).split_fp16


def test_the_kernels_can_be_made_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their translation needs no GPU, only their compilation does."""
    monkeypatch.setattr(module, "on_cuda", lambda: True)
    layers = tuple((jnp.zeros((3, i, o)), jnp.zeros((3, o))) for i, o in ((40, 256), (256, 512), (512, 64), (64, 1)))
    gradient = jax.jit(jax.vmap(jax.grad(lambda layers, x: jnp.sum(perceptron(layers, x)))))
    text = gradient.trace(layers, jnp.zeros((3, 700, 40))).lower(lowering_platforms=("cuda",)).as_text()
    for name in ("first_hidden", "activate", "last_hidden", "between", "back_to_inputs", "split_weight"):
        assert f'name = "{name}"' in text


def test_dualdice_learns_the_same_by_split_fp16(monkeypatch: pytest.MonkeyPatch) -> None:
    from sapp.envs.point import behaviour_dataset
    from sapp.runs.members import Member
    from sapp.runs.phases import Phase
    from sapp.training.device_data import DeviceData, spec_of
    from sapp.training.population import Population
    from sapp.weights import DualDICE

    data = behaviour_dataset(500)
    algorithm = CQL(hidden=(16, 16), weights=DualDICE(hidden=(64, 64)), batch_size=32)

    def learn() -> tuple[jax.Array, ...]:
        jax.clear_caches()
        population = Population([Member("a", algorithm, 0, 0)], DeviceData.of([data]), [spec_of(data)])
        learner = population.init()
        phase = Phase("ratio", 20, base=False)
        learner, _ = population.run(learner, population.empty_sums(phase), phase, 20)
        return tuple(jax.tree.leaves((learner.ratio.nu, learner.ratio.zeta, learner.ratio.ratio)))

    before = learn()
    monkeypatch.setattr(mlp, "on_cuda", lambda: True)
    after = learn()
    assert any(bool(jnp.any(one != other)) for one, other in zip(before, after, strict=True))
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-4)
