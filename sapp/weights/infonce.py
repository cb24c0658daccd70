"""State ratios from a temporal-difference InfoNCE critic: no model of the environment, logged states only."""

from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.core.pytrees import polyak
from sapp.core.spec import Batch, Spec
from sapp.networks import MLP, Policy, Precision
from sapp.weights.base import Metrics, predicted_reward
from sapp.weights.behaviour import TanhBehaviour, box
from sapp.weights.classifier import (
    ADAM,
    ClassifierWeights,
    Standard,
    accuracy,
    against,
    averaged,
    check_continuous,
    check_settings,
    classifier_loss,
    descend,
    effective_share,
    log_ratio,
    make_classifier,
    running,
)
from sapp.weights.transforms import LogMinMax, Transform


class FutureCritic(eqx.Module):
    """F(s,a,g) = φ(s,a)·ψ(g)/√E ≈ log pᵖ(g|s,a)/dᴰ(g) + a function of (s,a): which states follow which pairs."""

    pair: MLP
    goal: MLP

    def embed(self, state: Array, action: Array) -> Array:
        """φ at pairs, scaled, [B, E]."""
        found = self.pair(jnp.concatenate([state, action], axis=-1))
        return found / math.sqrt(found.shape[-1])


class InfoNCEHealth(eqx.Module):
    """Running means: the critic's loss and a constant critic's, clipping, accuracy, ends."""

    error: Array
    constant: Array
    clipped: Array
    accuracy: Array
    ended: Array


class InfoNCEState(eqx.Module):
    """β̂, the critic and its slow copy, the read-out, their Adam, and the estimator's health."""

    behaviour: TanhBehaviour
    critic: FutureCritic
    target: FutureCritic
    classifier: MLP
    readout: MLP
    optimiser: Any
    health: InfoNCEHealth
    mass: Array
    unreliable: Array
    standard: Standard


