"""How much of a policy's mass lies where the logs have no actions."""

from __future__ import annotations

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from sapp.core.pytrees import all_finite, select
from sapp.data import Dataset
from sapp.networks import MLP, BehaviourDensity
from sapp.networks.categorical import CategoricalActor
from sapp.ope.estimators import standardisation
from sapp.ope.targets import Targets

RARE = 0.01
"""Logged actions rarer than this share of them mark the edge of the data."""
ADAM = optax.scale_by_adam()


class Behaviour(eqx.Module):
    """β̂(a|s), fitted to the logs by maximum likelihood, and the statistics that standardise states for it."""

    density: Any
    mean: Array
    std: Array

    def log_prob(self, observation: Array, action: Array) -> Array:
        """log β̂(a|s) [B]."""
        return self.density.log_prob((observation - self.mean) / self.std, action)


def fit_behaviour(
    data: Dataset, steps: int = 3_000, hidden: tuple[int, ...] = (64, 64), batch_size: int = 256, seed: int = 0
) -> Behaviour:
    """Fit β̂: a mixture of tanh-Gaussians per dimension, or a softmax over discrete actions."""
    key, start = jax.random.split(jax.random.PRNGKey(seed))
    density: Any
    if data.discrete:
        density = CategoricalActor(MLP(start, data.observation_size, hidden, data.action_size, scale=1e-2, bias=0.0))
    else:
        density = BehaviourDensity(start, data.observation_size, data.action_size, hidden)
    mean, std = (jnp.asarray(each) for each in standardisation(data))
    observation, action = jnp.asarray(data.observation), jnp.asarray(data.scaled_action())
    return _fit(Behaviour(density, mean, std), observation, action, key, jnp.int32(steps), batch_size)


@partial(jax.jit, static_argnums=5)
def _fit(
    behaviour: Behaviour, observation: Array, action: Array, key: Array, steps: Array, batch_size: int
) -> Behaviour:
    def loss(density: Any, rows: Array) -> Array:
        standard = (observation[rows] - behaviour.mean) / behaviour.std
        return -jnp.mean(density.log_prob(standard, action[rows]))

    def body(step: Array, carry: Any) -> Any:
        density, optimiser = carry
        rows = jax.random.randint(jax.random.fold_in(key, step), (batch_size,), 0, observation.shape[0])
        gradient = jax.grad(loss)(density, rows)
        direction, new = ADAM.update(gradient, optimiser)
        rate = 1e-3 * jnp.clip(1.0 - step / steps, 0.05, 1.0)
        stepped = jax.tree.map(lambda p, d: p - rate * d, density, direction)
        return select(all_finite(gradient), (stepped, new), carry)

    density, _ = jax.lax.fori_loop(0, steps, body, (behaviour.density, ADAM.init(behaviour.density)))
    return Behaviour(density, behaviour.mean, behaviour.std)


def off_data(behaviour: Behaviour, data: Dataset, targets: Targets) -> np.ndarray:
    """Share of each policy's actions, at logged states, that are rarer than all but ``RARE`` of the logged ones [P].

    An action is off the data where log β̂(a|s) lies below the ``RARE``-quantile of log β̂ at the logged pairs. The
    behaviour policy itself would score about ``RARE``.
    """
    observation = jnp.asarray(data.observation[targets.rows])
    logged = np.asarray(behaviour.log_prob(observation, jnp.asarray(data.scaled_action()[targets.rows])))
    edge = float(np.quantile(logged, RARE))
    return np.asarray(_shares(behaviour, observation, targets.here, jnp.float32(edge), data.discrete))


@partial(jax.jit, static_argnums=4)
def _shares(behaviour: Behaviour, observation: Array, here: Array, edge: Array, discrete: bool) -> Array:
    def one(answer: Array) -> Array:
        if discrete:
            standard = (observation - behaviour.mean) / behaviour.std
            rare = behaviour.density(standard).log_probs < edge
            return jnp.mean(jnp.sum(answer * rare, axis=-1))
        draws = jnp.swapaxes(answer, 0, 1)
        density = jax.vmap(lambda action: behaviour.log_prob(observation, action))(draws)
        return jnp.mean(density < edge, dtype=jnp.float32)

    return jax.lax.map(one, here)
