"""Whether critics' values are what the data allow: |Q| cannot be much larger than the rewards add up to.

With rewards of at most R and a discount γ no return exceeds R/(1 − γ), and what an algorithm adds to its targets in
every step (an entropy, a penalty's share) adds up in the same way. A critic beyond that has lost its scale, whatever
its policy still scores; and one whose TD error is several times what a step adds no longer follows its targets. Both
are seen long before a loss overflows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sapp.algorithms import Algorithm
from sapp.runs.events import EventKind

VALUE, LIMIT, TD = "critic/value", "critic/value_limit", "critic/td"
"""Metrics: the mean of Q over logged actions, the largest |Q| that the data allow, and the mean squared TD error."""
SPEAK, STOP = 1.25, 10.0
"""A mean value beyond so many times the limit is an event; beyond so many, the member is stopped."""
LOST = 3.0
"""So is a root mean squared TD error beyond so many times what one step adds: the critic no longer follows its
targets. Healthy ones on D4RL's datasets stay well below."""


def largest_reward(dataset: Any) -> float:
    """max |r| of a dataset."""
    reward = np.asarray(dataset.reward)
    return float(np.max(np.abs(reward))) if reward.size else 0.0


class Guard:
    """The limits of a run's members, in the order of its rows."""

    def __init__(self, algorithms: Sequence[Algorithm], rewards: Sequence[float], action_sizes: Sequence[int]) -> None:
        """Of each member: its algorithm, max |r| of its data, and the width of an action."""
        self._members = list(zip(algorithms, rewards, action_sizes, strict=True))

    def limit(self, member: int, row: Mapping[str, float]) -> float | None:
        """The largest |Q| of a member, given what it logged; None where its algorithm knows of none."""
        algorithm, reward, size = self._members[member]
        if VALUE not in row or not (discount := float(algorithm.discount)) < 1.0:
            return None
        most = algorithm.largest_target(reward, size, row)
        return None if most is None else most / (1.0 - discount)

    def finding(self, member: int, row: Mapping[str, float]) -> EventKind | None:
        """What is wrong with a member's critics in a row that holds their limit."""
        limit = row.get(LIMIT)
        if limit is None or not limit > 0.0:
            return None
        value = abs(row[VALUE])
        if not value <= STOP * limit:
            return EventKind.VALUE_STOPPED
        if value > SPEAK * limit:
            return EventKind.VALUE_BEYOND
        step = limit * (1.0 - float(self._members[member][0].discount))
        return EventKind.TARGETS_LOST if math.sqrt(row.get(TD, 0.0)) > LOST * step else None
