"""Conservative Q-learning for discrete actions, on double DQN; with ratio weights it is discrete SA-CQL."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.algorithms.actor_critic import ADAM, adam_step, bootstrap_target
from sapp.algorithms.base import Algorithm, Metrics
from sapp.errors import SappError, check_ranges
from sapp.networks import MLP, Precision
from sapp.networks.categorical import CategoricalActor
from sapp.networks.mlp import check_precision
from sapp.ratios import StateWeights, Uniform
from sapp.spec import Batch, Spec
from sapp.tree import select


class MLPScores(eqx.Module):
    """The structure of a network that scores all actions at once: a multilayer perceptron on standardised states.

    What takes its place (an image encoder, say) has the same ``build``: from a key and a spec to a callable pytree from
    states [B, …] to scores [B, n].
    """

    hidden: tuple[int, ...] = eqx.field(static=True, default=(256, 256))
    precision: Precision = eqx.field(static=True, default="float32")

    def __check_init__(self) -> None:
        check_precision(self.precision)
        if not self.hidden:
            raise SappError("MLPScores: hidden sizes are empty; name at least one layer")

    def build(self, key: Array, spec: Spec) -> Any:
        """A fresh network for a problem."""
        mlp = MLP(key, spec.observation_size, self.hidden, spec.action_size, self.precision)
        return Standardised(mlp, spec.observation_mean, spec.observation_std)


class Standardised(eqx.Module):
    """A network behind (s − mean)/std; the statistics are data, they take no gradient."""

    network: MLP
    mean: Array
    std: Array

    def __call__(self, state: Array) -> Array:
        """Map states [B, S] to the network's outputs."""
        mean, std = jax.lax.stop_gradient((self.mean, self.std))
        return self.network((state - mean) / std)


class DiscreteCQLState(eqx.Module):
    """Q, its target network, the optimiser and the number of updates (for the target's sync)."""

    scores: Any
    target: Any
    optimiser: Any
    updates: Array


class DiscreteCQL(Algorithm):
    """CQL(H) on double DQN. ``DiscreteCQL(weights=DualDICE())`` is discrete SA-CQL.

        loss = E_B[Huber(Q(s,a) − y)] + α·E_B[w(s)·(log Σ_b exp Q(s,b) − Q(s,a))]
        y = r + γ(1−terminal)·Q̄(s', argmax_b Q(s',b))

    Q̄ is a copy of Q taken every ``target_every`` updates. The policy is softmax(Q) (the maximiser inside the
    regulariser, and what ratios are taken of); its mode, the greedy action, is what is played and exported.

    Defaults: d3rlpy v1's DiscreteCQL, which the paper's Atari table equals, with its batch of 64. For small tables of
    logs a larger learning rate and a shorter ``target_every`` learn in a fraction of the steps.
    """

    discrete_actions: ClassVar[bool] = True

    alpha: float = 1.0
    discount: float = 0.99
    lr: float = 6.25e-5
    target_every: int = 8_000
    weights: StateWeights = Uniform()
    network: Any = MLPScores()
    batch_size: int = eqx.field(static=True, default=64)

    def __check_init__(self) -> None:
        infinity = float("inf")
        check_ranges("DiscreteCQL", {"alpha": self.alpha, "lr": self.lr}, 0.0, infinity)
        check_ranges("DiscreteCQL", {"discount": self.discount}, 0.0, 1.0)
        check_ranges("DiscreteCQL", {"target_every": self.target_every}, 1, infinity)
        if self.batch_size < 1:
            raise SappError(f"DiscreteCQL: batch_size is {self.batch_size}; it must be at least 1")

    def init(self, key: Array, spec: Spec) -> DiscreteCQLState:
        """A fresh network; the target starts as its copy."""
        if not spec.discrete:
            raise SappError("DiscreteCQL: the data's actions are continuous; use cql, or name num_actions in the data")
        scores = self.network.build(key, spec)
        return DiscreteCQLState(scores, scores, ADAM.init(scores), jnp.int32(0))

    def policy(self, state: DiscreteCQLState) -> CategoricalActor:
        """softmax(Q)."""
        return CategoricalActor(state.scores)

    def update(
        self, state: DiscreteCQLState, batch: Batch, weights: Array, key: Array
    ) -> tuple[DiscreteCQLState, Metrics]:
        """One step of Q; the target is synchronised when its time has come."""
        best = jnp.argmax(state.scores(batch.next_observation), axis=-1)
        next_value = jnp.take_along_axis(state.target(batch.next_observation), best[:, None], axis=-1)[:, 0]
        target = bootstrap_target(batch, next_value, self.discount)
        (_, metrics), gradient = jax.value_and_grad(conservative_loss, has_aux=True)(
            state.scores, batch, target, weights, jnp.asarray(self.alpha, jnp.float32)
        )
        scores, optimiser = adam_step(state.scores, gradient, state.optimiser, self.lr)
        updates = state.updates + 1
        synced = select(updates % self.target_every == 0, scores, state.target)
        return DiscreteCQLState(scores, synced, optimiser, updates), metrics | {"critic/target": jnp.mean(target)}


def huber(error: Array) -> Array:
    """½e² within ±1, |e| − ½ beyond."""
    size = jnp.abs(error)
    return jnp.where(size <= 1.0, 0.5 * jnp.square(error), size - 0.5)


def conservative_loss(scores: Any, batch: Batch, target: Array, weights: Array, alpha: Array) -> tuple[Array, Metrics]:
    """E_B[Huber(Q(s,a) − y)] + α·E_B[w(s)·(log Σ_b exp Q(s,b) − Q(s,a))]."""
    values = scores(batch.observation)
    value = jnp.take_along_axis(values, batch.action[:, None], axis=-1)[:, 0]
    penalty = jax.nn.logsumexp(values, axis=-1) - value
    td = jnp.mean(huber(value - target))
    conservative = jnp.mean(jax.lax.stop_gradient(weights) * penalty)
    loss = td + alpha * conservative
    entropy = -jnp.mean(jnp.sum(jax.nn.softmax(values) * jax.nn.log_softmax(values), axis=-1))
    return loss, {
        "loss": loss,
        "critic/td": td,
        "critic/penalty": jnp.mean(penalty),
        "critic/weighted_penalty": conservative,
        "critic/value": jnp.mean(value),
        "actor/entropy": entropy,
    }
