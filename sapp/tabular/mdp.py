"""Finite Markov decision processes, one or thousands at once, and the policies that act in them.

Arrays are NumPy float64. Leading axes ``...`` index problems; a function of an MDP and a policy broadcasts them. So
``mdp.value(policy)`` takes one policy for one MDP, one for each of 1000, or, with an axis added by ``mdp.expand()``, 32
for each of 1000.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sapp.core.errors import SappError

Floats = NDArray[np.float64]
"""A float64 array; its axes are given in each docstring."""

PROBABILITY_TOLERANCE = 1e-9


@dataclass(frozen=True)
class FiniteMDP:
    """M = (S, A, P, r, γ, ρ) with rewards in [−1, 1]. A terminal is an absorbing state.

    transition [..., S, A, S], reward [..., S, A], start [..., S], discount in [0, 1).
    """

    transition: Floats
    reward: Floats
    start: Floats
    discount: float

    def __post_init__(self) -> None:
        for name in ("transition", "reward", "start"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), np.float64))
        shape = self.transition.shape
        if len(shape) < 3 or shape[-3] != shape[-1]:
            raise SappError(f"transition has shape {shape}: it must be [..., states, actions, states]")
        if self.reward.shape[-2:] != shape[-3:-1] or self.start.shape[-1:] != shape[-1:]:
            raise SappError(
                f"reward {self.reward.shape} and start {self.start.shape} do not fit {shape[-1]} states "
                f"and {shape[-2]} actions"
            )
        if not 0 <= self.discount < 1:
            raise SappError(f"discount is {self.discount}: it must lie in [0, 1)")
        if not _stochastic(self.transition):
            raise SappError("transition holds a row that is not a distribution over states")
        if not _stochastic(self.start):
            raise SappError("start is not a distribution over states")
        if not np.all(np.abs(self.reward) <= 1 + PROBABILITY_TOLERANCE):
            raise SappError("reward leaves [-1, 1]: rescale it")

    @property
    def states(self) -> int:
        """|S|."""
        return int(self.transition.shape[-1])

    @property
    def actions(self) -> int:
        """|A|."""
        return int(self.transition.shape[-2])

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the leading axes."""
        return tuple(self.transition.shape[:-3])

    def __getitem__(self, index: Any) -> Self:
        """The problems ``index`` of a batch."""
        return self._mapped(lambda array, _: array[index])

    def expand(self) -> Self:
        """The same problems with an axis of length one behind the batch axes, to be broadcast over policies."""
        return self._mapped(lambda array, rank: np.expand_dims(array, array.ndim - rank))

    def _mapped(self, change: Any) -> Self:
        ranks = {"transition": 3, "reward": 2, "start": 1}
        return replace(self, **{name: change(getattr(self, name), rank) for name, rank in ranks.items()})

    def step(self, policy: Floats) -> Floats:
        """AᵖP [..., S, S]: where one step under the policy leads."""
        return (policy[..., None, :] @ self.transition)[..., 0, :]

    def value(self, policy: Floats) -> Floats:
        """V = (I − γAᵖP)⁻¹Aᵖr [..., S]."""
        return solve(self.resolvent_inverse(policy), np.sum(policy * self.reward, -1))

    def resolvent_inverse(self, policy: Floats) -> Floats:
        """I − γAᵖP [..., S, S]."""
        return np.eye(self.states) - self.discount * self.step(policy)

    def action_value(self, value: Floats) -> Floats:
        """r + γPV [..., S, A] for a state value V."""
        return self.reward + self.discount * (self.transition @ value[..., None, :, None])[..., 0]

    def expected(self, value: Floats) -> Floats:
        """⟨ρ, V⟩ [...]."""
        return np.sum(self.start * value, -1)

    def optimal(self, rounds: int = 10_000) -> tuple[Floats, Floats]:
        """An optimal deterministic policy [..., S, A] and its value [..., S], by policy iteration."""
        policy = one_hot(np.argmax(self.reward, -1), self.actions)
        policy = np.broadcast_to(policy, (*self.batch, self.states, self.actions))
        for _ in range(rounds):
            value = self.value(policy)
            action_value = self.action_value(value)
            held = np.sum(policy * action_value, -1)
            better = action_value.max(-1) > held + 1e-10 * (1 + np.abs(held))
            if not better.any():
                return np.array(policy), value
            policy = np.where(better[..., None], one_hot(action_value.argmax(-1), self.actions), policy)
        raise SappError(f"policy iteration did not settle in {rounds} rounds: raise rounds")


def _stochastic(array: Floats) -> bool:
    return bool(np.all(array >= -PROBABILITY_TOLERANCE) and np.allclose(array.sum(-1), 1, rtol=0, atol=1e-8))


