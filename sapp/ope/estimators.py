"""One compiled program that fits every estimator of every policy: policies × bootstrap bags, trained together.

A *bag* is a resample of whole episodes. Each bag has its own networks, seeds and batches, shared by all policies, so
that differences between policies carry none of the noise they have in common.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from sapp.core.errors import SappError, check_ranges
from sapp.core.pytrees import all_finite, polyak, select
from sapp.core.spec import Batch
from sapp.data import Dataset
from sapp.networks import Precision
from sapp.ope.dice import ADAM as DICE_ADAM
from sapp.ope.dice import RatioScale, ratios, saddle_gradient
from sapp.ope.fqe import ValueScale, action_values, bellman_loss, make_network, policy_values
from sapp.ope.targets import Targets

FQE_ADAM = optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-8)
ROWS_AT_ONCE = 16_384
"""Rows whose values are read off the networks at a time, at the end."""
CHECKS = 10
"""Times that the values are looked at while they are fitted; between these the host is not asked."""


@dataclass(frozen=True)
class Settings:
    """How estimators are fitted.

    Attributes:
        discount: γ.
        steps: gradient steps, one of FQE and one of DualDICE each.
        bags: bootstrap resamples of the episodes, each with its own networks.
        batch_size: rows per step.
        hidden: layer sizes of every network; () makes tables of one-hot states.
        value_lr: of FQE, decayed to a tenth over the last half; by default 3e-4 for 20,000 steps or more, and larger
            for fewer, by √(20,000/steps) up to 3.3.
        target_rate: of FQE's target network, τ; by default so that values settle within a tenth of the steps,
            10/((1−γ)·steps), between 0.005 and 0.1.
        nu_lr: of DualDICE's ν; by default as ``value_lr``.
        zeta_lr: of DualDICE's ζ; by default from 1e-3 by the same rule.
        average_rate: of the running mean of ζ's parameters, which is what is used.
        precision: of FQE's matrix products; DualDICE always computes in float32 at highest precision.
        draws: actions kept a state for stochastic policies of continuous actions.
        seed: of bags, networks and batches.
        exact: solve the equations instead, where states are one-hot and actions discrete (``sapp.ope.exact``).
    """

    discount: float = 0.99
    steps: int = 20_000
    bags: int = 8
    batch_size: int = 256
    hidden: tuple[int, ...] = (256, 256)
    value_lr: float | None = None
    target_rate: float | None = None
    nu_lr: float | None = None
    zeta_lr: float | None = None
    average_rate: float = 1e-3
    precision: Precision = "auto"
    draws: int = 4
    seed: int = 0
    exact: bool = False

    def rates(self) -> dict[str, float]:
        """Learning rates and τ, as given or by their rules."""
        pace = min(3.3, max(1.0, (20_000 / self.steps) ** 0.5))
        target = min(0.1, max(0.005, 10.0 / ((1.0 - self.discount) * self.steps)))
        rules = {"value_lr": 3e-4 * pace, "nu_lr": 3e-4 * pace, "zeta_lr": 1e-3 * pace, "target_rate": target}
        return {name: rule if getattr(self, name) is None else getattr(self, name) for name, rule in rules.items()}

    def __post_init__(self) -> None:
        check_ranges("offline evaluation", {"discount": self.discount}, 0.0, 1.0, open_ends=True)
        for name, least in (("steps", 1), ("bags", 2), ("batch_size", 1), ("draws", 1)):
            if getattr(self, name) < least:
                raise SappError(f"offline evaluation: {name} is {getattr(self, name)}; it must be at least {least}")
        check_ranges("offline evaluation", self.rates(), 0.0, float("inf"))


class Logs(eqx.Module):
    """A dataset on the device, observations standardised, with the bags' rows: [N, …], [E, …], [B, …]."""

    observation: Array
    action: Array
    reward: Array
    next_observation: Array
    terminal: Array
    start: Array
    episode: Array
    bag_rows: Array
    bag_sizes: Array
    bag_episodes: Array

    @classmethod
    def of(cls, data: Dataset, counts: np.ndarray) -> Logs:
        """Upload a dataset; ``counts`` [B, E] says how often each bag holds each episode."""
        mean, std = standardisation(data)
        episode = np.repeat(np.arange(data.num_episodes), data.episode_lengths)
        held = [np.repeat(np.arange(data.size), row[episode]) for row in counts]
        rows = np.zeros((len(counts), max(len(each) for each in held)), np.int32)
        for out, each in zip(rows, held, strict=True):
            out[: len(each)] = each
        episodes = np.stack([np.repeat(np.arange(data.num_episodes), row) for row in counts])

        def standard(observation: np.ndarray) -> Array:
            return jnp.asarray((observation - mean) / std, jnp.float32)

        return cls(
            observation=standard(data.observation),
            action=jnp.asarray(data.scaled_action()),
            reward=jnp.asarray(data.reward),
            next_observation=standard(data.next_observation),
            terminal=jnp.asarray(data.terminal, jnp.float32),
            start=standard(data.initial_observation),
            episode=jnp.asarray(episode, jnp.int32),
            bag_rows=jnp.asarray(rows),
            bag_sizes=jnp.asarray([len(each) for each in held], jnp.int32),
            bag_episodes=jnp.asarray(episodes, jnp.int32),
        )


