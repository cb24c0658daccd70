"""Figure 3 of the paper: SA-CQL against weights drawn at random from the same range (its s-SA-CQL)."""

from __future__ import annotations

from sapp.experiments.datasets import all_datasets
from sapp.experiments.grid import Grid, Scale
from sapp.experiments.variants import cql_family


def grid(scale: Scale) -> Grid:
    """The experiment at a scale; its runs are those of Table 1's CQL family, so a shared store trains them once."""
    return Grid(
        "random-ratio",
        "Figure 3: SA-CQL against random weights",
        "Is it the knowledge of the states that helps SA-CQL, or would any weights of the same size do: random ones, "
        "shuffled ones, or their mean everywhere?",
        scale,
        all_datasets(scale),
        (cql_family(scale),),
    )
