"""What every algorithm is: an immutable pytree of hyper-parameters with three verbs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import equinox as eqx
from jax import Array

from sapp.core.errors import SappError, check_ranges
from sapp.core.precision import check_precision
from sapp.core.spec import Batch, Spec
from sapp.networks import Policy
from sapp.weights import StateWeights, Uniform
from sapp.weights.registry import given_weights

Metrics = dict[str, Array]


class Algorithm(eqx.Module):
    """Hyper-parameters and how to learn with them.

    Numbers are leaves, so members of one population may differ in them; fields marked ``static`` are structure and make
    another compiled program. An algorithm receives the weights of the batch's states and multiplies its per-state
    penalty by them; it does not know where they come from. A subclass has the fields ``discount``, ``batch_size``
    (static) and ``weights``.

    A field of one of these names means the same in every subclass.

    Attributes:
        discount: γ of the targets, and of the ratios that state weights learn.
        batch_size: transitions per update.
        weights: state weights that multiply the per-state penalty; an object, or a name such as occupancy.
        hidden: layer sizes of the networks.
        tau: share by which target copies move towards the networks at each update.
        lr: learning rate.
        actor_lr: learning rate of the actor.
        critic_lr: learning rate of the critics.
        temperature_lr: learning rate of the temperature, the weight of the entropy.
        initial_temperature: the temperature at the start.
        behaviour_lr: learning rate of the cloned behaviour.
        behaviour_steps: updates at the start that only clone the behaviour.
        vae_hidden: layer sizes of the VAE.
        vae_lr: learning rate of the VAE.
        share: weight of the critics' minimum in share·min + (1 − share)·max.
        normalise: standardise observations with the data's mean and deviation.
        precision: of matrix products: auto, float32, tf32 or mixed.

    Examples:
        >>> import sapp
        >>> algorithm = sapp.preset("td3bc")
        >>> isinstance(algorithm, sapp.Algorithm), algorithm.discount, algorithm.batch_size
        (True, 0.99, 256)
    """

    discount: eqx.AbstractVar[float]
    batch_size: eqx.AbstractVar[int]
    weights: eqx.AbstractVar[StateWeights]
    needs_next_action: ClassVar[bool] = False
    """Whether batches must carry the next logged action."""
    discrete_actions: ClassVar[bool] = False
    """Whether it is for data with discrete actions, not vectors."""
    images: ClassVar[bool] = False
    """Whether it also takes frames for observations."""

    def __post_init__(self) -> None:
        """Weights may be given by name: ``CQL(weights="occupancy")``, see ``sapp.weights.registry``."""
        self.weights = given_weights(self.weights)

    def init(self, key: Array, spec: Spec) -> Any:
        """Initial parameters and optimiser states."""
        raise TypeError(f"{type(self).__name__} must define init()")

    def update(self, state: Any, batch: Batch, weights: Array, key: Array) -> tuple[Any, Metrics]:
        """One gradient step on a batch with state weights [B]; the metrics must contain ``loss``."""
        raise TypeError(f"{type(self).__name__} must define update()")

    def scheduled_update(
        self, state: Any, batch: Batch, weights: Array, key: Array, step: Array
    ) -> tuple[Any, Metrics]:
        """``update``, told how many updates came before: what the training loop calls.

        An algorithm with a schedule (a policy that learns every second step, a warm start) defines this one instead.
        The count is the same for all members, so a ``lax.cond`` on it skips the work of the branch not taken.
        """
        return self.update(state, batch, weights, key)

    @property
    def preparation(self) -> int:
        """Updates that come before the algorithm proper, such as cloning the behaviour: ``train`` adds them."""
        return 0

    def policy(self, state: Any) -> Policy:
        """The current policy, with all that it needs to act."""
        raise TypeError(f"{type(self).__name__} must define policy()")

    def largest_target(self, reward: float, action_size: int, row: Mapping[str, float]) -> float | None:
        """The most that one step adds to a target in size, for rewards of at most this size; None: it has no bound.

        ``row`` is what the member has logged (the temperature of an entropy, the largest weight of a penalty). Divided
        by 1 − γ it bounds |Q|.
        """
        return reward

    def features(self, state: Any, observation: Array) -> Array:
        """What state weights see of observations [B, …]: the observations themselves, or an encoder's output [B, F].

        Weights never reach what is before their features: no gradient of theirs goes into an encoder.
        """
        return observation

    def feature_policy(self, state: Any) -> Policy:
        """The current policy as a function of ``features``."""
        return self.policy(state)

    def feature_spec(self, spec: Spec) -> Spec:
        """The problem as state weights see it, with ``features`` as its observations."""
        return spec


def check_settings(algorithm: Algorithm, *positive: str, counts: tuple[str, ...] = ()) -> None:
    """Refuse settings that no algorithm can have, by name: learning rates, discount and tau out of range, no layers,
    what is no number.

    ``positive`` names further numbers that must be 0 or more, ``counts`` whole numbers that must be 1 or more.
    """
    owner = type(algorithm).__name__
    fields = {field.name: getattr(algorithm, field.name) for field in dataclasses.fields(algorithm)}
    if "precision" in fields:
        check_precision(fields["precision"])
    rates = {name: value for name, value in fields.items() if name.endswith("_lr") or name in positive}
    check_ranges(owner, rates, 0.0, float("inf"))
    check_ranges(owner, {name: fields[name] for name in ("discount", "tau") if name in fields}, 0.0, 1.0)
    check_ranges(owner, {name: fields[name] for name in ("batch_size", *counts)}, 1.0, float("inf"))
    if lost := [name for name, value in fields.items() if isinstance(value, float) and math.isnan(value)]:
        raise SappError(f"{owner}: {lost[0]} is nan; it must be a number")
    if empty := [name for name, value in fields.items() if name.endswith("hidden") and not value]:
        raise SappError(f"{owner}: {empty[0]} must name at least one layer")


def check_no_weights(algorithm: Algorithm, why: str) -> None:
    """Refuse state weights for an algorithm that has no per-state penalty to multiply them with."""
    if not isinstance(algorithm.weights, Uniform):
        raise SappError(f"{type(algorithm).__name__} takes no state weights: {why}; leave weights at Uniform()")
