"""Table 2 in sixteen minutes of a GPU: short runs on four games' logs, from a start with which Pong learns.

    sapp experiment studies/atari/grid.py --scale small --steps 60000 --data logs --out runs/atari
"""

from __future__ import annotations

from dataclasses import replace

from sapp.experiments import atari
from sapp.experiments.grid import Grid, Scale

SETTINGS = {"network.start": "he", "lr": 1.5e-4, "target_every": 2_000}
"""He's initialisation, without which Pong learns nothing in so short a time; 60,000 updates would see only eight
targets at the published 8,000."""


def grid(scale: Scale) -> Grid:
    """The paper's grid with these settings, short first phases and episodes that are cut."""
    if scale.name == "smoke":
        return replace(atari.grid(scale), name="atari-short")
    short = replace(
        scale, pretrain=10_000, ratio=10_000, eval_every=max(1, scale.steps // 3), eval_episodes=5,
        eval_max_steps=3_000, changes={**scale.changes, **SETTINGS},
    )  # fmt: skip
    return replace(atari.grid(short), name="atari-short")
