"""The parts of the study of readings, each half an hour of one GPU; see studies/table1/part.py for the commands.

python -m studies.readings.part list
"""

from __future__ import annotations

from pathlib import Path

from sapp.experiments.grid import scaled
from sapp.experiments.parts import Block, Costs, Part, Study, command
from studies.readings.grid import ALPHAS, LITERAL, MEAN, RANGE, WEIGHTS, grid

STEPS = 300_000
SEEDS = (0, 1, 2)
CQLS = tuple(f"CQL α={alpha:g}" for alpha in ALPHAS)
COSTS = Costs(step=100e-6, plain=73.6e-6, learning=97e-6, ratio=25e-6, start=120.0, job=90.0)
"""As Table 1's, with more datasets and more programs per part."""
PARTS = (
    Part((
        Block(("upper", "upper matched", LITERAL, MEAN), RANGE, SEEDS),
        Block(CQLS, ("halfcheetah-expert", "halfcheetah-medium-expert", "walker2d-expert"), SEEDS),
    )),
    Part((
        Block(("zeta", "zeta shuffled", "zeta matched"), WEIGHTS, SEEDS),
        Block(CQLS, ("hopper-expert", "walker2d-medium-expert"), SEEDS),
    )),
    Part((
        Block(("density", "density shuffled", "density matched"), WEIGHTS, SEEDS),
        Block(CQLS, ("hopper-medium-expert",), SEEDS),
    )),
)  # fmt: skip

STUDY = Study(Path(__file__).parent, grid, scaled("paper", steps=STEPS, seeds=SEEDS), PARTS, COSTS)

if __name__ == "__main__":
    command(STUDY)