class OccupancyInfoNCE(ClassifierWeights):
    """f(ω(s)) with ω = dᵖ(s)/dᴰ(s) read off a critic that scores which logged states follow a pair under π.

    pᵖ(g|s,a), the distribution of the state after a geometric number (≥ 1) of steps, satisfies

        pᵖ(·|s,a) = (1−γ)·P(·|s,a) + γ·E_{s'~P, a'~π(s')}[pᵖ(·|s',a')].

    TD-InfoNCE turns this into a classification among the batch's N states g_j: for each logged (s,a,s'),

        loss = −(1−γ)·log softmax(F(s,a,·))[s'] − γ·Σ_j W_j·log softmax(F(s,a,·))[g_j],   W = softmax_j F̄(s',a',g_j),

    F̄ a slow copy (Polyak, ``tau``), a' ~ π(s') clipped to β̂'s μ ± ``width``·σ: the critic was never shown the value of
    actions outside. Where the task ends, s' is an episode start of the batch instead: the same restart as in
    ``OccupancyModel``, which leaves the occupancy's shape as it is.

    Read-out: from starts s₀ and a₀ ~ π(s₀) (clipped likewise), dᵖ = (1−γ)ρ + γ·E[pᵖ(·|s₀,a₀)], so a classifier c(s) is
    trained on the starts with share 1−γ and on the batch's states with shares γ·E_{s₀}[softmax_j F(s₀,a₀,g_j)], against
    the batch with equal shares. log ω = c(s), up to the mass lost at terminals. That is estimated by how often the
    task ends on the batch's rows, weighted by exp c(s); it is right where the end depends on the state, and only a
    scale (which the log-min–max forgets) where it depends on the action.

    Health: the critic's loss relative to log N must lie below ``max_error`` (1 is a critic that knows nothing; where
    the future is spread widely even a good one is not far below), the classifier's accuracy below ``max_accuracy``,
    the share of clipped action dimensions below ``max_clipped``.

    Attributes:
        critic_lr: learning rate of F.
        tau: share of F that goes into its slow copy at each step.
        features: E, the size of φ and ψ.

    Examples:
        >>> import sapp
        >>> sapp.TD3BC(weights=sapp.OccupancyInfoNCE(features=32)).weights.features
        32
    """

    f: Transform = LogMinMax()
    behaviour_lr: float = 3e-4
    critic_lr: float = 3e-4
    classifier_lr: float = 3e-4
    average: float = 1e-3
    tau: float = 0.005
    width: float = 2.0
    max_error: float = 1.05
    max_accuracy: float = 0.995
    max_clipped: float = 1.0
    health_rate: float = 0.01
    fallback: bool = False
    hidden: tuple[int, ...] = eqx.field(static=True, default=(256, 256))
    features: int = eqx.field(static=True, default=64)
    precision: Precision = eqx.field(static=True, default="auto")

    def __check_init__(self) -> None:
        shares = ("average", "tau", "max_accuracy", "max_clipped", "health_rate")
        check_settings(self, ("behaviour_lr", "critic_lr", "classifier_lr", "max_error"), shares, ("features",))

    def init(self, key: Array, spec: Spec) -> InfoNCEState:
        """Networks that start at ω = 1; the slow critic starts as a copy."""
        check_continuous(self, spec)
        states, actions = spec.observation_size, spec.action_size
        keys = jax.random.split(key, 4)
        behaviour = TanhBehaviour(keys[0], states, actions, self.hidden, self.precision)
        critic = FutureCritic(
            MLP(keys[1], states + actions, self.hidden, self.features, self.precision),
            MLP(keys[2], states, self.hidden, self.features, self.precision),
        )
        classifier = make_classifier(keys[3], states, self.hidden, 2, self.precision)
        zero = jnp.float32(0.0)
        return InfoNCEState(
            behaviour=behaviour,
            critic=critic,
            target=critic,
            classifier=classifier,
            readout=classifier,
            optimiser=ADAM.init((behaviour, critic, classifier)),
            health=InfoNCEHealth(zero, jnp.float32(1.0), zero, jnp.float32(0.5), zero),
            mass=jnp.float32(1.0),
            unreliable=jnp.bool_(False),
            standard=Standard(spec.observation_mean, spec.observation_std),
        )

    def update(
        self, state: InfoNCEState, batch: Batch, policy: Policy, discount: Array, key: Array
    ) -> tuple[InfoNCEState, Metrics]:
        """One step of β̂, the critic and the read-out on one batch; then the slow critic follows."""
        next_key, start_key = jax.random.split(key)
        standard, count = state.standard, len(batch.reward)
        here, starts = standard(batch.observation), standard(batch.initial_observation)
        ended = batch.terminal[:, None] > 0.5
        following = jnp.where(ended, starts, standard(batch.next_observation))

        def act(where: Array, key: Array) -> tuple[Array, Array]:
            action, _ = policy(standard.raw(where)).sample(key)
            return box(state.behaviour(where), action, self.width)

        next_action, clipped = act(following, next_key)
        start_action, _ = act(starts, start_key)
        goals = state.target.goal(here)
        later = jax.nn.softmax(state.target.embed(following, next_action) @ goals.T)
        from_starts = jnp.mean(jax.nn.softmax(state.target.embed(starts, start_action) @ goals.T), axis=0)
        states = jnp.concatenate([starts, here, here])
        share = jnp.concatenate([jnp.full(count, (1.0 - discount) / count), discount * from_starts])
        later, share = jax.lax.stop_gradient((later, share))

        def losses(networks: tuple[Any, Any, Any]) -> tuple[Array, Any]:
            behaviour, critic, classifier = networks
            nll = behaviour.loss(here, batch.action)
            critic_loss = contrast(critic, here, batch.action, following, later, discount)
            loss, scores = classifier_loss(classifier, states, against(share, count))
            return nll + critic_loss + loss, (nll, critic_loss, loss, scores)

        networks = (state.behaviour, state.critic, state.classifier)
        (total, (nll, critic_loss, loss, scores)), gradients = jax.value_and_grad(losses, has_aux=True)(networks)
        rates = (self.behaviour_lr, self.critic_lr, self.classifier_lr)
        (behaviour, critic, classifier), optimiser, finite = descend(networks, total, gradients, state.optimiser, rates)
        readout = averaged(state.readout, classifier, self.average, state.optimiser.count)
        log_here = log_ratio(readout, here)
        seen = InfoNCEHealth(
            critic_loss,
            jnp.log(jnp.float32(count)),
            clipped,
            accuracy(scores[:-count], share, scores[-count:]),
            jnp.sum(jax.nn.softmax(log_here) * batch.terminal),  # how often π ends the task, were it β there
        )
        health = running(state.health, seen, self.health_rate, finite)
        relative = health.error / jnp.maximum(health.constant, 1e-12)
        mass = (1.0 - discount) / (1.0 - discount + discount * health.ended)
        unreliable = (
            ~finite
            | (relative > self.max_error)
            | (health.accuracy > self.max_accuracy)
            | (health.clipped > self.max_clipped)
        )
        target = polyak(state.target, critic, self.tau)
        new = InfoNCEState(
            behaviour, critic, target, classifier, readout, optimiser, health, mass, unreliable, standard
        )
        ratio = mass * jnp.exp(log_here)
        return new, predicted_reward(ratio, batch.reward) | {
            "ratio/behaviour_nll": nll,
            "ratio/critic_loss": critic_loss,
            "ratio/model_error": relative,
            "ratio/classifier_loss": loss,
            "ratio/accuracy": health.accuracy,
            "ratio/clipped": health.clipped,
            "ratio/mass": mass,
            "ratio/ess": effective_share(ratio),
            "ratio/log_ratio_max": jnp.max(jnp.abs(log_here)),
            "ratio/unreliable": unreliable.astype(jnp.float32),
        }


def contrast(
    critic: FutureCritic, state: Array, action: Array, following: Array, later: Array, discount: Array
) -> Array:
    """TD-InfoNCE's loss, W being ``later`` [B, N].

    In the first term the row's own state gives way to its successor, so that there are N candidates in both and the
    negatives are drawn from the data's states.
    """
    query = critic.embed(state, action)
    scores = query @ critic.goal(state).T
    after = jnp.sum(query * critic.goal(following), axis=-1)
    own = jnp.eye(len(state), dtype=bool)
    first = jax.nn.logsumexp(jnp.where(own, after[:, None], scores), axis=-1) - after
    second = -jnp.sum(later * jax.nn.log_softmax(scores), axis=-1)
    return jnp.mean((1.0 - discount) * first + discount * second)
