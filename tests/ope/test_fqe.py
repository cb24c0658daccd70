"""FQE's targets stay within what rewards, ends and discount allow."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from sapp.core.spec import Batch
from sapp.data import Dataset
from sapp.ope.fqe import ValueScale, bellman_loss, value_bounds


@pytest.mark.parametrize(
    ("rewards", "terminals", "bounds"),
    [
        ((1.0, 1.0), True, (0.0, 10.0)),  # CartPole: at best alive for ever, at worst ended
        ((1.0, 1.0), False, (10.0, 10.0)),
        ((-2.0, -1.0), True, (-20.0, 0.0)),
        ((-2.0, 3.0), False, (-20.0, 30.0)),
    ],
)
def test_bounds_of_values(rewards: tuple[float, float], terminals: bool, bounds: tuple[float, float]) -> None:
    assert value_bounds(rewards, terminals, 0.9) == pytest.approx(bounds)


def test_a_target_network_beyond_all_bounds_does_no_harm() -> None:
    data = Dataset.from_arrays(np.arange(20.0), np.zeros((20, 1)), np.ones(20), np.arange(20) % 5 == 4)
    scale = ValueScale.of(data, 0.9)
    assert (float(scale.low), float(scale.high)) == (pytest.approx(-0.2), pytest.approx(10.2))
    state = jnp.zeros((3, 1))
    batch = Batch(state, state, jnp.ones(3), state, jnp.array([0.0, 0.0, 1.0]), state)
    zero, huge = (lambda o, a, v=value: jnp.full(a.shape[:-1], v) for value in (0.0, 1e6))
    _, difference = bellman_loss(zero, huge, batch, jnp.zeros((3, 1, 1)), scale, jnp.float32(0.9))
    wanted = np.array([1 + 0.9 * 10.2, 1 + 0.9 * 10.2, 1.0])
    np.testing.assert_allclose(np.asarray(difference) + float(scale.mean), wanted, rtol=1e-4)
