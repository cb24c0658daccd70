"""Table 7 of the paper: SA-CQL on halfcheetah and hopper with walker2d's b0 = 0.5: weights that never vanish."""

from __future__ import annotations

from sapp.experiments.grid import ALL_QUALITIES, CONTROLS, Family, Grid, Scale, cql_family, datasets_of, state_aware

B0 = 0.5


def grid(scale: Scale) -> Grid:
    """The experiment at a scale: SA-CQL and its controls at both values of b0, all from one shared beginning."""
    raised = {f"{name} b0={B0:g}": state_aware(scale, kind, B0) for name, kind in CONTROLS.items() if kind != "uniform"}
    family = cql_family(scale)
    return Grid(
        "b0",
        "Table 7: one lower end of the weights for all tasks",
        "Does SA-CQL depend on the lower end of its weights being chosen by task (0 here, 0.5 on walker2d)?",
        scale,
        datasets_of(scale, ("halfcheetah", "hopper"), ALL_QUALITIES),
        (Family("cql-b0", {**family.columns, **raised}, state_aware=True),),
    )
