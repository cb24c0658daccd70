"""The log-sum-exp by tiles: against differentiation and against ``sapp.kernels.conservative``."""

from __future__ import annotations

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from critic_problems import by, distance, plain, problem

from sapp.algorithms.cql import critic_gradient, fused_critic_gradient
from sapp.kernels import conservative, conservative_tiles

TILES = partial(fused_critic_gradient, conservative_tiles.log_sum_exp_gradient)


@pytest.mark.parametrize(
    ("hidden", "samples", "actions"),
    [((64, 64), 10, 3), ((64, 128, 64), 10, 3), ((256, 64, 64, 128), 10, 11), ((64, 64), 3, 14), ((64, 64), 21, 2)],
)
def test_equals_the_plain_gradient_in_float32(hidden: tuple[int, ...], samples: int, actions: int) -> None:
    """Two, three and four hidden layers; x̃ of 16 and of 32 columns; one, two and four states to a tile or more."""
    arguments = problem(hidden, samples, actions)
    values, gradient = plain(*arguments)
    found = by(conservative_tiles, *arguments)
    np.testing.assert_allclose(found.log_sum_exp, values, rtol=1e-5, atol=1e-5)
    for mine, theirs in zip(jax.tree.leaves(found.layers), jax.tree.leaves(gradient), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-5 * float(jnp.max(jnp.abs(theirs))))


@pytest.mark.parametrize("hidden", [(64, 64), (64, 128, 64)])
def test_operands_of_eight_bits_give_what_the_other_kernels_give(hidden: tuple[int, ...]) -> None:
    """Both round the same numbers but two: here a layer's sums meet their bias before they are rounded, there after."""
    arguments = problem(hidden)
    _, truth = plain(*arguments)
    theirs = by(conservative, *arguments, operands=jnp.bfloat16)
    mine = by(conservative_tiles, *arguments, operands=jnp.bfloat16)
    assert distance(mine.layers, theirs.layers) < 0.02
    errors = [distance(found.layers, truth.mlp) for found in (mine, theirs)]
    assert 0.0 < errors[0] < 1.1 * errors[1]
    np.testing.assert_allclose(mine.log_sum_exp, theirs.log_sum_exp, atol=5e-3)


@pytest.mark.parametrize("value", [350.0, 1_400.0])
def test_large_values_keep_their_bits(value: float) -> None:
    def sized(precision: str):
        critics, batch, target, *rest = problem((64, 64), precision=precision)
        layers = critics.mlp.layers
        large = eqx.tree_at(lambda c: c.mlp.layers[-1].bias, critics, jnp.full_like(layers[-1].bias, value))
        return large, batch, value + target, *rest

    exactly, truth = critic_gradient(*sized("float32"))
    found, gradient = TILES(*sized("mixed"))
    assert float(found[1]["critic/td"]) == pytest.approx(float(exactly[1]["critic/td"]), rel=2e-3)
    np.testing.assert_allclose(gradient.mlp.layers[-1].bias, truth.mlp.layers[-1].bias, rtol=0, atol=2e-3)


def test_members_of_a_population_do_not_mix() -> None:
    members = [problem((64, 64, 64), seed=seed) for seed in range(3)]
    one = partial(by, conservative_tiles)
    together = jax.vmap(one)(*jax.tree.map(lambda *x: jnp.stack(x), *members))
    for number, member in enumerate(members):
        for mine, theirs in zip(jax.tree.leaves(together), jax.tree.leaves(one(*member)), strict=True):
            np.testing.assert_allclose(mine[number], theirs, rtol=1e-5, atol=1e-6)


def test_a_layer_too_wide_is_named() -> None:
    assert conservative_tiles.misfit((256, 256)) is None
    assert conservative_tiles.misfit((256, 512)) == "hidden layers (256, 512): it takes up to 256 units"
