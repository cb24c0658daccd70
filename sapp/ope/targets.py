"""Policies under evaluation, reduced to tables: what each would do at the logged states.

Off-policy estimators ask a fixed policy for its actions at the same states over and over. They are drawn once, so the
estimators know nothing of networks: policies of any shape, from runs, files or plain functions, are evaluated side by
side in one program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sapp.core.errors import SappError
from sapp.data import Dataset
from sapp.data.action_units import to_unit

Act = Literal["mode", "sample"]
"""How a policy acts: its most likely action, as it is played and exported, or draws from it."""

CHUNK = 65_536
"""States a policy is asked about at a time."""


@dataclass(frozen=True)
class TargetPolicy:
    """A named policy to evaluate.

    ``actions(observation [n, O], seed, count)`` gives, where actions are continuous, ``count`` draws per state
    [n, count, A], scaled to [−1, 1] (a deterministic policy gives one draw, whatever the count); where they are
    discrete, the probabilities of all actions [n, actions].
    ``log_prob(observation, action [n, A])``, where the policy has one, is its log-density of actions scaled to [−1, 1].
    """

    name: str
    actions: Callable[[np.ndarray, int, int], np.ndarray]
    log_prob: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None


def from_actor(name: str, actor: Any, discrete: bool, act: Act = "mode") -> TargetPolicy:
    """A policy given as a pytree (see ``sapp.networks.policy``)."""

    def actions(observation: np.ndarray, seed: int, count: int) -> np.ndarray:
        parts = []
        for number, start in enumerate(range(0, len(observation), CHUNK)):
            part = np.asarray(observation[start : start + CHUNK], np.float32)
            key = jax.random.fold_in(jax.random.PRNGKey(seed), number)
            parts.append(np.asarray(_answer(actor, jnp.asarray(part), key, discrete, act, count)))
        return np.concatenate(parts)

    def log_prob(observation: np.ndarray, action: np.ndarray) -> np.ndarray:
        starts = range(0, len(observation), CHUNK)
        parts = [(observation[start : start + CHUNK], action[start : start + CHUNK]) for start in starts]
        return np.concatenate([np.asarray(_density(actor, *map(jnp.asarray, part))) for part in parts])

    return TargetPolicy(name, actions, None if discrete or act == "mode" else log_prob)


def from_function(name: str, function: Callable[[np.ndarray], Any], data: Dataset) -> TargetPolicy:
    """A deterministic policy given as a function from observations [n, O] to actions, in the data's own units."""

    def actions(observation: np.ndarray, seed: int, count: int) -> np.ndarray:
        chosen = np.asarray(function(data.raw(observation)))
        if data.num_actions is not None:
            index = chosen.reshape(-1).astype(np.int64)
            if len(index) != len(observation) or index.min() < 0 or index.max() >= data.num_actions:
                raise SappError(
                    f"policy {name!r} gave actions outside 0..{data.num_actions - 1}; is it another task's?"
                )
            return np.eye(data.num_actions, dtype=np.float32)[index]
        return to_unit(chosen.reshape(len(observation), 1, -1), data.action_low, data.action_high)

    return TargetPolicy(name, actions)


@eqx.filter_jit
def _density(actor: Any, observation: Array, action: Array) -> Array:
    found: Array = actor(observation).log_prob(action)
    return found


@eqx.filter_jit
def _answer(actor: Any, observation: Array, key: Array, discrete: bool, act: Act, count: int) -> Array:
    law = actor(observation)
    if discrete:
        probs: Array = law.probs
        return jax.nn.one_hot(law.mode(), probs.shape[-1]) if act == "mode" else probs
    return law.mode()[:, None] if act == "mode" else law.sample_many(key, count)[0]


class Targets(eqx.Module):
    """What P policies do at the next states of the N logged steps, at E starts and at M logged states (``rows``).

    Continuous: actions [P, N, K, A] and so on; a policy with one draw has it repeated. Discrete: probabilities
    [P, N, n] and so on. ``taken`` [P, N] is the log-density of the logged actions, scaled to [−1, 1], NaN where one
    has none; None where actions are discrete or the logs hold no densities to compare it with.
    """

    next: Array
    start: Array
    here: Array
    rows: np.ndarray
    names: tuple[str, ...] = eqx.field(static=True)
    taken: np.ndarray | None = None

    @classmethod
    def of(
        cls, policies: Sequence[TargetPolicy], data: Dataset, draws: int = 4, states: int = 4096, seed: int = 0
    ) -> Targets:
        """Ask policies what they do in a dataset.

        Args:
            policies: at least one, with distinct names.
            data: the logs.
            draws: actions kept a state, where policies are stochastic and actions continuous.
            states: how many logged states, evenly spaced, to ask about for the support diagnostics.
            seed: of the draws.
        """
        names = tuple(policy.name for policy in policies)
        if not names or len(set(names)) != len(names):
            raise SappError("give at least one policy to evaluate, each with a name of its own")
        rows = np.unique(np.linspace(0, data.size - 1, min(states, data.size)).astype(np.int64))
        places = data.next_observation, data.initial_observation, data.observation[rows]
        found: list[list[np.ndarray]] = [[], [], []]
        for policy in policies:
            for number, place in enumerate(places):
                answer = np.asarray(policy.actions(place, seed + number, draws), np.float32)
                _check(policy.name, answer, len(place), data)
                found[number].append(answer)
        width = max((answer.shape[1] for answer in found[0]), default=1)

        def stack(answers: list[np.ndarray]) -> Array:
            if data.num_actions is None:  # one draw of a deterministic policy stands for all
                answers = [np.repeat(a, width // a.shape[1], axis=1) if a.shape[1] < width else a for a in answers]
            return jnp.asarray(np.stack(answers))

        taken = None
        if not data.discrete and "log_prob" in data.extras:
            unit, unknown = data.scaled_action(), np.full(data.size, np.nan)
            taken = np.stack(
                [unknown if one.log_prob is None else one.log_prob(data.observation, unit) for one in policies]
            )
        return cls(stack(found[0]), stack(found[1]), stack(found[2]), rows, names, taken)


def _check(name: str, answer: np.ndarray, count: int, data: Dataset) -> None:
    wanted = (count, data.num_actions) if data.num_actions is not None else (count, answer.shape[1], data.action_size)
    if answer.shape != wanted:
        raise SappError(f"policy {name!r} gave actions of shape {answer.shape} for {data.name}; is it another task's?")
    if not np.isfinite(answer).all():
        raise SappError(f"policy {name!r} gives actions that are not finite; train it again or leave it out")


def from_units(policy: TargetPolicy, problem: Any, data: Dataset) -> TargetPolicy:
    """A policy trained on logs in other units (``problem`` is a run's description of them), asked about these.

    Observations and continuous actions are carried over through the units they are logged in.
    """

    def actions(observation: np.ndarray, seed: int, count: int) -> np.ndarray:
        answer = policy.actions(problem.to_network(data.raw(observation)), seed, count)
        if data.discrete:
            return answer
        return to_unit(problem.to_units(answer), data.action_low, data.action_high)

    return TargetPolicy(policy.name, actions)