class Scales(eqx.Module):
    """Units in which Q, and ν and ζ, are learned."""

    value: ValueScale
    ratio: RatioScale


class Fit(eqx.Module):
    """Networks of one estimator: Q and its target, ν, ζ and the running mean of ζ, optimisers, health."""

    value: Any
    target: Any
    value_optimiser: Any
    nu: Any
    zeta: Any
    average: Any
    dice_optimiser: Any
    nu_size: Array
    dice_alive: Array


@dataclass(frozen=True)
class Fitted:
    """What was read off the fitted networks; arrays are [P, B, E] (policy, bag, episode) unless said otherwise.

    Attributes:
        start_value: E_{a~π} Q(s₀, a) of each episode's start, in units of discounted return.
        weighted_reward: Σ ζ·r over the episode's rows.
        weighted_error: Σ ζ·(r + γ(1−terminal)V(s') − Q(s,a)) over the episode's rows.
        weight: Σ ζ over the episode's rows.
        weight_squared: Σ ζ² over the episode's rows.
        counts: how often each bag holds each episode, [B, E].
        lengths: rows of each episode, [E].
        terminals: whether the logs hold any terminal.
        mass: mean of ζ for the behaviour itself, see ``RatioScale``.
        nu_size: mean |ν| at the end, [P, B].
        dice_alive: whether DualDICE's gradients stayed finite, [P, B].
        history: mean start value of each bag at each of ``CHECKS`` looks, [looks, P, B].
        seconds: that fitting took, compilation included.
        settings: used.
    """

    start_value: np.ndarray
    weighted_reward: np.ndarray
    weighted_error: np.ndarray
    weight: np.ndarray
    weight_squared: np.ndarray
    counts: np.ndarray
    lengths: np.ndarray
    terminals: bool
    mass: float
    nu_size: np.ndarray
    dice_alive: np.ndarray
    history: np.ndarray
    seconds: float
    settings: Settings


