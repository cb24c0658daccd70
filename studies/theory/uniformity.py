"""A counterexample to the |S||A| half of Lemma 1's constant: a union over pairs is not uniform over policies.

A safe action leads to a state that pays ε for ever; a gamble leads to one of m states, all equally likely, in each of
which the policy chooses between +1 and −1 for ever. Π holds the safe policy and every gamble that takes +1 in exactly
half of the m states, so all gambles are worth 0. From n logged gambles, the best-looking one takes +1 in the states
that came up most. It looks better than it is by about √(m/n), while C₀·n^{-1/2} grows with √(ln m) only. Sorting finds
the maximiser over the (m choose m/2) policies, so nothing is enumerated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sapp.core.errors import SappError
from sapp.tabular.bounds import c0_printed


@dataclass(frozen=True)
class Uniformity:
    """Lemma 1 with C₀ doubled (Hoeffding's range fixed) but its union still over |S||A|, on redrawn logs of one MDP.

    loss: ⟨ρ, V^{safe} − V^{π̂}⟩ when a gamble is chosen (SUBOPT less ⟨ρ, V^{π*} − V^{safe}⟩, which both sides hold);
    bound: what the lemma allows for it; violated: share of logs in which the loss exceeds the bound.
    """

    loss: float
    bound: float
    violated: float
    logs: int
    states: int
    actions: int


def uniformity(
    logs: int = 1000, successors: int = 64, draws: int = 400, discount: float = 0.9, delta: float = 0.05, seed: int = 0
) -> Uniformity:
    """Redraw the log ``logs`` times and count how often Lemma 1 with twice the printed C₀ fails (as α → 0)."""
    if successors < 2 or successors % 2:
        raise SappError(f"successors is {successors}: it must be even and positive")
    if logs < 1 or draws < 1:
        raise SappError("logs and draws must be positive")
    states, actions = successors + 2, 2
    c0 = 2 * c0_printed(states, actions, np.inf, discount, delta)
    bound = float(1.02 * c0 / np.sqrt(draws))  # 2 % for all other pairs, logged so often that their widths are small
    loss = 1.001 * bound
    pay = loss * (1 - discount) / discount
    if pay > 1:
        raise SappError(f"draws is {draws}: the safe reward would exceed 1; raise draws")
    rng = np.random.default_rng(seed)
    counts = np.sort(rng.multinomial(draws, np.full(successors, 1 / successors), logs), -1)
    half = successors // 2
    looks = (counts[:, half:].sum(-1) - counts[:, :half].sum(-1)) / draws
    return Uniformity(loss, bound, float(np.mean(looks > pay)), logs, states, actions)
