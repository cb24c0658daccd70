"""What is the tiles' own; that they compute what ``conservative`` computes is tested in test_conservative.py."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from critic_problems import by, distance, plain, problem

from sapp.kernels import conservative, conservative_tiles


def test_wide_layers_are_summed_in_parts() -> None:
    """256 units: four chunks of a product's inner axis, and two programs for the first layer's gradient."""
    arguments = problem((256, 64, 64, 128), 10, 11)
    values, gradient = plain(*arguments)
    found = by(conservative_tiles, *arguments)
    np.testing.assert_allclose(found.log_sum_exp, values, rtol=1e-5, atol=1e-5)
    for mine, theirs in zip(jax.tree.leaves(found.layers), jax.tree.leaves(gradient), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-5 * float(jnp.max(jnp.abs(theirs))))


@pytest.mark.parametrize("hidden", [(64, 64), (64, 128, 64)])
def test_bfloat16_operands_give_what_the_other_kernels_give(hidden: tuple[int, ...]) -> None:
    """As near to float32 or nearer: sums are rounded after bias and mask, there before."""
    arguments = problem(hidden)
    _, truth = plain(*arguments)
    theirs = by(conservative, *arguments, operands=jnp.bfloat16)
    mine = by(conservative_tiles, *arguments, operands=jnp.bfloat16)
    assert distance(mine.layers, theirs.layers) < 0.02
    errors = [distance(found.layers, truth.mlp) for found in (mine, theirs)]
    assert 0.0 < errors[0] < 1.1 * errors[1]
    np.testing.assert_allclose(mine.log_sum_exp, theirs.log_sum_exp, atol=5e-3)


def test_a_layer_too_wide_is_named_and_the_rest_is_as_for_the_other_kernels() -> None:
    assert conservative_tiles.misfit((256, 256), 6, 30, 256) is None
    wide = conservative_tiles.misfit((256, 512), 6, 30, 256)
    assert wide == "hidden layers (256, 512): it takes up to 256 units"
    assert conservative.misfit((256, 512), 6, 30, 256) is None
    narrow = conservative_tiles.misfit((48, 48), 6, 30, 256)
    assert narrow == conservative.misfit((48, 48), 6, 30, 256) is not None
