"""Operations on pytrees, by hand."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from sapp.core.pytrees import all_finite, polyak, select, shapes, usable

ONE, TWO = {"a": jnp.zeros(2), "b": (jnp.ones((1, 3)),)}, {"a": jnp.full(2, 4.0), "b": (jnp.full((1, 3), 5.0),)}


def test_targets_move_by_their_share() -> None:
    found = polyak(ONE, TWO, 0.25)
    np.testing.assert_allclose(found["a"], [1.0, 1.0])
    np.testing.assert_allclose(found["b"][0], [[2.0, 2.0, 2.0]])


def test_one_tree_or_the_other() -> None:
    for yes, expected in ((True, TWO), (False, ONE)):
        np.testing.assert_array_equal(select(jnp.bool_(yes), TWO, ONE)["b"][0], expected["b"][0])


def test_numbers_without_a_finite_square_count_as_zero() -> None:
    gradient = jnp.asarray([1.0, jnp.nan, -jnp.inf, 1e30, -2.0])
    np.testing.assert_array_equal(usable({"g": gradient})["g"], [1.0, 0.0, 0.0, 0.0, -2.0])


@pytest.mark.parametrize(("value", "finite"), [(1.0, True), (np.nan, False), (np.inf, False)])
def test_one_number_that_is_not_finite_is_found(value: float, finite: bool) -> None:
    assert bool(all_finite({"a": jnp.ones(3), "b": jnp.asarray([0.0, value])})) is finite


def test_shapes_are_told_by_path() -> None:
    assert shapes(ONE) == {"['a']": (2,), "['b'][0]": (1, 3)}
