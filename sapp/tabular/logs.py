"""Logged data as counts, and the empirical MDP they define."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapp.core.errors import SappError
from sapp.tabular.mdp import FiniteMDP, Floats

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Log:
    """A log D as counts n(s,a,s') [..., S, A, S] and the sum of its rewards at each pair [..., S, A]."""

    counts: Counts
    reward_sum: Floats

    @property
    def pairs(self) -> Counts:
        """n(s,a) [..., S, A]."""
        return self.counts.sum(-1)

    @property
    def visits(self) -> Counts:
        """n(s) [..., S]."""
        return self.counts.sum((-1, -2))

    @property
    def size(self) -> Counts:
        """|D| [...]."""
        return self.counts.sum((-1, -2, -3))

    def __add__(self, other: Log) -> Log:
        return Log(self.counts + other.counts, self.reward_sum + other.reward_sum)


def log_of(mdp: FiniteMDP, counts: Counts) -> Log:
    """The log with these transition counts, its rewards being the MDP's (deterministic) ones."""
    return Log(counts, counts.sum(-1) * mdp.reward)


def draw_log(
    mdp: FiniteMDP, rng: np.random.Generator, size: int, behaviour: Floats, states: Floats | None = None,
    every_pair: int = 0,
) -> Log:
    """``size`` independent transitions s ~ ``states`` (ρ if not given), a ~ β, s' ~ P, for each problem of the batch.

    ``every_pair`` adds that many transitions from each (s,a) that β may take, so that no supported pair is unseen.
    """
    if size < 1:
        raise SappError(f"size is {size}: a log needs at least one transition")
    states = mdp.start if states is None else states
    joint = np.broadcast_to(states[..., None] * behaviour, (*mdp.batch, mdp.states, mdp.actions))
    flat = joint.reshape(*mdp.batch, -1)
    flat = flat / flat.sum(-1, keepdims=True)
    allowed = np.broadcast_to(behaviour, joint.shape) > 0
    pairs = rng.multinomial(size, flat).reshape(joint.shape) + every_pair * allowed
    return draw_successors(mdp, rng, pairs)


def draw_successors(mdp: FiniteMDP, rng: np.random.Generator, pairs: Counts) -> Log:
    """A log with given pair counts n(s,a) [..., S, A], each pair's successors independent."""
    return log_of(mdp, rng.multinomial(pairs, _proper(mdp.transition)).astype(np.int64))


def draw_episodes(
    mdp: FiniteMDP, rng: np.random.Generator, episodes: int, behaviour: Floats, horizon: int,
    end: NDArray[np.bool_] | None = None, transitions: int | None = None,
) -> Log:
    """Episodes of one MDP under a policy, up to ``horizon`` steps or until a state of ``end`` [S] is entered.

    Steps out of an ``end`` state are not logged. Only counts are kept, so episodes are simulated together: of the m
    episodes in s at step t, actions and successors are multinomial. With ``transitions`` batches of ``episodes`` are
    drawn until the log holds at least that many transitions.
    """
    if mdp.batch:
        raise SappError("draw_episodes takes one MDP: index the batch first")
    end = np.zeros(mdp.states, bool) if end is None else end
    counts = np.zeros(mdp.transition.shape, np.int64)
    rows, behaviour = _proper(mdp.transition), _proper(behaviour)
    while True:
        at = rng.multinomial(episodes, _proper(mdp.start))
        for _ in range(horizon):
            at = np.where(end, 0, at)
            if not at.any():
                break
            pairs = rng.multinomial(at, behaviour)
            taken = np.nonzero(pairs)
            drawn = rng.multinomial(pairs[taken], rows[taken])
            counts[taken] += drawn
            at = drawn.sum(0)
        if transitions is None or counts.sum() >= transitions:
            return log_of(mdp, counts)


def _proper(probability: Floats) -> Floats:
    """Distributions cleaned of rounding, as ``multinomial`` wants them."""
    clean = np.maximum(probability, 0.0)
    return clean / clean.sum(-1, keepdims=True)


@dataclass(frozen=True)
class EmpiricalMDP(FiniteMDP):
    """M_D = (S, A, P_D, r_D, γ, ρ) with what the log says beside it.

    behaviour [..., S, A]: β̂(a|s) = n(s,a)/n(s); visits [..., S]: d^D(s) = n(s)/|D|; pairs [..., S, A]: n(s,a);
    support [..., S, A]: the actions a policy may take (seen ones; in a state never seen, those of ``default``).
    """

    behaviour: Floats
    visits: Floats
    pairs: Floats
    support: NDArray[np.bool_]

    @property
    def seen(self) -> NDArray[np.bool_]:
        """States with n(s) > 0 [..., S]."""
        return self.visits > 0

    @property
    def size(self) -> Floats:
        """|D| [...]."""
        return self.pairs.sum((-1, -2))

    def _mapped(self, change: Any) -> Self:
        ranks = {"transition": 3, "reward": 2, "start": 1, "behaviour": 2, "visits": 1, "pairs": 2, "support": 2}
        return replace(self, **{name: change(getattr(self, name), rank) for name, rank in ranks.items()})


def empirical(
    log: Log, start: Floats, discount: float, unseen_reward: float = 0.0, smoothing: float = 0.0,
    default: Floats | None = None,
) -> EmpiricalMDP:
    """The empirical MDP of a log.

    What the log leaves undefined is defined so: an unseen pair stays where it is and pays ``unseen_reward`` for ever
    (0: unknown; −1: the worst); in a state never seen β̂ is ``default`` [S, A] (uniform if not given), whose support the
    policies are then held to. ``smoothing`` λ makes β̂ = (n(s,a) + λ)/(n(s) + λ|A|) and allows every action.
    """
    if smoothing < 0:
        raise SappError(f"smoothing is {smoothing}: it must not be negative")
    pairs, visits = log.pairs, log.visits
    states, actions = pairs.shape[-2:]
    seen = pairs > 0
    divisor = np.where(seen, pairs, 1)
    stay = np.eye(states)[:, None, :]
    transition = np.where(seen[..., None], log.counts / divisor[..., None], stay)
    reward = np.where(seen, log.reward_sum / divisor, unseen_reward)
    known = (visits > 0)[..., None]
    fill = np.full((states, actions), 1.0 / actions) if default is None else default
    behaviour = (pairs + smoothing) / np.where(known, visits[..., None] + smoothing * actions, 1)
    behaviour = np.where(known, behaviour, fill)
    size = log.size[..., None]
    return EmpiricalMDP(
        transition, reward, np.broadcast_to(start, visits.shape), discount, behaviour, visits / size,
        pairs.astype(np.float64), behaviour > 0,
    )


def model_of(mdp: FiniteMDP, behaviour: Floats, visits: Floats, size: float = np.inf) -> EmpiricalMDP:
    """The limit of infinite data as an empirical MDP: P_D = P, r_D = r, with the given β̂ and d^D."""
    batch = (*mdp.batch, mdp.states, mdp.actions)
    beta = np.broadcast_to(behaviour, batch)
    occupied = np.broadcast_to(visits, batch[:-1])
    pairs = np.where(beta > 0, size * np.where(beta > 0, occupied[..., None] * beta, 1.0), 0.0)
    base = {field.name: getattr(mdp, field.name) for field in fields(FiniteMDP)}
    return EmpiricalMDP(**base, behaviour=beta, visits=occupied, pairs=pairs, support=beta > 0)
