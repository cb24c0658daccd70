"""State ratios from a one-step model and a classifier: sound where a policy's actions leave the data."""

from __future__ import annotations

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.errors import SappError
from sapp.networks import MLP, Policy, Precision
from sapp.ratios.base import Metrics
from sapp.ratios.behaviour import GaussianBehaviour
from sapp.ratios.classifier import (
    ADAM,
    ClassifierWeights,
    Standard,
    accuracy,
    averaged,
    check_continuous,
    check_settings,
    classifier_loss,
    descend,
    effective_share,
    log_ratio,
)
from sapp.ratios.successor import GaussianSuccessor, LoggedSuccessor, Transitions
from sapp.ratios.transforms import LogMinMax, Transform
from sapp.spec import Batch, Spec

NOWHERE = 1e6
"""Where particles are before their first step: outside of every range, so that they restart from an episode start."""


class Cloud(eqx.Module):
    """Particles [P, S], the ring of their recent states [R, P, S], and how often the ring was written."""

    particles: Array
    ring: Array
    written: Array


class Moved(eqx.Module):
    """What happened to the particles in a step, as shares: restarted for any reason, out of range, action dimensions
    clipped."""

    restarted: Array
    left: Array
    clipped: Array


class OccupancyHealth(eqx.Module):
    """Running means: the model's error and a constant model's, the shares of ``Moved``, the classifier's accuracy."""

    error: Array
    constant: Array
    restarted: Array
    left: Array
    clipped: Array
    accuracy: Array


class OccupancyState(eqx.Module):
    """The three networks and their Adam, the particles, the data's range, and the estimator's health."""

    behaviour: GaussianBehaviour
    model: GaussianSuccessor | LoggedSuccessor
    classifier: MLP
    readout: MLP
    optimiser: Any
    cloud: Cloud
    low: Array
    high: Array
    health: OccupancyHealth
    mass: Array
    sick: Array
    standard: Standard


