"""Figure 2 of the paper: does the ζ-weighted reward rise with the true return while a policy learns?

The logged reward weighted with ζ estimates what the current policy earns; where the estimate and the played return rise
and fall together, the ratios say something true. The paper shows walker2d, expert and full-replay.
"""

from __future__ import annotations

from sapp.experiments.datasets import datasets_of
from sapp.experiments.grid import Grid, Scale
from sapp.experiments.variants import cql_family

QUALITIES = ("expert", "full-replay")


def grid(scale: Scale) -> Grid:
    """The experiment at a scale; every variant carries the estimator, so its quality is seen for each policy."""
    return Grid(
        "ratio-quality",
        "Figure 2: estimated reward against true return over training",
        "Do the estimated state ratios know how good the learned policy is: does the reward they predict rise and fall "
        "with the return that the policy truly earns?",
        scale,
        datasets_of(scale, ("walker2d",), QUALITIES),
        (cql_family(scale),),
    )
