"""How fast a population learns: compiled once, then timed over stretches of equal length."""

from __future__ import annotations

import time

import equinox as eqx
import jax
import numpy as np

from sapp.runs.phases import Phase
from sapp.training.population import Population


def measure(population: Population, phase: Phase, seconds: float, past: int = 0, even: int = 1) -> tuple[float, float]:
    """Steps per second (all members make one at once) and the seconds of compiling.

    Args:
        population: what learns.
        phase: in which.
        seconds: of each of three timed stretches, after two that find their length.
        past: updates made before, for algorithms whose first steps are others.
        even: stretches are multiples of so many steps (a policy that learns every second one).
    """
    learner = population.init()
    learner = eqx.tree_at(lambda x: x.updates, learner, learner.updates + past)
    sums = population.empty_sums(phase)
    began = time.perf_counter()
    learner, sums = population.run(learner, sums, phase, population.stride)
    jax.block_until_ready(learner)
    compiled = time.perf_counter() - began
    stride, rates = even * population.stride, []
    steps = 2 * stride
    for _ in range(5):
        began = time.perf_counter()
        learner, sums = population.run(learner, sums, phase, steps)
        jax.block_until_ready(learner)
        rates.append(steps / (time.perf_counter() - began))
        steps = stride * max(2, int(rates[-1] * seconds / stride))
    assert bool(np.all(np.asarray(learner.alive))), "a member diverged"
    return float(np.median(rates[2:])), compiled
