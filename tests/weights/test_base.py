"""What all estimators of state weights share."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from sapp.weights.base import predicted_reward


def test_the_normalised_reward_does_not_know_the_scale_of_the_ratios() -> None:
    ratio, reward = jnp.asarray([0.5, 1.5, 4.0]), jnp.asarray([1.0, -1.0, 2.0])
    for scale in (1.0, 0.1, 20.0):
        found = predicted_reward(scale * ratio, reward)
        assert float(found["ratio/reward"]) == pytest.approx(scale * 7.0 / 3.0)
        assert float(found["ratio/reward_normalised"]) == pytest.approx(7.0 / 6.0)
