"""What makes each dataset: which policies, in which order, for how many transitions.

random is uniform actions; medium and expert one frozen stochastic policy each; medium-expert the two, one after the
other. The replay sets stand in for the buffer of a training run up to its medium and its expert policy: uniform
actions, then the run's snapshots in training order, each for its share. Policies and shares are those of the card that
comes with the policies; they were chosen so that mean return and number of episodes come near D4RL's, which
docs/datasets.md sets side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import NamedTuple

from sapp.core.errors import SappError
from sapp.data.benchmark_names import Name

UNIFORM = "uniform"
"""The name of uniform actions among policies."""
RECIPE = 2
"""Counts the changes of what the datasets are made of; in their metadata. 1: the best policy of each run as expert."""


class Segment(NamedTuple):
    """A stretch of a dataset: a policy's name and how many transitions of it."""

    policy: str
    transitions: int


class Training(NamedTuple):
    """What a recipe needs to know of a training run.

    Attributes:
        steps: snapshot steps by policy name, in training order.
        medium: name of the medium policy.
        expert: name of the expert policy.
        shares: of each replay set, the transitions of each policy in D4RL's size, in training order.
    """

    steps: Mapping[str, int]
    medium: str
    expert: str
    shares: Mapping[str, Mapping[str, int]]


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
    if name.quality not in training.shares:
        raise SappError(f"{name.text}: the card of the policies gives no shares for it; make medium or expert")
    return scaled(training.shares[name.quality], transitions)


def scaled(shares: Mapping[str, int], transitions: int) -> list[Segment]:
    """Segments in proportion to the shares, whole numbers that sum to ``transitions``; those of none are left out."""
    ends = list(accumulate(shares.values()))
    cuts = [0, *(round(transitions * end / ends[-1]) for end in ends)]
    counts = [end - begin for begin, end in pairwise(cuts)]
    return [Segment(policy, count) for policy, count in zip(shares, counts, strict=True) if count]
