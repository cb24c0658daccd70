"""Populations: members of one shape with the data they learn from, trained by one compiled program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from sapp.core.backend import on_cuda
from sapp.core.spec import Spec
from sapp.networks import Policy
from sapp.runs.learners import Group, Learner, Sums
from sapp.runs.members import Member
from sapp.runs.phases import Phase
from sapp.training.feed import Data, Feed
from sapp.training.program import AXIS, Inputs, Result, compiled, counter, first_metrics, learner_spec, mesh_of, place
from sapp.training.step import Kind, draw

STRIDE = 50
"""On an accelerator this many steps are one iteration of the loop. A loop whose length is known when it is compiled is
queued ahead; before each iteration of one whose length is not, the host waits for the device. What a member draws its
batches from is drawn for a stride at once."""
TOGETHER = 8
"""At most so many populations share a program: compiling takes time, and it takes all of theirs at once."""


class Population:
    """A group of members and their data."""

    def __init__(self, members: Sequence[Member], data: Data, specs: Sequence[Spec]) -> None:
        """``data`` holds the datasets that ``member.dataset`` counts, ``specs`` describes each."""
        self.group = Group(members, specs)
        self.members = self.group.members
        self.stride = 1 if jax.default_backend() == "cpu" else STRIDE
        draws = [(member.dataset, member.seed) for member in members]
        self.supply = data.supply(draws, members[0].algorithm.batch_size, self.stride)
        self.mesh = mesh_of(len(members)) if self.supply.resident else None
        self.variants = variants_of(draws) if on_cuda() and self.mesh is None and self.supply.shares_batches else 1
        """How many members share each batch; see ``variants_of``."""
        self._feed: Feed = self.supply.feed
        self._shared: Any = self.group.algorithm, self.group.keys, self.group.dataset
        self._logged: dict[Kind, tuple[str, ...]] = {}
        if self.mesh is not None:
            self._feed = place(self.mesh, self._feed, P())
            self._shared = place(self.mesh, self._shared, P(AXIS))

    @property
    def has_ratio(self) -> bool:
        """Whether the state weights of this population learn."""
        return self.group.has_ratio

    def kind(self, phase: Phase) -> Kind:
        """What is compiled for a phase."""
        return Kind(phase.base, phase.ratio and self.has_ratio, phase.weighted, self.variants)

    def init(self) -> Learner:
        """Fresh members."""
        return self.group.init()

    def policies(self, learner: Learner) -> Policy:
        """Policies of all members, stacked."""
        return self.group.policies(learner)

    def metric_names(self, phase: Phase) -> tuple[str, ...]:
        """What a phase logs: found by tracing, which takes longer than a short chunk, so once for each kind."""
        kind = self.kind(phase)
        if kind not in self._logged:
            learner = self.group.shapes()
            self._logged[kind] = tuple(jax.eval_shape(partial(first_metrics, kind), self.inputs(self._feed), learner))
        return self._logged[kind]

    def empty_sums(self, phase: Phase) -> Sums:
        """Zero sums with the metrics that this phase logs, each its own buffer: they are donated to the next chunk."""
        count = len(self.members)
        return Sums(
            {name: jnp.zeros(count, jnp.float32) for name in self.metric_names(phase)}, jnp.zeros(count, jnp.float32)
        )

    def run(self, learner: Learner, sums: Sums, phase: Phase, steps: int) -> tuple[Learner, Sums]:
        """Train all members for a number of steps. The inputs' buffers are given up (donated)."""
        (learner,), (sums,) = run_together([self], [learner], [sums], phase, steps)
        return learner, sums

    def inputs(self, feed: Feed) -> Inputs:
        """The population as the program takes it."""
        algorithm, keys, dataset = self._shared
        return algorithm, feed, keys, dataset

    def feeds(self, kind: Kind, learner: Learner, steps: int) -> Iterator[tuple[Feed, int]]:
        """Where the next steps' batches come from, and for how many of the steps each serves."""
        if self.supply.resident:
            yield self._feed, steps
        else:
            first = int(counter(kind, learner))
            yield from self.supply.blocks(0 if kind.base else 1, first, first + steps)

    def close(self) -> None:
        """Stop what brings batches from the host."""
        self.supply.close()

    def batch_rows(self, member: int, update: int) -> np.ndarray:
        """Row numbers that a member sees at its n-th update: its data order, for checking."""
        algorithm, dataset = self.members[member].algorithm, self.group.dataset[member]
        kind = Kind(base=True, ratio=False, weighted=False)
        return np.asarray(draw(kind, algorithm, self._feed, self.group.keys[member], dataset, jnp.int32(update))[1][0])


def variants_of(draws: Sequence[tuple[int, int]]) -> int:
    """How often a list of (dataset, seed) repeats itself: members of equal ones draw equal batches.

    The variants of a table do (CQL, SA-CQL and controls of one dataset and seed). Where observations are images, their
    patches, the larger part of a convolution's memory traffic, are then made once for all variants, and the first
    layer's product is one of many outputs instead of several of few.
    """
    count = len(draws)
    shared_batches = next(
        n for n in range(1, count + 1) if count % n == 0 and list(draws) == list(draws[:n]) * (count // n)
    )
    return count // shared_batches


def run_together(
    populations: Sequence[Population], learners: Sequence[Learner], sums: Sequence[Sums], phase: Phase, steps: int
) -> tuple[list[Learner], list[Sums]]:
    """Train several populations for a number of steps; the inputs' buffers are given up."""
    found, totals = list(learners), list(sums)
    for program, arguments, keep in calls(populations, found, totals, phase, steps):
        keep(program(*arguments))
    return found, totals


Call = tuple[Callable[..., Result], tuple[Any, ...], Callable[[Result], None]]
"""A program, its arguments, and what takes its result."""


def calls(
    populations: Sequence[Population], learners: list[Learner], sums: list[Sums], phase: Phase, steps: int
) -> Iterator[Call]:
    """The calls that train populations for a number of steps; each result replaces its part of ``learners`` and
    ``sums``.

    On a GPU those of one device make their steps side by side in one program: one alone, of a few small networks,
    leaves most of it idle.
    """
    kinds = [population.kind(phase) for population in populations]
    busy = [i for i, kind in enumerate(kinds) if kind.base or kind.ratio]
    apart = [i for i in busy if populations[i].mesh is not None or not populations[i].supply.resident or not on_cuda()]
    rest = [i for i in busy if i not in apart]
    for chosen in [[i] for i in apart] + [rest[i : i + TOGETHER] for i in range(0, len(rest), TOGETHER)]:
        first = populations[chosen[0]]
        others = tuple(populations[i] for i in chosen[1:])
        for feed, count in first.feeds(kinds[chosen[0]], learners[chosen[0]], steps):
            mine = tuple(learners[i] for i in chosen), tuple(sums[i] for i in chosen)
            if first.mesh is not None:
                mine = place(first.mesh, mine[0], (learner_spec(),)), place(first.mesh, mine[1], P(AXIS))
            inputs = first.inputs(feed), *(each.inputs(each._feed) for each in others)
            stride = first.stride if count % first.stride == 0 else 1
            program = compiled([kinds[i] for i in chosen], stride, first.mesh)
            yield program, (inputs, *mine, jnp.int32(count // stride)), partial(_keep, chosen, learners, sums)


def _keep(chosen: Sequence[int], learners: list[Learner], sums: list[Sums], result: Result) -> None:
    for i, learner, total in zip(chosen, *result, strict=True):
        learners[i], sums[i] = learner, total
