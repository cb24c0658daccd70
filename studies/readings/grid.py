"""What Table 1 lacks to distinguish the readings of the paper's text.

    sapp experiment studies/readings/grid.py --scale paper --steps 300000      # on one machine; part.py: in parts

SA-CQL as the tables run it (range added, state ratio by regression), its controls and CQL come from Table 1's runs of
the same data, seeds and batches, at the same step. Four families, each with its own question:

* **range**: weights in [b0, b1] in place of [b0, b0 + b1], the same with their batch mean everywhere, the paper's
  s-SA-CQL to the letter (random in (b0, b1)), and the mean of that everywhere; where b0 is not 0, on walker2d;
* **zeta**: weights f(ζ(s,a)), which know the action, and the same permuted over the batch and averaged;
* **density**: weights f(ζ·β̂/π), the paper's formula, and the same permuted and averaged;
* **alpha**: CQL at α = 5·2.5 and 5·3, about what b1 = 5 makes of it on average, on the narrow datasets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sapp.experiments.datasets import SMOKE_DATA
from sapp.experiments.grid import Family, Grid, Maker, Scale
from sapp.experiments.variants import changed, named, with_controls
from sapp.weights import ConstantWeights, DualDICE, LogMinMax, StateWeights
from sapp.weights.paper import literal_random, weight_range

RANGE = ("walker2d-medium", "walker2d-medium-replay")
WEIGHTS = ("halfcheetah-medium", "halfcheetah-medium-replay", "hopper-medium")
NARROW = (
    "halfcheetah-expert", "halfcheetah-medium-expert", "hopper-expert", "hopper-medium-expert", "walker2d-expert",
    "walker2d-medium-expert",
)  # fmt: skip
ALPHAS = (12.5, 15.0)
LITERAL = "literal random"
MEAN = "literal mean"
"""Of literal random weights, the same for every state."""


def grid(scale: Scale) -> Grid:
    """All four families; a part of it is chosen by ``part.py``."""
    upper = with_controls(scale, dualdice(scale, span="upper"), {"upper": "real", "upper matched": "matched"})
    fixed = {LITERAL: plain(scale, literal_random), MEAN: plain(scale, mean_of_range)}
    alphas = {f"CQL α={alpha:g}": named(scale, "cql", alpha=alpha) for alpha in ALPHAS}
    return Grid(
        "readings",
        "Readings of the paper, one beside the other",
        "Which range of weights, which weights, and which α give the paper's scores?",
        scale,
        SMOKE_DATA if scale.name == "smoke" else (*RANGE, *WEIGHTS, *NARROW),
        (
            Family("range", {**upper, **fixed}, state_aware=True),
            Family("zeta", routed(scale, "zeta"), state_aware=True),
            Family("density", routed(scale, "density"), state_aware=True),
            Family("alpha", alphas, lead_in=True),
        ),
        focus="upper",
    )


def dualdice(scale: Scale, *, span: str = "added", route: str = "regression") -> Callable[[str], StateWeights]:
    """The paper's weights by the dataset's name, in another reading."""

    def on(dataset: str) -> StateWeights:
        return DualDICE(f=LogMinMax(*weight_range(dataset), span=span), route=route, fallback=scale.fallback)  # type: ignore[arg-type]

    return on


def routed(scale: Scale, route: str) -> dict[str, Maker]:
    """Weights by another route from ζ, and their two controls."""
    kinds = {route: "real", f"{route} shuffled": "shuffled", f"{route} matched": "matched"}
    return with_controls(scale, dualdice(scale, route=route), kinds)


def plain(scale: Scale, weights: Callable[[str], StateWeights]) -> Maker:
    """CQL with weights that no estimator is behind."""
    made = named(scale, "cql")
    return lambda dataset: changed(replace(made(dataset), weights=weights(dataset)), {})


def mean_of_range(dataset: str) -> ConstantWeights:
    """(b0 + b1)/2, the mean of weights that are uniform in (b0, b1)."""
    return ConstantWeights(sum(weight_range(dataset)) / 2)