def standardisation(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each observation column, but 0 and 1 for columns of 0 and 1.

    Flags and one-hot columns stay as they are: divided by its small deviation, a rare flag would be a huge input.
    """
    flag = ((data.observation == 0) | (data.observation == 1)).all(0)
    mean = np.where(flag, 0.0, data.observation_mean)
    std = np.where(flag, 1.0, np.maximum(data.observation_std, 1e-3))
    return mean.astype(np.float32), std.astype(np.float32)


def bag_counts(episodes: int, bags: int, seed: int) -> np.ndarray:
    """How often each of ``bags`` bootstrap resamples holds each episode, [B, E]; every episode is missed by some bag.

    The doubly robust estimate judges an episode by bags that did not see it. An episode that all bags happen to hold
    (one in forty, with eight bags) is therefore taken out of one of them, chosen at random.
    """
    rng = np.random.default_rng((seed, 7))
    counts = rng.multinomial(episodes, np.full(episodes, 1.0 / episodes), bags)
    if episodes > 1:
        for episode in np.flatnonzero((counts > 0).all(0)):
            bag = int(rng.integers(bags))
            count, counts[bag, episode] = counts[bag, episode], 0
            # its place goes to episodes that the bag holds already or another bag misses: the bag keeps its size, and
            # none of them comes to be held by all
            spare = (np.delete(counts, bag, 0) == 0).any(0)
            spare[episode] = False
            if spare.any():
                np.add.at(counts[bag], rng.choice(np.flatnonzero(spare), count), 1)
    return counts


def fit(
    data: Dataset, targets: Targets, settings: Settings, progress: Callable[[int, int], None] | None = None
) -> Fitted:
    """Fit FQE and DualDICE for every policy on every bag."""
    began = time.perf_counter()
    counts = bag_counts(data.num_episodes, settings.bags, settings.seed)
    logs = Logs.of(data, counts)
    scale = Scales(ValueScale.of(data, settings.discount), RatioScale.of(data, settings.discount))
    shape = _Shape(
        data.observation_size, data.action_size, data.discrete, settings.hidden, settings.precision, settings.batch_size
    )
    numbers = _Numbers.of(settings)
    keys = jax.random.split(jax.random.PRNGKey(settings.seed), settings.bags)
    fits = _init(shape, keys, len(targets.names))
    history = []
    done = 0
    for look in range(CHECKS):
        steps = settings.steps * (look + 1) // CHECKS - done
        if steps:
            fits = _run(shape, numbers, scale, logs, targets.next, targets.start, keys, fits, done, steps)
        done += steps
        starts = np.asarray(_starts(shape, scale, logs, targets.start, fits))
        history.append(np.einsum("pbe,be->pb", starts, counts) / counts.sum(1))
        if progress is not None:
            progress(done, settings.steps)
    reward, error, weight, squared = (
        np.asarray(each, np.float64) for each in _read(shape, numbers, scale, logs, targets.next, fits)
    )
    return Fitted(
        start_value=starts.astype(np.float64),
        weighted_reward=reward,
        weighted_error=error,
        weight=weight,
        weight_squared=squared,
        counts=counts,
        lengths=np.asarray(data.episode_lengths),
        terminals=bool(data.terminal.any()),
        mass=float(scale.ratio.mass),
        nu_size=np.asarray(fits.nu_size),
        dice_alive=np.asarray(fits.dice_alive),
        history=np.stack(history),
        seconds=time.perf_counter() - began,
        settings=settings,
    )


@dataclass(frozen=True)
class _Shape:
    """Structure: another one makes another program."""

    observation_size: int
    action_size: int
    discrete: bool
    hidden: tuple[int, ...]
    precision: Precision
    batch_size: int


class _Numbers(eqx.Module):
    """Numbers: any values, one program."""

    discount: Array
    steps: Array
    value_lr: Array
    target_rate: Array
    nu_lr: Array
    zeta_lr: Array
    average_rate: Array

    @classmethod
    def of(cls, settings: Settings) -> _Numbers:
        names = ("discount", "steps", "average_rate")
        chosen = {name: getattr(settings, name) for name in names} | settings.rates()
        return cls(**{name: jnp.float32(value) for name, value in chosen.items()})


@partial(jax.jit, static_argnums=(0, 2))
def _init(shape: _Shape, keys: Array, policies: int) -> Fit:
    def one(key: Array) -> Fit:
        parts = jax.random.split(key, 3)
        sizes = shape.observation_size, shape.action_size, shape.discrete, shape.hidden
        value = make_network(parts[0], *sizes, precision=shape.precision, scale=1e-2, bias=0.0)
        nu = make_network(parts[1], *sizes, scale=1e-2, bias=0.0)
        zeta = make_network(parts[2], *sizes, scale=1e-2, bias=1.0)
        return Fit(
            value, value, FQE_ADAM.init(value), nu, zeta, zeta, DICE_ADAM.init((nu, zeta)),
            jnp.float32(0.0), jnp.bool_(True),
        )  # fmt: skip

    # every policy starts from the same networks: what differs between them is the policy
    bags = jax.vmap(one)(keys)
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (policies, *leaf.shape)), bags)


def _pick(shape: _Shape, answer: Array, key: Array) -> Array:
    """One of the K draws of each state, as [B, 1, A]; probabilities stay whole."""
    if shape.discrete:
        return answer
    index = jax.random.randint(key, (answer.shape[0], 1, 1), 0, answer.shape[1])
    return jnp.take_along_axis(answer, index, axis=1)


@partial(jax.jit, static_argnums=0, donate_argnums=7)
def _run(
    shape: _Shape, numbers: _Numbers, scale: Scales, logs: Logs, next_answers: Array, start_answers: Array,
    keys: Array, fits: Fit, done: Array, steps: Array,
) -> Fit:  # fmt: skip
    def member(next_answer: Array, start_answer: Array, bag: Array, fit: Fit, key: Array, rate: Array) -> Fit:
        row_key, start_key, next_key, first_key = jax.random.split(key, 4)
        count = shape.batch_size
        rows = logs.bag_rows[bag, jax.random.randint(row_key, (count,), 0, logs.bag_sizes[bag])]
        first = logs.bag_episodes[bag, jax.random.randint(start_key, (count,), 0, logs.bag_episodes.shape[1])]
        batch = Batch(
            logs.observation[rows], logs.action[rows], logs.reward[rows], logs.next_observation[rows],
            logs.terminal[rows], logs.start[first],
        )  # fmt: skip
        following = _pick(shape, next_answer[rows], next_key)
        beginning = _pick(shape, start_answer[first], first_key)
        return _step(numbers, scale, batch, following, beginning, fit, rate)

    bags = jnp.arange(keys.shape[0])
    over_bags = jax.vmap(member, in_axes=(None, None, 0, 0, 0, None))
    over_policies = jax.vmap(over_bags, in_axes=(0, 0, None, 0, None, None))

    def body(step: Array, fits: Fit) -> Fit:
        now = jax.vmap(lambda key: jax.random.fold_in(key, step))(keys)
        rate = numbers.value_lr * decay(step, numbers.steps)
        return over_policies(next_answers, start_answers, bags, fits, now, rate)

    return jax.lax.fori_loop(done, done + steps, body, fits)


def decay(step: Array | int, steps: Array | int) -> Array:
    """1 for half of the steps, then down to a tenth: the last values are averaged over, not jumped at."""
    return jnp.clip(0.1 + 1.8 * (1.0 - step / steps), 0.1, 1.0)


def _step(
    numbers: _Numbers, scale: Scales, batch: Batch, following: Array, beginning: Array, fit: Fit, rate: Array
) -> Fit:
    (loss, _), gradient = jax.value_and_grad(bellman_loss, has_aux=True)(
        fit.value, fit.target, batch, following, scale.value, numbers.discount
    )
    direction, value_optimiser = FQE_ADAM.update(gradient, fit.value_optimiser)
    value = jax.tree.map(lambda p, d: p - rate * d, fit.value, direction)
    fine = jnp.isfinite(loss) & all_finite(gradient)
    value, value_optimiser = select(fine, (value, value_optimiser), (fit.value, fit.value_optimiser))

    j, gradients, (nu_value, _) = saddle_gradient(
        (fit.nu, fit.zeta), scale.ratio, batch, following, beginning, numbers.discount
    )
    directions, dice_optimiser = DICE_ADAM.update(gradients, fit.dice_optimiser)
    nu = jax.tree.map(lambda p, d: p - numbers.nu_lr * d, fit.nu, directions[0])
    zeta = jax.tree.map(lambda p, d: p - numbers.zeta_lr * d, fit.zeta, directions[1])
    fine = jnp.isfinite(j) & all_finite(gradients)
    nu, zeta, dice_optimiser = select(fine, (nu, zeta, dice_optimiser), (fit.nu, fit.zeta, fit.dice_optimiser))
    size = fit.nu_size + 0.01 * (jnp.mean(jnp.abs(nu_value)) - fit.nu_size)
    return Fit(
        value, polyak(fit.target, value, numbers.target_rate), value_optimiser,
        nu, zeta, polyak(fit.average, zeta, numbers.average_rate), dice_optimiser,
        jnp.where(fine, size, fit.nu_size), fit.dice_alive & fine,
    )  # fmt: skip


@partial(jax.jit, static_argnums=0)
def _starts(shape: _Shape, scale: Scales, logs: Logs, start_answers: Array, fits: Fit) -> Array:
    """E_{a~π} Q(s₀, a), [P, B, E]."""

    def one(answer: Array, fit: Fit) -> Array:
        return scale.value.mean + scale.value.std * policy_values(fit.target, logs.start, answer)

    return jax.vmap(jax.vmap(one, in_axes=(None, 0)))(start_answers, fits)


@partial(jax.jit, static_argnums=0)
def _read(
    shape: _Shape, numbers: _Numbers, scale: Scales, logs: Logs, next_answers: Array, fits: Fit
) -> tuple[Array, ...]:
    """Per-episode sums of ζr, ζδ, ζ and ζ², each [P, B, E]; rows are taken in parts to bound memory."""
    size, episodes = logs.reward.shape[0], logs.start.shape[0]
    parts = -(-size // ROWS_AT_ONCE)
    rows = jnp.minimum(jnp.arange(parts * ROWS_AT_ONCE), size - 1).reshape(parts, ROWS_AT_ONCE)
    valid = (jnp.arange(parts * ROWS_AT_ONCE) < size).reshape(parts, ROWS_AT_ONCE)

    def one(answers: Array, fit: Fit) -> tuple[Array, ...]:
        def part(totals: tuple[Array, ...], where: tuple[Array, Array]) -> tuple[tuple[Array, ...], None]:
            index, real = where
            observation, action = logs.observation[index], logs.action[index]
            zeta = ratios(fit.average, scale.ratio, observation, action) * real
            value = scale.value.mean + scale.value.std * action_values(fit.target, observation, action)
            following = scale.value.values(policy_values(fit.target, logs.next_observation[index], answers[index]))
            error = logs.reward[index] + numbers.discount * (1.0 - logs.terminal[index]) * following - value
            terms = zeta * logs.reward[index], zeta * error, zeta, jnp.square(zeta)
            summed = (jax.ops.segment_sum(term, logs.episode[index], episodes) for term in terms)
            return tuple(total + more for total, more in zip(totals, summed, strict=True)), None

        zero: tuple[Array, ...] = (jnp.zeros(episodes, jnp.float32),) * 4
        return jax.lax.scan(part, zero, (rows, valid))[0]

    # one member at a time: activations of all rows of all members would not fit
    def over_bags(answers: Array, fit: Fit) -> tuple[Array, ...]:
        return jax.lax.map(lambda each: one(answers, each), fit)

    return jax.lax.map(lambda pair: over_bags(*pair), (next_answers, fits))
