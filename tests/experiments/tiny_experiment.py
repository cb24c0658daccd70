"""An experiment that runs in no time."""

from __future__ import annotations

from dataclasses import replace

from sapp.experiments.grid import Grid, Scale
from sapp.experiments.paper_grids import random_ratio

SIZES = {"hidden": (8,), "weights.of.hidden": (8,), "batch_size": 8, "action_samples": 1}


def tiny_grid(steps: int = 20, seeds: tuple[int, ...] = (0, 1)) -> Grid:
    """Figure 3's grid on six logged episodes with networks that train in no time."""
    scale = Scale("smoke", steps, 10, 10, seeds, 10, 2, 10, SIZES)
    return replace(random_ratio(scale), datasets=("point-6",))
