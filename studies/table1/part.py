"""The parts of Table 1, each short enough for half an hour of one GPU.

    python -m studies.table1.part list                 # what they are, how long they take, what is done
    python -m studies.table1.part data 3               # make the datasets of part 3
    python -m studies.table1.part run 3 --out OUT --minutes 22
    python -m studies.table1.part merge ARCHIVE        # put the rows that came home to the others

CQL, SA-CQL and matched of a dataset and seed are in one part: they go on from one shared beginning. Datasets of a part
have one shape wherever that can be, so that it is one program. The last parts add shuffled weights on nine datasets.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from sapp.experiments.grid import scaled
from sapp.experiments.paper_grids import table1
from sapp.experiments.parts import Block, Costs, Part, Study, command

METHODS = ("CQL", "SA-CQL", "matched")
SEEDS = (0, 1, 2)
PAIRS = 4
"""Datasets and seeds per part, with three methods each: what fits into 25 minutes by ``COSTS``."""
COSTS = Costs(step=100e-6, plain=73.6e-6, learning=97e-6, ratio=25e-6, start=75.0, job=75.0)
"""Of one H200 in ``mixed``, three layers of 256. Measured: CQL of 24 members, 12,861 run-steps per second (bench/rows).
Assumed until a part has been trained: that an estimator costs 1.3 times that, and all else. rows/timings.csv has what
finished parts took."""

LARGE = (
    "halfcheetah-expert", "walker2d-medium-replay", "halfcheetah-medium-expert", "walker2d-medium",
    "halfcheetah-medium", "walker2d-expert", "halfcheetah-medium-replay", "walker2d-medium-expert",
    "halfcheetah-full-replay", "walker2d-full-replay", "halfcheetah-random", "walker2d-random",
)  # fmt: skip
"""halfcheetah and walker2d have observations and actions of one size; what is most worth knowing comes first."""
SMALL = (
    "hopper-medium-replay", "hopper-medium-expert", "hopper-medium", "hopper-expert", "hopper-full-replay",
    "hopper-random",
)  # fmt: skip
SHUFFLED = (
    ("hopper-medium",),
    ("halfcheetah-medium", "halfcheetah-medium-replay", "halfcheetah-medium-expert", "walker2d-medium"),
    ("walker2d-medium-replay", "walker2d-medium-expert", "hopper-medium-replay", "hopper-medium-expert"),
)
"""Datasets with shuffled weights: the first beside what is left of the others, the rest in parts of their own."""


def trios(datasets: tuple[str, ...]) -> list[Part]:
    """All methods on datasets with every seed, some pairs of dataset and seed at a time."""
    pairs = [(name, seed) for name in datasets for seed in SEEDS]
    return [
        Part(
            tuple(
                Block(METHODS, (name,), tuple(seed for _, seed in own))
                for name, own in groupby(chosen, key=lambda pair: pair[0])
            )
        )
        for chosen in (pairs[at : at + PAIRS] for at in range(0, len(pairs), PAIRS))
    ]


def parts() -> tuple[Part, ...]:
    """All parts, in the order in which they are best trained: a short one that shows the rate, then large and small."""
    (first,), large, small = trios(LARGE[:1]), trios(LARGE[1:]), trios(SMALL)
    shuffled = [Block(("shuffled",), names, SEEDS) for names in SHUFFLED]
    rest = Part((*large.pop().blocks, *small.pop().blocks, shuffled[0]))
    turns = [part for number, part in enumerate(small) for part in (*large[2 * number : 2 * number + 2], part)]
    return (first, *turns, rest, *(Part((block,)) for block in shuffled[1:]))


STUDY = Study(Path(__file__).parent, table1, scaled("paper", seeds=SEEDS), parts(), COSTS)

if __name__ == "__main__":
    command(STUDY)
