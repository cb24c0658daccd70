"""β̂, a tanh-squashed Gaussian over logged actions, and the box it keeps a policy's actions in."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from sapp.core.precision import Precision
from sapp.networks.gaussian import TanhGaussian
from sapp.networks.mlp import MLP

LOG_STD_RANGE = (-4.0, 1.5)
"""Bounds of log σ: a logged action repeated exactly must not drive the likelihood to infinity."""
LOGGED_LIMIT = 0.999
"""Logged actions beyond ± this count as this: at ±1, where clipped logs have many, the pre-image under tanh is
infinite, and close to it so far out that it would stretch σ."""


class TanhBehaviour(eqx.Module):
    """β̂(a|s), the distribution of tanh(u), u ~ N(μ(s), diag σ(s)²): what most policies that write logs are.

    Particles follow it, so its shape counts. A Gaussian over the actions themselves, cut off at ±1, moves their mean
    inwards wherever logs lie close to a bound: on HalfCheetah's medium policy particles then run slower than the
    behaviour's own in the same model, and the ratio ranks states less well.
    """

    mlp: MLP

    def __init__(
        self, key: Array, state_size: int, action_size: int, hidden: Sequence[int], precision: Precision = "float32"
    ) -> None:
        self.mlp = MLP(key, state_size, hidden, 2 * action_size, precision)

    def __call__(self, state: Array) -> TanhGaussian:
        """The distribution over actions at states [..., S]."""
        mean, log_std = jnp.split(self.mlp(state), 2, axis=-1)
        return TanhGaussian(mean, jnp.clip(log_std, *LOG_STD_RANGE))

    def loss(self, state: Array, action: Array) -> Array:
        """−E[log β̂(a|s)] of logged actions."""
        return -jnp.mean(self(state).log_prob(jnp.clip(action, -LOGGED_LIMIT, LOGGED_LIMIT)))


def box(distribution: TanhGaussian, action: Array, width: Array | float) -> tuple[Array, Array]:
    """Actions [B, A] moved to the nearest point of tanh(μ ± ``width``·σ), and the share of dimensions moved.

    Inside the box a one-step model knows what happens; outside it would be asked about actions nobody took. The share
    says how far the policy has left the data: 5 % for the behaviour itself at two standard deviations.
    """
    reach = width * jnp.exp(distribution.log_std)
    low, high = jnp.tanh(distribution.mean - reach), jnp.tanh(distribution.mean + reach)
    return jnp.clip(action, low, high), jnp.mean((action < low) | (action > high), dtype=jnp.float32)
