"""Pieces shared by actor-critic algorithms: targets, losses of critics, actor and temperature, Adam, schedules."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array

from sapp.algorithms.base import Metrics
from sapp.core.pytrees import usable
from sapp.core.spec import Batch, Spec
from sapp.networks import GaussianActor, Precision, StateActionNetwork, ensemble

T = TypeVar("T")
ADAM = optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-8)
"""Adam's direction; the learning rate is a number of the member and multiplies it in ``adam_step``."""


def adam_step(
    parameters: T, gradients: T, optimiser: Any, lr: Array | float, direction: optax.GradientTransformation = ADAM
) -> tuple[T, Any]:
    """One Adam step with a learning rate that may be traced; where a gradient is not finite it counts as 0.

    So parameters stay finite whatever happens, and a member that diverges is stopped in a state that can be looked at.
    ``direction`` takes the place of the usual Adam: one with another epsilon, RMSProp.
    """
    directions, new = direction.update(usable(gradients), optimiser)
    return jax.tree.map(lambda p, d: p - lr * d, parameters, directions), new


class Trained(eqx.Module, Generic[T]):
    """A network (or any parameters) and its Adam."""

    network: T
    optimiser: Any

    @classmethod
    def of(cls, network: T) -> Trained[T]:
        """A network that has not been trained, with Adam's first state."""
        return cls(network, ADAM.init(network))

    def descend(
        self, loss: Callable[..., tuple[Array, Any]], lr: Array | float, *arguments: Any
    ) -> tuple[Trained[T], Array, Any]:
        """One Adam step on ``loss(network, *arguments)``; also the loss and what else it returns (what it logs)."""
        (value, metrics), gradient = jax.value_and_grad(loss, has_aux=True)(self.network, *arguments)
        network, optimiser = adam_step(self.network, gradient, self.optimiser, lr)
        return Trained(network, optimiser), value, metrics


def branch(
    condition: Array | bool, yes: Callable[[], tuple[T, Metrics]], no: Callable[[], tuple[T, Metrics]]
) -> tuple[T, Metrics]:
    """``yes()`` or ``no()``, each a new state and its metrics; what the one not taken would have logged is 0.

    On a condition that is the same for all members (the step's number) only the branch taken costs anything.
    """
    names = {**jax.eval_shape(no)[1], **jax.eval_shape(yes)[1]}

    def whole(function: Callable[[], tuple[T, Metrics]]) -> Callable[[], tuple[T, Metrics]]:
        def run() -> tuple[T, Metrics]:
            state, metrics = function()
            return state, {name: jnp.asarray(metrics.get(name, 0.0), jnp.float32) for name in names}

        return run

    return jax.lax.cond(condition, whole(yes), whole(no))


def every(period: int, step: Array | int, update: Callable[[], tuple[T, Metrics]], unchanged: T) -> tuple[T, Metrics]:
    """``update()`` at every period-th step, the first at step period − 1; metrics keep their mean over time."""
    if period == 1:
        return update()

    def due() -> tuple[T, Metrics]:
        state, metrics = update()
        return state, {name: period * value for name, value in metrics.items()}

    return branch((jnp.asarray(step) + 1) % period == 0, due, lambda: (unchanged, {}))


def td_loss(critics: Any, batch: Batch, target: Array) -> tuple[Array, Metrics]:
    """Σ_i E_B[(Q_i(s,a) − y)²] over all critics."""
    return squared_td(ensemble(critics, batch.observation, batch.action), target)


def squared_td(value: Array, target: Array, trust: Array | float = 1.0) -> tuple[Array, Metrics]:
    """Σ_i E_B[(trust·(Q_i − y))²] of the critics' values [N, B]; the target and the trust carry no gradient."""
    target = jax.lax.stop_gradient(target)
    loss = jnp.sum(jnp.mean(jnp.square(trust * (value - target)), axis=-1))
    return loss, {
        "critic/td": loss / value.shape[0],
        "critic/value": jnp.mean(value),
        "critic/target": jnp.mean(target),
    }


def mixed_minimum(values: Array, share: Array | float) -> Array:
    """share·min_i Q_i + (1 − share)·max_i Q_i over the critics' axis: BCQ's soft clipped double Q."""
    return share * jnp.min(values, axis=0) + (1.0 - share) * jnp.max(values, axis=0)


class SoftState(eqx.Module):
    """What SAC and CQL learn: networks, temperature and optimisers; critics carry a leading axis of two."""

    actor: GaussianActor
    critics: StateActionNetwork
    targets: StateActionNetwork
    log_temperature: Array
    actor_optimiser: Any
    critic_optimiser: Any
    temperature_optimiser: Any

    @classmethod
    def fresh(cls, actor: GaussianActor, critics: StateActionNetwork, temperature: Array | float) -> SoftState:
        """The targets start as copies of the critics."""
        log_temperature = jnp.log(jnp.asarray(temperature, jnp.float32))
        return cls(
            actor, critics, critics, log_temperature,
            ADAM.init(actor), ADAM.init(critics), ADAM.init(log_temperature),
        )  # fmt: skip


def soft_networks(
    key: Array, spec: Spec, hidden: Sequence[int], precision: Precision
) -> tuple[GaussianActor, StateActionNetwork]:
    """A Gaussian actor and two critics."""
    actor_key, critic_key = jax.random.split(key)
    sizes = spec.observation_size, spec.action_size
    actor = GaussianActor(actor_key, *sizes, hidden, precision)
    keys = jax.random.split(critic_key, 2)
    return actor, jax.vmap(lambda k: StateActionNetwork(k, *sizes, hidden, precision))(keys)


def bootstrap_target(batch: Batch, next_value: Array, discount: Array | float) -> Array:
    """y = r + γ(1 − terminal)·V(s'): a terminal stops bootstrapping, a time-out does not."""
    return jax.lax.stop_gradient(batch.reward + discount * (1.0 - batch.terminal) * next_value)


def actor_loss(
    actor: GaussianActor,
    critics: StateActionNetwork,
    temperature: Array,
    batch: Batch,
    key: Array,
    baseline: Callable[[Array, Array], Array] | None = None,
) -> tuple[Array, Array]:
    """SAC's E[τ·log π(ã|s) − min_i Q_i(s,ã)], ã ~ π reparameterised; also returns E[log π].

    ``baseline(s, a)``, if given, is added to every critic's value: Fisher-BRC's log β(a|s).
    """
    action, log_prob = actor(batch.observation).sample(key)
    value = jnp.min(ensemble(critics, batch.observation, action), axis=0)
    if baseline is not None:
        value = value + baseline(batch.observation, action)
    return jnp.mean(temperature * log_prob - value), jnp.mean(log_prob)


def entropy_share(action_size: int, row: Mapping[str, float]) -> float:
    """The most that −τ·log π adds to a target in size: τ times the logged entropy's, or that of uniform actions."""
    return row.get("actor/temperature", 0.0) * (abs(row.get("actor/entropy", 0.0)) + action_size * math.log(2.0))


def temperature_loss(log_temperature: Array, log_prob: Array, target_entropy: float) -> Array:
    """−E[e^{log τ}·(log π(ã|s) + H̄)] with log π detached; H̄ = −|A| is the target entropy."""
    return -jnp.mean(jnp.exp(log_temperature) * (jax.lax.stop_gradient(log_prob) + target_entropy))
