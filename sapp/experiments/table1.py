"""Table 1 of the paper: eight methods on the eighteen datasets, and with SA-CQL the controls that it has to beat."""

from __future__ import annotations

from sapp.experiments.datasets import all_datasets
from sapp.experiments.grid import Family, Grid, Scale
from sapp.experiments.variants import cql_family, named

BASELINES = {
    "UWAC": "uwac", "BEAR": "bear", "BCQ": "bcq", "EDAC": "edac", "TD3+BC": "td3bc", "F-BRC": "fisher-brc",
}  # fmt: skip
"""The other variants of the table, and their presets."""


def grid(scale: Scale) -> Grid:
    """The experiment at a scale."""
    baselines = tuple(Family(name, {variant: named(scale, name)}) for variant, name in BASELINES.items())
    return Grid(
        "table1",
        "Table 1: SA-CQL beside seven published methods",
        "Does weighting CQL's pessimism state by state (SA-CQL) give better policies than CQL, than published methods, "
        "and than three controls whose weights know nothing of the states?",
        scale,
        all_datasets(scale),
        (cql_family(scale), *baselines),
    )