def solve(matrix: Floats, right: Floats) -> Floats:
    """x with Mx = b, for M [..., S, S] and b [..., S]."""
    return np.asarray(np.linalg.solve(matrix, right[..., None])[..., 0], np.float64)


def one_hot(index: NDArray[np.integer], size: int) -> Floats:
    """[..., size] with a one at ``index``."""
    return np.eye(size)[index]


# --- policies -------------------------------------------------------------------------------------------------------


def softmax_policy(logits: Floats, support: NDArray[np.bool_] | None = None) -> Floats:
    """π(a|s) ∝ e^logits [..., S, A] over the actions of ``support`` (all if not given)."""
    if support is not None:
        logits = np.where(support, logits, -np.inf)
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def uniform_policy(states: int, actions: int) -> Floats:
    """π(a|s) = 1/|A| [S, A]."""
    return np.full((states, actions), 1.0 / actions)


def random_policies(
    rng: np.random.Generator, shape: tuple[int, ...], support: NDArray[np.bool_] | None = None, scale: float = 2.0
) -> Floats:
    """Softmax of normal logits with standard deviation ``scale`` [..., S, A]; a large scale is nearly greedy."""
    return softmax_policy(scale * rng.normal(size=shape), support)


def deterministic_policies(states: int, actions: int, limit: int = 1 << 16) -> Floats:
    """All |A|^|S| deterministic policies [K, S, A]."""
    if actions**states > limit:
        raise SappError(f"{actions}^{states} deterministic policies are more than {limit}: take a smaller problem")
    table = np.array(list(itertools.product(range(actions), repeat=states)))
    return one_hot(table, actions)


# --- families -------------------------------------------------------------------------------------------------------


def garnet(
    rng: np.random.Generator, count: int, states: int = 6, actions: int = 3, branching: int = 3, discount: float = 0.9
) -> FiniteMDP:
    """Garnet-like problems: each pair leads to ``branching`` random states, rewards uniform in [−1, 1]."""
    if not 1 <= branching <= states:
        raise SappError(f"branching is {branching}: it must lie between 1 and the {states} states")
    shape = (count, states, actions, states)
    order = rng.random(shape).argsort(-1).argsort(-1)
    weight = np.where(order < branching, rng.exponential(size=shape), 0.0)
    return FiniteMDP(
        weight / weight.sum(-1, keepdims=True),
        rng.uniform(-1, 1, (count, states, actions)),
        rng.dirichlet(np.ones(states), count),
        discount,
    )


def chain(
    rng: np.random.Generator, count: int, states: int = 7, slip: float = 0.1, discount: float = 0.9
) -> FiniteMDP:
    """Lines of states with absorbing ends: start in the middle, step left or right, slip the other way; random rewards.

    Both ends pay for ever, one more than the other; on the way rewards are small.
    """
    if states < 3:
        raise SappError(f"a chain of {states} states has no middle: take at least 3")
    transition = np.zeros((count, states, 2, states))
    for s in range(states):
        ends = s in (0, states - 1)
        left, right = (s, s) if ends else (s - 1, s + 1)
        for a, (towards, away) in enumerate([(left, right), (right, left)]):
            transition[:, s, a, towards] += 1 - slip
            transition[:, s, a, away] += slip
    reward = rng.uniform(-0.1, 0.1, (count, states, 2))
    reward[:, 0] = rng.uniform(-1, 1, (count, 1))
    reward[:, -1] = rng.uniform(-1, 1, (count, 1))
    start = np.zeros((count, states))
    start[:, states // 2] = 1
    return FiniteMDP(transition, reward, start, discount)


def grid(
    rng: np.random.Generator, count: int, side: int = 3, slip: float = 0.2, discount: float = 0.9
) -> FiniteMDP:
    """``side`` × ``side`` grids, four moves with slips to a random neighbour, a random absorbing goal, random costs."""
    states = side * side
    moves = [(0, 1), (1, 0), (0, -1), (-1, 0)]
    target = np.zeros((states, 4), int)
    for s, (a, (dr, dc)) in itertools.product(range(states), enumerate(moves)):
        row, column = divmod(s, side)
        target[s, a] = min(max(row + dr, 0), side - 1) * side + min(max(column + dc, 0), side - 1)
    reached = one_hot(target, states)
    base = (1 - slip) * reached + slip * reached.mean(1, keepdims=True)
    transition = np.broadcast_to(base, (count, states, 4, states)).copy()
    goal, at = rng.integers(1, states, count), np.arange(count)
    transition[at, goal] = one_hot(goal, states)[:, None]
    reward = np.broadcast_to(rng.uniform(-1, 0, (count, states, 1)), (count, states, 4)).copy()
    reward[at, goal] = 1.0
    start = np.zeros((count, states))
    start[:, 0] = 1
    return FiniteMDP(transition, reward, start, discount)
