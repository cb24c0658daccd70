"""Table 2 of the paper: discrete SA-CQL on logs of four Atari games, beside CQL, its controls and REM."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sapp.algorithms.config import override
from sapp.algorithms.registry import preset
from sapp.experiments.grid import Family, Grid, Scale
from sapp.experiments.variants import named, with_controls
from sapp.weights import StateWeights
from sapp.weights.paper import GAMES

REM = "REM"
SMOKE_SIZES: dict[str, Any] = {
    "network.channels": (8,), "network.kernels": (6,), "network.strides": (3,), "network.features": 32, "lr": 1e-3,
    "target_every": 50, "ensemble": 4, "batch_size": 32, "weights.of.hidden": (32, 32),
}  # fmt: skip
"""Small networks on the small image game: enough to see every part at work, not to compare methods."""


def grid(scale: Scale) -> Grid:
    """The experiment at a scale; the games' logs are found in the folder of the data."""
    smoke = scale.name == "smoke"
    changes = SMOKE_SIZES if smoke else scale.changes
    if "precision" in scale.changes:
        changes = {**changes, "network.precision": scale.changes["precision"]}
    sized = replace(scale, changes=changes)

    def weights(dataset: str) -> StateWeights:
        return override(preset("sa-discrete-cql", dataset).weights, {"fallback": scale.fallback})

    return Grid(
        "atari",
        "Table 2: discrete SA-CQL on Atari",
        "Does weighting discrete CQL's pessimism state by state (SA-CQL) give better players from logged frames than "
        "CQL, than REM, and than three controls whose weights know nothing of the states?",
        scale,
        ("catch-60",) if smoke else GAMES,
        (
            Family("discrete-cql", with_controls(sized, weights, base="sa-discrete-cql"), state_aware=True),
            Family("rem", {REM: named(sized, "rem")}, lead_in=True),
        ),
    )
