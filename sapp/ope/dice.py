"""DualDICE as an estimator: occupancy ratios ζ = dᵖ/dᴰ of a fixed policy, and the value E_D[ζ·r] they give."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from sapp.core.spec import Batch
from sapp.data import Dataset
from sapp.ope.fqe import ValueScale, action_values, policy_values, returns_to_go
from sapp.weights.dualdice import saddle_value

ADAM = optax.scale_by_adam(b1=0.0, b2=0.99)
"""No momentum: it makes the saddle oscillate."""


class RatioScale(eqx.Module):
    """Units in which ν and ζ are learned: those of the solution for π = β.

    ``mass`` is (1−γ)·E[Σ γᵗ] over the logged episodes, what the discounted occupancy of the behaviour has left after
    terminals: 1 where nothing ends, 0.09 where episodes end after nine steps and γ = 0.99. It is the mean of ζ then,
    and ν is mass × discounted steps to go.
    """

    mass: Array
    nu: ValueScale

    @classmethod
    def of(cls, data: Dataset, discount: float) -> RatioScale:
        """The scale of ν that a dataset's discounted steps to go give."""
        to_go = returns_to_go(data, np.ones(data.size), discount)
        mass = (1.0 - discount) * float(to_go[data.episode_starts].mean())
        return cls(jnp.float32(mass), ValueScale.around(mass * to_go))


def ratios(zeta: Any, scale: RatioScale, observation: Array, action: Array) -> Array:
    """ζ(s,a) [B] ≥ 0: the square of the network's output, in its units."""
    return scale.mass * jnp.square(action_values(zeta, observation, action))


def saddle(
    networks: tuple[Any, Any], scale: RatioScale, batch: Batch, next_answer: Array, start_answer: Array, discount: Array
) -> tuple[Array, tuple[Array, Array]]:
    """DualDICE's J(ν, ζ) (see ``sapp.weights.dualdice``) for a policy's answers at s' and at the starts; ν, ζ at (s,a).

    ``networks`` are those of ν and ζ. ν starts at the solution for π = β with nothing known of the state, and is
    learned in units of its own: from zero, Adam would spend most of its steps on a constant of the order of 1/(1−γ).
    """
    nu, zeta = networks
    value = scale.nu.mean + scale.nu.std * action_values(nu, batch.observation, batch.action)
    next_value = scale.nu.mean + scale.nu.std * policy_values(nu, batch.next_observation, next_answer)
    initial = scale.nu.mean + scale.nu.std * policy_values(nu, batch.initial_observation, start_answer)
    ratio = ratios(zeta, scale, batch.observation, batch.action)
    j = saddle_value(value, next_value, initial, ratio, batch.terminal, jnp.float32(0.0), discount)
    return j, (value, ratio)


def saddle_gradient(
    networks: tuple[Any, Any], scale: RatioScale, batch: Batch, next_answer: Array, start_answer: Array, discount: Array
) -> tuple[Array, tuple[Any, Any], tuple[Array, Array]]:
    """J, its gradient with ζ's turned round (ν goes down, ζ up), and ν, ζ at the logged pairs."""
    (j, found), (nu, zeta) = jax.value_and_grad(saddle, has_aux=True)(
        networks, scale, batch, next_answer, start_answer, discount
    )
    return j, (nu, jax.tree.map(jnp.negative, zeta)), found
