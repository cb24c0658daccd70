"""State ratios from a one-step model and a classifier: sound where a policy's actions leave the data."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from sapp.core.errors import SappError
from sapp.core.spec import Batch, Spec
from sapp.networks import MLP, Policy, Precision
from sapp.networks.gaussian import TanhGaussian
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
from sapp.weights.successor import GaussianSuccessor, LoggedSuccessor, Transitions
from sapp.weights.transforms import LogMinMax, Transform

NOWHERE = 1e6
"""Where particles are before their first step: outside of every range, so that they restart from an episode start."""


class Cloud(eqx.Module):
    """Particles [K, R, P, S]: those that follow the policy and, paired with them, those that follow the behaviour, in
    slices of which one moves at a step; and how many steps were made."""

    particles: Array
    moves: Array


class Moved(eqx.Module):
    """What happened to the policy's particles in a step, as shares: restarted for any reason, out of range, action
    dimensions clipped."""

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


class Networks(NamedTuple):
    """What is learned: β̂, the one-step model, the classifier."""

    behaviour: TanhBehaviour
    model: GaussianSuccessor | LoggedSuccessor
    classifier: MLP


class OccupancyState(eqx.Module):
    """The three networks, their running means and their Adam, the particles, the data's range, and the estimator's
    health. Particles follow the means, and the ratio is read from them."""

    networks: Networks
    means: Networks
    optimiser: Any
    cloud: Cloud
    low: Array
    high: Array
    health: OccupancyHealth
    mass: Array
    unreliable: Array
    standard: Standard

    @property
    def readout(self) -> MLP:
        """The classifier that is read."""
        return self.means.classifier


class OccupancyModel(ClassifierWeights):
    """f(ω(s)) with ω = dᵖ(s)/dᴰ(s) from particles that follow the policy through a learned one-step model.

    DualDICE goes through the ratio of *state-action* pairs, which does not exist once π takes actions the data do not
    have; the *state* ratio still does. Here no such pair is ever divided by. Each step, on one batch:

      1. β̂(s), a tanh-squashed Gaussian, moves towards the logged actions, and the one-step model M towards the logged
         transitions (``successor``: ``gaussian`` for smooth dynamics, ``logged`` where the next state is one of
         several, as in a finite MDP; see ``sapp.weights.successor``).
      2. One of ``slices`` slices of ``particles`` states x each moves on: a ~ π(x), clipped to β̂'s μ ± ``width``·σ
         (before tanh), x' ~ M(x, a). A particle restarts from an episode start of the data with probability 1−γ, when
         the task ends (M predicts terminals; a time-out is none), and when it leaves the data's range by more than
         ``margin`` of it.
      3. A classifier learns to distinguish particles (drawn from all slices) from the batch: log ω = c(s).

    The particles' distribution μ solves μ = κρ + γ·μPᵖ(1−terminal) with κ the share of restarts, so μ = dᵖ/mass with
    mass = (1−γ)/κ, the probability that has not been lost at terminals; ω = mass·exp c(s). Slices make the particles
    many and nearly independent at the price of moving a few; their distribution follows the policy with a lag of
    ``slices``/(1−γ) steps.

    ``paired`` (needs data of whole episodes): as many particles follow β̂ through the same model, and

        log ω = log μᵖ/μᵝ + log dᵝ/dᴰ + log mass,

    where a classifier between the kinds of particles gives the first term, and one between the batch with
    weights γᵗ (t steps after its episode's start; where an episode was cut off, its last row stands for all that would
    have followed) and the batch as it is gives the second. The model's errors affect both kinds alike, and the second
    term needs no model: as π approaches β the model's error cancels. Both kinds use the same random numbers, so that
    where π is β̂ they are the same particles, and chance cancels too. All four distributions are classes of one
    classifier.

    What is still biased: the occupancy is that of the clipped policy; the model's errors accumulate along a particle's
    life of about 1/(1−γ) steps, as far as the pair does not share them. ``noise`` scales the Gaussian model's noise; 0
    makes it a mean model.

    The ratio is read from the classifier's mean over about 1/``average`` steps; particles follow means of β̂ and M over
    1/``model_average``, since otherwise they repeat the noise of a single step many times over. They are no longer
    than that because a mean of parameters that are still changing is a worse model than any of them: on the
    pendulum it takes particles off the circle.

    Health: the model's error relative to a constant model's (of mean squares, or of log-loss) must lie below
    ``max_error``, the share of particles that leave the range below ``max_left``, the classifier's accuracy below
    ``max_accuracy`` (above it particles and data do not overlap and c has no scale), the share of clipped action
    dimensions below ``max_clipped`` (1: not asked). Otherwise the estimate is *unreliable*, which the run says; with
    ``fallback`` its weights are then 1. ``ratio/clipped`` says how far the policy has left the data.

    Everything is a function of arrays on the device; numbers are leaves, sizes are structure.

    Attributes:
        model_lr: learning rate of the one-step model.
        model_average: rate of the running means of β̂ and the model, which particles follow.
        margin: share of the data's range by which a particle may leave it.
        noise: factor for the Gaussian model's noise; 0 makes it a mean model.
        max_left: largest share of particles leaving the range of a reliable estimate.
        successor: kind of one-step model: gaussian, or logged where the next state is one of several.
        paired: let particles follow the behaviour as well as the policy; needs data of whole episodes.
        particles: number of particles per slice.
        slices: number of slices, of which one moves in each step.

    Examples:
        >>> import sapp
        >>> sapp.CQL(weights=sapp.OccupancyModel(successor="logged", paired=False)).weights.successor
        'logged'
    """

    f: Transform = LogMinMax()
    behaviour_lr: float = 1e-3
    model_lr: float = 1e-3
    classifier_lr: float = 1e-3
    average: float = 1e-3
    model_average: float = 1e-2
    width: float = 2.0
    margin: float = 0.1
    noise: float = 1.0
    max_error: float = 0.95
    max_left: float = 0.2
    max_accuracy: float = 0.995
    max_clipped: float = 1.0
    health_rate: float = 0.01
    fallback: bool = False
    hidden: tuple[int, ...] = eqx.field(static=True, default=(256, 256))
    successor: Literal["gaussian", "logged"] = eqx.field(static=True, default="gaussian")
    paired: bool = eqx.field(static=True, default=True)
    particles: int = eqx.field(static=True, default=256)
    slices: int = eqx.field(static=True, default=16)
    precision: Precision = eqx.field(static=True, default="auto")

    def __check_init__(self) -> None:
        if self.successor not in ("gaussian", "logged"):
            raise SappError(f"successor {self.successor!r} is unknown: use gaussian or logged")
        shares = ("average", "model_average", "max_left", "max_accuracy", "max_clipped", "health_rate")
        rates = ("behaviour_lr", "model_lr", "classifier_lr", "margin", "noise", "max_error")
        check_settings(self, rates, shares, ("particles", "slices"))

    def init(self, key: Array, spec: Spec) -> OccupancyState:
        """Networks that start at ω = 1, particles nowhere."""
        check_continuous(self, spec)
        sizes = spec.observation_size, spec.action_size
        keys = jax.random.split(key, 3)
        kind = GaussianSuccessor if self.successor == "gaussian" else LoggedSuccessor
        networks = Networks(
            TanhBehaviour(keys[0], *sizes, self.hidden, self.precision),
            kind(keys[1], *sizes, self.hidden, self.precision),
            make_classifier(keys[2], sizes[0], self.hidden, 4 if self.paired else 2, self.precision),
        )
        nowhere = jnp.full((1 + self.paired, self.slices, self.particles, sizes[0]), NOWHERE, jnp.float32)
        zero = jnp.float32(0.0)
        return OccupancyState(
            networks=networks,
            means=networks,
            optimiser=ADAM.init(tuple(networks)),
            cloud=Cloud(nowhere, jnp.int32(0)),
            low=jnp.zeros(sizes[0]),  # the mean of standardised data lies in their range
            high=jnp.zeros(sizes[0]),
            health=OccupancyHealth(zero, jnp.float32(1.0), zero, zero, zero, jnp.float32(0.5)),
            mass=jnp.float32(1.0),
            unreliable=jnp.bool_(False),
            standard=Standard(spec.observation_mean, spec.observation_std),
        )

    def update(
        self, state: OccupancyState, batch: Batch, policy: Policy, discount: Array, key: Array
    ) -> tuple[OccupancyState, Metrics]:
        """One step of the particles, then one of β̂, the model and the classifier; no gradient runs between them."""
        move_key, draw_key = jax.random.split(key)
        standard, count = state.standard, len(batch.reward)
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
        states, shares = self.examples(cloud, logged.state, batch, discount, draw_key)

        def losses(parts: tuple[Any, Any, Any]) -> tuple[Array, Any]:
            behaviour, model, classifier = parts
            nll = behaviour.loss(logged.state, logged.action)
            model_loss, errors = model.loss(logged)
            loss, scores = classifier_loss(classifier, states, shares)
            return nll + model_loss + loss, (nll, model_loss, errors, loss, scores)

        parts = tuple(state.networks)
        (total, (nll, model_loss, errors, loss, scores)), gradients = jax.value_and_grad(losses, has_aux=True)(parts)
        rates = (self.behaviour_lr, self.model_lr, self.classifier_lr)
        stepped, optimiser, finite = descend(parts, total, gradients, state.optimiser, rates)
        networks = Networks(*stepped)
        moves = state.cloud.moves
        followed = averaged(state.means[:2], networks[:2], self.model_average, moves)
        means = Networks(*followed, averaged(state.readout, networks.classifier, self.average, moves))
        right = accuracy(scores[:count], shares[:count, 0], scores[-count:])
        seen = OccupancyHealth(errors[0], errors[1], moved.restarted, moved.left, moved.clipped, right)
        health = running(state.health, seen, self.health_rate, finite)
        error = health.error / jnp.maximum(health.constant, 1e-12)
        mass = jnp.minimum(1.0, (1.0 - discount) / jnp.maximum(health.restarted, 1e-12))
        unreliable = (
            ~finite
            | (error > self.max_error)
            | (health.left > self.max_left)
            | (health.accuracy > self.max_accuracy)
            | (health.clipped > self.max_clipped)
        )
        new = OccupancyState(
            networks, means, optimiser, cloud, state.low, state.high, health, mass, unreliable, standard
        )
        here = log_ratio(state.readout, logged.state)  # from before this step, as the weights are: one pass for both
        ratio = state.mass * jnp.exp(here)
        return new, predicted_reward(ratio, batch.reward) | {
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
            "ratio/unreliable": unreliable.astype(jnp.float32),
        }

    def advance(
        self, state: OccupancyState, logged: Transitions, starts: Array, policy: Policy, discount: Array, key: Array
    ) -> tuple[Cloud, Moved]:
        """One step of a slice of the particles of either kind, by the model and β̂, with the same random numbers."""
        cloud, slot = state.cloud, state.cloud.moves % self.slices
        here = cloud.particles[:, slot]
        action_key, move_key = jax.random.split(key)
        action, _ = policy(state.standard.raw(here[0])).sample(action_key)
        # of both kinds at once, as the model below: small products cost their start
        both = state.means.behaviour(here)
        ours, *theirs = (TanhGaussian(*each) for each in zip(both.mean, both.log_std, strict=True))
        action, clipped = box(ours, action, self.width)
        actions = jnp.stack([action, *(each.sample(action_key)[0] for each in theirs)])
        moved, restarted, left = jax.vmap(partial(self._move, state, logged, starts, discount, move_key))(here, actions)
        particles = jax.lax.dynamic_update_index_in_dim(cloud.particles, moved, slot, 1)
        return Cloud(particles, cloud.moves + 1), Moved(restarted[0], left[0], clipped)

    def _move(
        self, state: OccupancyState, logged: Transitions, starts: Array, discount: Array, key: Array, here: Array,
        action: Array,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        """Where particles go, and the shares that restarted and that left the data's range."""
        keys = jax.random.split(key, 3)
        moved, ended = state.means.model.step(here, action, logged, jnp.asarray(self.noise, jnp.float32), keys[0])
        reach = self.margin * (state.high - state.low)
        inside = jnp.all((moved >= state.low - reach) & (moved <= state.high + reach), axis=-1)  # not so for NaN
        again = jax.random.uniform(keys[1], (self.particles,)) < 1.0 - discount
        restart = again | ended | ~inside
        begin = starts[jax.random.randint(keys[2], (self.particles,), 0, len(starts))]
        left = jnp.mean(~inside & ~again & ~ended, dtype=jnp.float32)
        there = jax.lax.stop_gradient(jnp.where(restart[:, None], begin, moved))
        return there, jnp.mean(restart, dtype=jnp.float32), left

    def examples(self, cloud: Cloud, here: Array, batch: Batch, discount: Array, key: Array) -> tuple[Array, Array]:
        """States and their shares for the classifier: the policy's particles first, the batch's states last."""
        count = len(here)
        slot_key, particle_key = jax.random.split(key)
        slots = jax.random.randint(slot_key, (count,), 0, jnp.minimum(cloud.moves, self.slices))
        which = jax.random.randint(particle_key, (count,), 0, self.particles)
        drawn, each = cloud.particles[:, slots, which], jnp.full(count, 1.0 / count)
        states = jnp.concatenate([*drawn, here])
        if not self.paired:
            return states, against(each, count)
        none = jnp.zeros(count)
        shares = [
            jnp.stack([each, none, none, none], -1),
            jnp.stack([none, each, none, none], -1),
            jnp.stack([none, none, discounted(batch, discount), each], -1),
        ]
        return states, jnp.concatenate(shares)


def discounted(batch: Batch, discount: Array) -> Array:
    """Shares [B] that turn the batch's rows into the behaviour's own discounted occupancy: γᵗ, and γᵗ/(1−γ) at the
    last row of an episode that was cut off, which stands for all that would have followed."""
    if batch.elapsed is None or batch.cut is None:
        raise SappError("OccupancyModel(paired=True) needs data of whole episodes; use paired=False")
    follow = batch.cut * discount / jnp.maximum(1.0 - discount, 1e-6)
    share = jnp.power(discount, batch.elapsed.astype(jnp.float32)) * (1.0 + follow)
    return share / jnp.sum(share)
