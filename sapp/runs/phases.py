"""A training protocol as data: which parts learn, for how many steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sapp.core.errors import SappError


@dataclass(frozen=True)
class Phase:
    """A stretch of training.

    ``base``: the algorithm learns. ``ratio``: the state weights' estimator learns. ``weighted``: the algorithm's
    penalty is multiplied by the state weights (otherwise by 1).

    Examples:
        >>> import sapp
        >>> warm = sapp.Phase("pretrain", 1_000, ratio=False, weighted=False)
        >>> phases = [warm, sapp.Phase("joint", 20_000)]  # for sapp.train(..., phases=phases)
        >>> warm.base, sum(phase.steps for phase in phases)
        (True, 21000)
    """

    name: str
    steps: int
    base: bool = True
    ratio: bool = True
    weighted: bool = True

    def __post_init__(self) -> None:
        if self.steps < 0:
            raise SappError(f"phase {self.name!r} has {self.steps} steps: use 0 or more")


PRETRAIN_STEPS, RATIO_STEPS, JOINT_STEPS = 20_000, 100_000, 1_000_000
"""The paper's protocol (appendix "Implementation Details of SA-CQL")."""


def sa_protocol(
    steps: int = JOINT_STEPS, pretrain: int = PRETRAIN_STEPS, ratio: int = RATIO_STEPS
) -> tuple[Phase, ...]:
    """The paper's three phases: the plain algorithm, then the ratio of its frozen policy, then both together.

    Examples:
        >>> import sapp
        >>> [(phase.name, phase.steps) for phase in sapp.sa_protocol(steps=50_000, pretrain=2_000, ratio=10_000)]
        [('pretrain', 2000), ('ratio', 10000), ('joint', 50000)]
    """
    return (
        Phase("pretrain", pretrain, base=True, ratio=False, weighted=False),
        Phase("ratio", ratio, base=False, ratio=True, weighted=False),
        Phase("joint", steps),
    )


def plain_protocol(steps: int = JOINT_STEPS) -> tuple[Phase, ...]:
    """One phase, for weights that do not learn."""
    return (Phase("train", steps, ratio=False),)


PREPARE = "prepare"
"""The phase in which an algorithm readies itself; its policy is not there yet, and nothing is played."""


def prepared(steps: int, phases: Sequence[Phase]) -> tuple[Phase, ...]:
    """Phases after an algorithm's preparation, if it has any, such as cloning (``Algorithm.preparation``)."""
    return (*((Phase(PREPARE, steps, ratio=False, weighted=False),) if steps else ()), *phases)


def total_steps(phases: Sequence[Phase]) -> int:
    """Steps of all phases together."""
    return sum(phase.steps for phase in phases)


def locate(phases: Sequence[Phase], step: int) -> tuple[int, int]:
    """Index of the phase that the step after ``step`` belongs to, and the step at which that phase ends."""
    end = 0
    for index, phase in enumerate(phases):
        end += phase.steps
        if step < end:
            return index, end
    return len(phases) - 1, end
