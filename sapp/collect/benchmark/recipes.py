"""What makes each dataset: which policies, in which order, for how many transitions.

random is uniform actions; medium and expert one frozen stochastic policy each; medium-expert the two, one after the
other. The replay sets stand in for the buffer of a training run up to its medium and its expert policy: the run's
snapshots in training order, each for the share of training that lies nearest to it, after the uniform actions with
which the run began. How that differs from a true buffer is measured in docs/datasets.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from sapp.core.errors import SappError
from sapp.data.benchmark_names import Name

UNIFORM = "uniform"
"""The name of uniform actions among policies."""


class Segment(NamedTuple):
    """A stretch of a dataset: a policy's name and how many transitions of it."""

    policy: str
    transitions: int


class Training(NamedTuple):
    """What a recipe needs to know of a training run.

    Attributes:
        steps: snapshot steps by policy name, in training order.
        random_steps: uniform actions at the start.
        medium: name of the medium policy.
        expert: name of the expert policy.
    """

    steps: dict[str, int]
    random_steps: int
    medium: str
    expert: str


def recipe(name: Name, transitions: int, training: Training | None) -> list[Segment]:
    """The segments of a dataset.

    Args:
        name: which.
        transitions: how many in all.
        training: the run behind the policies; None is enough for random.
    """
    least = 2 if name.quality == "medium-expert" else 1
    if transitions < least:
        raise SappError(f"{name.text}: {transitions} transitions are too few, ask for at least {least}")
    if name.quality == "random":
        return [Segment(UNIFORM, transitions)]
    if training is None:
        raise SappError(f"{name.text}: there is no policy to make it with; give one with --policy-from")
    if name.quality == "medium":
        return [Segment(training.medium, transitions)]
    if name.quality == "expert":
        return [Segment(training.expert, transitions)]
    if name.quality == "medium-expert":
        sizes = [Name(name.environment, quality).transitions for quality in ("medium", "expert")]
        medium = min(max(1, round(transitions * sizes[0] / sum(sizes))), transitions - 1)
        return [Segment(training.medium, medium), Segment(training.expert, transitions - medium)]
    last = training.medium if name.quality == "medium-replay" else training.expert
    return replay(training.steps, training.random_steps, training.steps[last], transitions)


def replay(steps: dict[str, int], random_steps: int, end: int, transitions: int) -> list[Segment]:
    """Snapshots in training order up to step ``end``, each for the part of training nearest to it.

    Args:
        steps: snapshot steps by policy name.
        random_steps: uniform actions at the start.
        end: step at which the replayed run stops.
        transitions: how many in all.
    """
    chosen = sorted((step, name) for name, step in steps.items() if step <= end)
    if not chosen:
        raise SappError(f"no snapshot at or before step {end:,}: the replay set cannot be made")
    middles = [(a + b) // 2 for (a, _), (b, _) in pairwise(chosen)]
    edges = [0, min(random_steps, end), *(max(random_steps, middle) for middle in middles), end]
    names = [UNIFORM, *(name for _, name in chosen)]
    return [Segment(name, count) for name, count in zip(names, _shares(edges, transitions), strict=True) if count]


def _shares(edges: Sequence[int], transitions: int) -> list[int]:
    """Whole numbers in proportion to the widths between edges, that sum to ``transitions``."""
    cuts = [round(transitions * edge / edges[-1]) for edge in edges]
    return [b - a for a, b in pairwise(cuts)]
