"""Training without a run folder: many small learners side by side, and what they have learned as arrays.

For studies that ask thousands of learners one question each. Nothing is logged, evaluated or saved; ``sapp.train`` does
that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from sapp.algorithms import Algorithm
from sapp.core.spec import Spec
from sapp.data import Dataset
from sapp.runs.learners import Learner
from sapp.runs.members import Member
from sapp.runs.phases import Phase
from sapp.training.device_data import DeviceData, spec_of
from sapp.training.population import Population


class Pupil(NamedTuple):
    """A learner: its algorithm, the number of its dataset, and its seed."""

    algorithm: Algorithm
    dataset: int = 0
    seed: int = 0


@dataclass(frozen=True)
class Trained:
    """All learners after some steps.

    Attributes:
        step: how many.
        metrics: means over the steps since the last time, [learners] by name.
        seconds: that these steps took; the first time with compilation.
    """

    step: int
    metrics: dict[str, np.ndarray]
    seconds: float
    population: Population
    learner: Learner

    def each(self, function: Callable[[Any, Any, Any], Any]) -> Any:
        """``function(algorithm, base, ratio)`` of every learner: arrays (or a pytree of them) [learners, …].

        ``base`` is the algorithm's state (``algorithm.policy(base)`` is its policy), ``ratio`` its state weights'.
        """
        found = jax.jit(jax.vmap(function))(self.population.group.algorithm, self.learner.base, self.learner.ratio)
        return jax.tree.map(np.asarray, found)


def train_in_memory(
    pupils: Sequence[Pupil], datasets: Sequence[Dataset], phase: Phase, *, every: int | None = None
) -> Iterator[Trained]:
    """Train learners of one structure as one program, and yield them after every so many steps and at the end.

    Args:
        pupils: what learns; algorithms may differ in their numbers, but not in shapes or kinds.
        datasets: that the pupils count.
        phase: what is trained, and for how many steps.
        every: steps between two looks (default: only at the end).

    Example:
        >>> from sapp import CQL, Phase
        >>> from sapp.envs.point import behaviour_dataset
        >>> pupils = [Pupil(CQL(hidden=(8,), alpha=alpha)) for alpha in (1.0, 5.0)]
        >>> *_, last = train_in_memory(pupils, [behaviour_dataset(6)], Phase("train", 10))
        >>> last.metrics["critic/td"].shape
        (2,)
    """
    members = [Member(str(number), *pupil) for number, pupil in enumerate(pupils)]
    specs: list[Spec] = [spec_of(data) for data in datasets]
    population = Population(members, DeviceData.of(list(datasets)), specs)
    learner, done = population.init(), 0
    while done < phase.steps:
        count = min(every or phase.steps, phase.steps - done)
        began = time.perf_counter()
        learner, sums = population.run(learner, population.empty_sums(phase), phase, count)
        jax.block_until_ready(learner)
        done += count
        steps = np.maximum(np.asarray(sums.steps), 1)
        metrics = {name: np.asarray(value) / steps for name, value in sums.values.items()}
        yield Trained(done, metrics, time.perf_counter() - began, population, learner)
        # a look shares its arrays with the learners, whose buffers the next steps take
