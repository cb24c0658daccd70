"""What seeds may score: populations of known mean, for simulations of how often intervals cover it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sapp.core.statistics import Interval

COLLAPSE = 0.15
"""The share of seeds that collapse in the population of that name."""


@dataclass(frozen=True)
class Population:
    """How seeds score, and the mean of all seeds there could be."""

    draw: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
    mean: float


def _collapse(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return np.where(rng.random(shape) < COLLAPSE, rng.normal(10, 5, shape), rng.normal(80, 10, shape))


POPULATIONS = {
    "normal": Population(lambda rng, shape: rng.normal(80, 10, shape), 80.0),
    "student3": Population(lambda rng, shape: 80 + 10 * rng.standard_t(3, shape), 80.0),
    "collapse": Population(_collapse, COLLAPSE * 10 + (1 - COLLAPSE) * 80),
}


def covered(intervals: Sequence[Interval], truth: float) -> float:
    """The share of intervals that hold the truth."""
    return float(np.mean([each.low <= truth <= each.high for each in intervals]))
