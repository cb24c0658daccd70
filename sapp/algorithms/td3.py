"""TD3 on logged data: what TD3+BC and ReBRAC share."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.algorithms.actor_critic import Trained, bootstrap_target, every, td_loss
from sapp.algorithms.base import Algorithm, Metrics, check_settings
from sapp.core.pytrees import polyak
from sapp.core.spec import Batch, Spec
from sapp.networks import DeterministicActor, NoisyPolicy, Normalised, Normaliser, Precision, ensemble, make_critics
from sapp.weights import StateWeights, Uniform


class TD3State(eqx.Module):
    """Actor and critics, their targets, and the normaliser of observations; critics carry a leading axis of two."""

    actor: Trained[DeterministicActor]
    critics: Trained[Any]
    target_actor: DeterministicActor
    target_critics: Any
    normaliser: Normaliser


class TD3(Algorithm):
    """A deterministic actor and two critics:

        critics  Σ_i E_B[(Q_i(s,a) − y)²],   y = r + γ(1−terminal)·(min_j Q̄_j(s', ã') − penalty(s', ã'))
                 ã' = clip(μ̄(s') + clip(N(0, noise²), ±noise_clip), ±1)

    and at every ``period``-th step the actor, by ``actor_loss``, and then both targets. A subclass says what the actor
    minimises and, if it likes, what the target is penalised with. As a distribution over actions (DualDICE's π) the
    policy is μ(s) with the same smoothing noise: the critics' targets are drawn from it, too.

    Attributes:
        noise: deviation of the noise on the target's actions.
        noise_clip: where that noise is cut off.
        period: critic updates for one of the actor and of the targets.
    """

    discount: float = 0.99
    actor_lr: float = 3e-4
    critic_lr: float = 3e-4
    tau: float = 0.005
    noise: float = 0.2
    noise_clip: float = 0.5
    weights: StateWeights = Uniform()
    hidden: tuple[int, ...] = eqx.field(static=True, default=(256, 256))
    batch_size: int = eqx.field(static=True, default=256)
    period: int = eqx.field(static=True, default=2)
    normalise: bool = eqx.field(static=True, default=True)
    precision: Precision = eqx.field(static=True, default="auto")

    def __check_init__(self) -> None:
        check_settings(self, "noise", "noise_clip", counts=("period",))

    def actor_loss(
        self, actor: DeterministicActor, critics: Any, batch: Batch, weights: Array
    ) -> tuple[Array, Metrics]:
        """What the actor minimises."""
        raise TypeError(f"{type(self).__name__} must define actor_loss()")

    def target_penalty(self, batch: Batch, next_action: Array, weights: Array) -> Array | float:
        """What is taken off the value of s'; nothing in TD3."""
        return 0.0

    def make_networks(self, key: Array, spec: Spec) -> tuple[DeterministicActor, Any]:
        """The actor and two critics."""
        actor_key, critic_key = jax.random.split(key)
        sizes = spec.observation_size, spec.action_size
        actor = DeterministicActor(actor_key, *sizes, self.hidden, self.precision)
        return actor, make_critics(critic_key, spec, 2, self.hidden, self.precision)

    def init(self, key: Array, spec: Spec) -> TD3State:
        """Fresh networks; the targets start as copies."""
        actor, critics = self.make_networks(key, spec)
        normaliser = Normaliser.of(spec, self.normalise)
        return TD3State(Trained.of(actor), Trained.of(critics), actor, critics, normaliser)

    def policy(self, state: TD3State) -> Normalised:
        """The actor with its smoothing noise, on raw observations."""
        return Normalised(state.normaliser, self.smoothed(state.actor.network))

    def smoothed(self, actor: DeterministicActor) -> NoisyPolicy:
        """An actor with TD3's noise around it."""
        return NoisyPolicy(actor, jnp.asarray(self.noise, jnp.float32), jnp.asarray(self.noise_clip, jnp.float32))

    def scheduled_update(
        self, state: TD3State, batch: Batch, weights: Array, key: Array, step: Array
    ) -> tuple[TD3State, Metrics]:
        """Critics; at every ``period``-th step also the actor and the targets."""
        batch = state.normaliser.batch(batch)
        next_action, _ = self.smoothed(state.target_actor)(batch.next_observation).sample(key)
        next_value = jnp.min(ensemble(state.target_critics, batch.next_observation, next_action), axis=0)
        next_value = next_value - self.target_penalty(batch, next_action, weights)
        target = bootstrap_target(batch, next_value, self.discount)
        critics, critic_loss, metrics = state.critics.descend(td_loss, self.critic_lr, batch, target)

        def improve() -> tuple[Any, Metrics]:
            actor, loss, logged = state.actor.descend(
                self.actor_loss, self.actor_lr, critics.network, batch, jax.lax.stop_gradient(weights)
            )
            target_actor = polyak(state.target_actor, actor.network, self.tau)
            target_critics = polyak(state.target_critics, critics.network, self.tau)
            return (actor, target_actor, target_critics), logged | {"actor/loss": loss}

        unchanged = state.actor, state.target_actor, state.target_critics
        (actor, target_actor, target_critics), logged = every(self.period, step, improve, unchanged)
        new = TD3State(actor, critics, target_actor, target_critics, state.normaliser)
        return new, metrics | logged | {"loss": critic_loss + logged["actor/loss"]}