class OccupancyModel(ClassifierWeights):
    """f(ω(s)) with ω = dᵖ(s)/dᴰ(s) from particles that follow the policy through a learned one-step model.

    DualDICE goes through the ratio of *state-action* pairs, which does not exist once π takes actions the data do not
    have; the *state* ratio still does. Here no such pair is ever divided by. Each step, on one batch:

      1. β̂(s), a diagonal Gaussian, moves towards the logged actions, and the one-step model M towards the logged
         transitions (``successor``: ``gaussian`` for smooth dynamics, ``logged`` where the next state is one of
         several, as in a finite MDP; see ``sapp.ratios.successor``).
      2. Each of ``particles`` states x draws a ~ π(x), clipped to β̂'s μ ± ``width``·σ, and moves to x' ~ M(x, a). It
         restarts from an episode start of the data with probability 1−γ, when the task ends (M predicts terminals; a
         time-out is none), and when it leaves the data's range by more than ``margin`` of it.
      3. A classifier c(s) learns to tell the last ``ring``·``particles`` particles from the batch. log ω = c(s).

    The particles' law μ solves μ = κρ + γ·μPᵖ(1−terminal) with κ the share of restarts, so μ = dᵖ/mass with
    mass = (1−γ)/κ, the probability that has not been lost at terminals; ω = mass·exp c(s).

    What is biased: the occupancy is that of the clipped policy; the model's errors accumulate along a particle's life
    of about 1/(1−γ) steps; the ring holds particles of slightly older policies. With ``anchor`` > 0 a particle is, with
    that probability, replaced by a state of the batch drawn in proportion to exp c(s). Where c is right that changes
    nothing (it is a draw of the same law), and it cuts the model's errors to 1/``anchor`` steps; where c is wrong it
    keeps the error alive. ``noise`` scales the Gaussian model's noise; 0 makes it a mean model. ``floor`` ε > 0 makes
    the ratio (1−ε)ω + ε: same ranking, but states the policy never visits all count as ε.

    Health: the model's error relative to a constant model's (of mean squares, or of log-loss) must lie below
    ``max_error``, the share of particles that leave the range below ``max_left``, the classifier's accuracy below
    ``max_accuracy`` (above it the two kinds do not overlap and c has no scale), the share of clipped action dimensions
    below ``max_clipped`` (1: not asked). Otherwise the member is *sick* and its weights are 1, unless ``fallback`` is
    off. ``ratio/clipped`` says how far the policy has left the data.

    Everything is a function of arrays on the device; numbers are leaves, sizes are structure.
    """

    f: Transform = LogMinMax()
    behaviour_lr: float = 3e-4
    model_lr: float = 1e-3
    classifier_lr: float = 3e-4
    average: float = 1e-3
    width: float = 2.0
    margin: float = 0.1
    noise: float = 1.0
    anchor: float = 0.0
    floor: float = 0.0
    max_error: float = 0.95
    max_left: float = 0.2
    max_accuracy: float = 0.995
    max_clipped: float = 1.0
    health_rate: float = 0.01
    fallback: bool = True
    hidden: tuple[int, ...] = eqx.field(static=True, default=(256, 256))
    successor: Literal["gaussian", "logged"] = eqx.field(static=True, default="gaussian")
    particles: int = eqx.field(static=True, default=256)
    ring: int = eqx.field(static=True, default=64)
    precision: Precision = eqx.field(static=True, default="tf32")

    def __check_init__(self) -> None:
        if self.successor not in ("gaussian", "logged"):
            raise SappError(f"successor {self.successor!r} is unknown: use gaussian or logged")
        shares = ("anchor", "floor", "max_left", "max_accuracy", "max_clipped", "health_rate")
        rates = ("behaviour_lr", "model_lr", "classifier_lr", "margin", "noise", "max_error")
        check_settings(self, rates, shares, ("particles", "ring"))

    def init(self, key: Array, spec: Spec) -> OccupancyState:
        """Networks that start at ω = 1, particles nowhere."""
        check_continuous(self, spec)
        sizes = spec.observation_size, spec.action_size
        keys = jax.random.split(key, 3)
        behaviour = GaussianBehaviour(keys[0], *sizes, self.hidden, self.precision)
        kind = GaussianSuccessor if self.successor == "gaussian" else LoggedSuccessor
        model = kind(keys[1], *sizes, self.hidden, self.precision)
        classifier = MLP(keys[2], sizes[0], self.hidden, 1, self.precision, scale=1e-2, bias=0.0)
        nowhere = jnp.full((self.particles, sizes[0]), NOWHERE, jnp.float32)
        zero = jnp.float32(0.0)
        return OccupancyState(
            behaviour=behaviour,
            model=model,
            classifier=classifier,
            readout=classifier,
            optimiser=ADAM.init((behaviour, model, classifier)),
            cloud=Cloud(nowhere, jnp.full((self.ring, *nowhere.shape), NOWHERE), jnp.int32(0)),
            low=jnp.zeros(sizes[0]),  # the mean of standardised data lies in their range
            high=jnp.zeros(sizes[0]),
            health=OccupancyHealth(zero, jnp.float32(1.0), zero, zero, zero, jnp.float32(0.5)),
            mass=jnp.float32(1.0),
            sick=jnp.bool_(False),
            standard=Standard(spec.observation_mean, spec.observation_std),
        )

    def update(
        self, state: OccupancyState, batch: Batch, policy: Policy, discount: Array, key: Array
    ) -> tuple[OccupancyState, Metrics]:
        """One step of the particles, then one of β̂, the model and the classifier; no gradient runs between them."""
        move_key, draw_key = jax.random.split(key)
        standard = state.standard
        logged = Transitions(
            standard(batch.observation), batch.action, standard(batch.next_observation), batch.terminal
        )
        state = eqx.tree_at(
            lambda s: (s.low, s.high),
            state,
            (
                jnp.minimum(state.low, jnp.min(logged.state, axis=0)),
                jnp.maximum(state.high, jnp.max(logged.state, axis=0)),
            ),
        )
        cloud, moved = self.advance(state, logged, standard(batch.initial_observation), policy, discount, move_key)
        positive = self.draw(cloud, draw_key, len(batch.reward))
        share = jnp.full(len(positive), 1.0 / len(positive))

        def losses(networks: tuple[Any, Any, Any]) -> tuple[Array, Any]:
            behaviour, model, classifier = networks
            nll = behaviour.loss(logged.state, logged.action)
            model_loss, errors = model.loss(logged)
            loss, scores = classifier_loss(classifier, positive, share, logged.state, self.floor)
            return nll + model_loss + loss, (nll, model_loss, errors, loss, scores)

        networks = (state.behaviour, state.model, state.classifier)
        (total, (nll, model_loss, errors, loss, scores)), gradients = jax.value_and_grad(losses, has_aux=True)(networks)
        rates = (self.behaviour_lr, self.model_lr, self.classifier_lr)
        (behaviour, model, classifier), optimiser, finite = descend(networks, total, gradients, state.optimiser, rates)
        right = accuracy(scores[0], share, scores[1])
        seen = OccupancyHealth(errors[0], errors[1], moved.restarted, moved.left, moved.clipped, right)
        health = jax.tree.map(
            lambda old, new: jnp.where(finite, old + self.health_rate * (new - old), old), state.health, seen
        )
        error = health.error / jnp.maximum(health.constant, 1e-12)
        mass = jnp.minimum(1.0, (1.0 - discount) / jnp.maximum(health.restarted, 1e-12))
        sick = (
            ~finite
            | (error > self.max_error)
            | (health.left > self.max_left)
            | (health.accuracy > self.max_accuracy)
            | (health.clipped > self.max_clipped)
        )
        new = OccupancyState(
            behaviour, model, classifier, averaged(state.readout, classifier, self.average, state.cloud.written),
            optimiser, cloud, state.low, state.high, health, mass, sick, standard,
        )  # fmt: skip
        here = log_ratio(new.readout, logged.state)
        ratio = mass * jnp.exp(here)
        return new, {
            "ratio/behaviour_nll": nll,
            "ratio/model_loss": model_loss,
            "ratio/model_error": error,
            "ratio/classifier_loss": loss,
            "ratio/accuracy": health.accuracy,
            "ratio/clipped": health.clipped,
            "ratio/left": health.left,
            "ratio/mass": mass,
            "ratio/ess": effective_share(ratio),
            "ratio/log_ratio_max": jnp.max(jnp.abs(here)),
            "ratio/reward": jnp.mean(ratio * batch.reward),
            "ratio/sick": sick.astype(jnp.float32),
        }

    def advance(
        self, state: OccupancyState, logged: Transitions, starts: Array, policy: Policy, discount: Array, key: Array
    ) -> tuple[Cloud, Moved]:
        """One step of every particle, by the model and β̂ as they stand."""
        keys = jax.random.split(key, 6)
        cloud = state.cloud
        slot = cloud.written % self.ring
        particles = cloud.ring[slot]
        anchored = jax.random.uniform(keys[0], (self.particles,)) < self.anchor
        # proportional to exp c over the batch: a draw of the policy's law as the classifier has it
        rows = jax.random.categorical(keys[1], log_ratio(state.readout, logged.state), shape=(self.particles,))
        particles = jnp.where(anchored[:, None], logged.state[rows], particles)
        action, _ = policy(state.standard.raw(particles)).sample(keys[2])
        action, clipped = state.behaviour.box(particles, action, self.width)
        moved, ended = state.model.step(particles, action, logged, jnp.asarray(self.noise, jnp.float32), keys[3])
        reach = self.margin * (state.high - state.low)
        inside = jnp.all((moved >= state.low - reach) & (moved <= state.high + reach), axis=-1)  # not so for NaN
        again = jax.random.uniform(keys[4], (self.particles,)) < 1.0 - discount
        restart = again | ended | ~inside
        begin = starts[jax.random.randint(keys[5], (self.particles,), 0, len(starts))]
        particles = jax.lax.stop_gradient(jnp.where(restart[:, None], begin, moved))
        ring = jax.lax.dynamic_update_index_in_dim(cloud.ring, particles, slot, 0)
        left = jnp.mean(~inside & ~again & ~ended, dtype=jnp.float32)
        return Cloud(particles, ring, cloud.written + 1), Moved(jnp.mean(restart, dtype=jnp.float32), left, clipped)

    def draw(self, cloud: Cloud, key: Array, count: int) -> Array:
        """Recent particles [count, S], drawn uniformly from what the ring holds."""
        slot_key, particle_key = jax.random.split(key)
        slots = jax.random.randint(slot_key, (count,), 0, jnp.minimum(cloud.written, self.ring))
        return cloud.ring[slots, jax.random.randint(particle_key, (count,), 0, self.particles)]
