"""Table 7 of the paper: SA-CQL on halfcheetah and hopper with walker2d's b0 = 0.5: weights that never vanish."""

from __future__ import annotations

from sapp.experiments.datasets import ALL_QUALITIES, datasets_of
from sapp.experiments.grid import Family, Grid, Scale
from sapp.experiments.variants import CONTROLS, cql_family, dualdice, with_controls

B0 = 0.5


def grid(scale: Scale) -> Grid:
    """The experiment at a scale: SA-CQL and its controls at both values of b0, all from one shared beginning."""
    kinds = {f"{name} b0={B0:g}": kind for name, kind in CONTROLS.items() if kind != "uniform"}
    raised = with_controls(scale, dualdice(scale, B0), kinds)
    return Grid(
        "b0",
        "Table 7: one lower end of the weights for all tasks",
        "Does SA-CQL depend on the lower end of its weights being chosen by task (0 here, 0.5 on walker2d)?",
        scale,
        datasets_of(scale, ("halfcheetah", "hopper"), ALL_QUALITIES),
        (Family("cql-b0", {**cql_family(scale).variants, **raised}, state_aware=True),),
    )
