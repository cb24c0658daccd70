"""The fused critic gradient against the plain one: the same values, the same gradients, the same updates."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from critic_problems import A, B, S, by, distance, plain, problem

from sapp import CQL, SappError
from sapp.algorithms.cql import critic_gradient, fused_critic_gradient
from sapp.core.spec import Spec
from sapp.kernels import conservative, conservative_tiles

KERNELS = pytest.mark.parametrize("kernels", [conservative, conservative_tiles], ids=["fused", "tiles"])
"""Both ways to compute the same."""
FUSED, TILES = (
    partial(fused_critic_gradient, module.log_sum_exp_gradient) for module in (conservative, conservative_tiles)
)


@KERNELS
@pytest.mark.parametrize(
    ("hidden", "samples", "actions"),
    [((64, 64), 10, 3), ((64, 128, 64), 10, 3), ((64, 64, 64, 64), 10, 6), ((64, 64), 3, 14), ((64, 64), 21, 2)],
)
def test_equals_the_plain_gradient_in_float32(
    hidden: tuple[int, ...], samples: int, actions: int, kernels: ModuleType
) -> None:
    """Two to four hidden layers; x̃ of 16 and of 32 columns; tiles of two, four and eight states."""
    arguments = problem(hidden, samples, actions)
    values, gradient = plain(*arguments)
    found = by(kernels, *arguments)
    np.testing.assert_allclose(found.log_sum_exp, values, rtol=1e-5, atol=1e-5)
    for mine, theirs in zip(jax.tree.leaves(found.layers), jax.tree.leaves(gradient), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-5 * float(jnp.max(jnp.abs(theirs))))


@pytest.mark.parametrize("hidden", [(64, 64), (128, 128, 128)])
def test_the_kernel_is_the_program_for_every_machine(hidden: tuple[int, ...]) -> None:
    """Precision mixed by the kernel and as a compiler makes it: as near to float32, and nearer to one another."""
    (exact_loss, _), truth = critic_gradient(*problem(hidden))
    arguments = problem(hidden, precision="mixed")
    (plain_loss, plain_metrics), by_compiler = critic_gradient(*arguments)
    (loss, metrics), fused = FUSED(*arguments)
    assert 0.0 < distance(fused, truth) < 1.5 * distance(by_compiler, truth) < 0.15
    assert abs(float(loss - exact_loss)) < 1.5 * abs(float(plain_loss - exact_loss)) + 2e-3
    for name, value in plain_metrics.items():
        np.testing.assert_allclose(metrics[name], value, rtol=0.02, atol=5e-3, err_msg=name)


@pytest.mark.parametrize("value", [350.0, 1_400.0])
@pytest.mark.parametrize("gradient_of", [critic_gradient, FUSED, TILES])
def test_large_values_and_their_errors_keep_their_bits(value: float, gradient_of: object) -> None:
    """The logged action's value, its TD error and their gradient are those of float32 to a part in a thousand, at sizes
    where bfloat16 has steps of two and of eight."""

    def sized(precision: str):
        critics, batch, target, *rest = problem((64, 64), precision=precision)
        critics = eqx.tree_at(lambda c: c.mlp.layers[-1].bias, critics, jnp.full((2, 1), value))
        return critics, batch, value + target, *rest

    exactly, _ = critic_gradient(*sized("float32"))
    found, gradient = gradient_of(*sized("mixed"))  # type: ignore[operator]
    assert float(found[1]["critic/value"]) == pytest.approx(float(exactly[1]["critic/value"]), abs=1e-3)
    assert float(found[1]["critic/td"]) == pytest.approx(float(exactly[1]["critic/td"]), rel=2e-3)
    # the last bias takes part in every value alike: its gradient is the TD error's alone
    (_, _), truth = critic_gradient(*sized("float32"))
    assert np.allclose(gradient.mlp.layers[-1].bias, truth.mlp.layers[-1].bias, rtol=0, atol=2e-3)


@pytest.mark.parametrize("gradient_of", [FUSED, TILES], ids=["fused", "tiles"])
def test_a_gradient_of_any_size_survives(gradient_of: Callable[..., Any]) -> None:
    """Outlier units, as trained critics have them, and values of a thousand: nothing of the TD gradient is lost."""
    for factor in (1.0, 30.0):

        def sized(precision: str, factor: float = factor):
            critics, batch, target, *rest = problem((64, 64, 64), precision=precision)
            layers = critics.mlp.layers
            outliers = layers[1].weight.at[:, :, 0].mul(factor).at[:, 0, :].mul(factor)
            return eqx.tree_at(lambda c: c.mlp.layers[1].weight, critics, outliers), batch, target, *rest

        (_, _), truth = critic_gradient(*sized("float32"))
        (_, _), fused = gradient_of(*sized("mixed"))
        assert distance(fused, truth) < 0.1


@KERNELS
def test_members_of_a_population_do_not_mix(kernels: ModuleType) -> None:
    """Under vmap each member gets its own gradient."""
    members = [problem((64, 64), seed=seed) for seed in range(3)]
    together = jax.vmap(partial(by, kernels))(*jax.tree.map(lambda *x: jnp.stack(x), *members))
    for number, member in enumerate(members):
        alone = by(kernels, *member)
        for mine, theirs in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(mine[number], theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("fused", ["fused", "tiles"])
def test_an_update_with_a_kernel_is_an_update(fused: str) -> None:
    """The whole of CQL's step, fused against plain."""
    _, batch, *_ = problem((64, 64))
    spec = Spec(S, A, jnp.zeros(S), jnp.ones(S))
    states = {}
    for kernel in ("xla", fused):
        algorithm = CQL(hidden=(64, 64), batch_size=B, precision="mixed", kernel=kernel)
        state = algorithm.init(jax.random.PRNGKey(0), spec)
        states[kernel], _ = algorithm.update(state, batch, jnp.ones(B), jax.random.PRNGKey(1))
    plain, found = (
        jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(state.critic_optimiser.mu)])
        for state in states.values()
    )
    # a unit on its ReLU's edge may fall on either side of it
    assert float(jnp.linalg.norm(found - plain)) < 0.01 * float(jnp.linalg.norm(plain))
    np.testing.assert_array_equal(states[fused].log_temperature, states["xla"].log_temperature)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kernel": "fast"}, "kernel 'fast' is unknown"),
        ({"kernel": "fused", "precision": "tf32"}, "computes in precision mixed"),
        ({"kernel": "tiles", "precision": "tf32"}, "kernel tiles computes in precision mixed"),
        ({"kernel": "tiles", "precision": "mixed", "hidden": (512, 64)}, "it takes up to 256 units"),
        ({"kernel": "tiles", "precision": "mixed", "hidden": (48, 48)}, "kernel tiles cannot take hidden layers"),
        ({"kernel": "fused", "precision": "mixed", "hidden": (48, 48)}, "hidden layers (48, 48)"),
        ({"kernel": "fused", "precision": "mixed", "hidden": (64,)}, "hidden layers (64,)"),
        ({"kernel": "fused", "precision": "mixed", "hidden": (64, 64), "action_samples": 50}, "150 proposals"),
        ({"kernel": "fused", "precision": "mixed", "hidden": (64, 64), "action_samples": 1}, "a batch of 8"),
    ],
)
def test_what_it_cannot_take_is_refused_by_name(settings: dict, words: str) -> None:
    _, batch, *_ = problem((64, 64))

    def update() -> None:
        algorithm = CQL(batch_size=B, **settings)
        state = algorithm.init(jax.random.PRNGKey(0), Spec(S, A, jnp.zeros(S), jnp.ones(S)))
        algorithm.update(state, batch, jnp.ones(B), jax.random.PRNGKey(1))

    with pytest.raises(SappError) as error:
        update()
    assert words in str(error.value)


def test_auto_is_the_plain_program_on_a_cpu() -> None:
    _, batch, *_ = problem((64, 64))
    assert CQL(precision="mixed")._gradient_by(batch) is critic_gradient
    assert CQL(precision="float32")._gradient_by(batch) is critic_gradient
