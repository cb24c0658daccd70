"""Table 6 of the paper: SA-CQL against CQL at several conservative weights α."""

from __future__ import annotations

from sapp.data.benchmark_names import ENVIRONMENTS
from sapp.experiments.datasets import datasets_of
from sapp.experiments.grid import Family, Grid, Scale
from sapp.experiments.variants import cql_family, named

QUALITIES = ("medium", "medium-replay", "full-replay", "random")
OTHER_ALPHAS = (2.5, 10.0, 25.0)
"""Beside CQL's own 5, which is the variant CQL."""


def grid(scale: Scale) -> Grid:
    """The experiment at a scale. CQL at another α needs no estimator, only as many updates before the last phase."""
    sweep = {f"CQL α={alpha:g}": named(scale, "cql", alpha=alpha) for alpha in OTHER_ALPHAS}
    return Grid(
        "alpha-sweep",
        "Table 6: SA-CQL against CQL at other conservative weights",
        "Could CQL do as well as SA-CQL if only its one weight of pessimism were chosen better?",
        scale,
        datasets_of(scale, ENVIRONMENTS, QUALITIES),
        (cql_family(scale), Family("cql-alpha", sweep, lead_in=True)),
    )
