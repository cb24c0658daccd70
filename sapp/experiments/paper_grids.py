"""The paper's tables and figures on D4RL's datasets, as grids at a scale; Atari's is in ``sapp.experiments.atari``."""

from __future__ import annotations

from sapp.data.benchmark_names import ENVIRONMENTS
from sapp.experiments.datasets import ALL_QUALITIES, all_datasets, datasets_of
from sapp.experiments.grid import Family, Grid, Scale
from sapp.experiments.variants import CONTROLS, cql_family, dualdice, named, with_controls

BASELINES = {
    "UWAC": "uwac", "BEAR": "bear", "BCQ": "bcq", "EDAC": "edac", "TD3+BC": "td3bc", "F-BRC": "fisher-brc",
}  # fmt: skip
"""The other variants of Table 1, and their presets."""
SWEPT_QUALITIES = ("medium", "medium-replay", "full-replay", "random")
OTHER_ALPHAS = (2.5, 10.0, 25.0)
"""Beside CQL's own 5, which is the variant CQL."""
B0 = 0.5


def table1(scale: Scale) -> Grid:
    """Table 1: eight methods on the eighteen datasets, and with SA-CQL the controls that it has to beat."""
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


def ratio_quality(scale: Scale) -> Grid:
    """Figure 2: does the ζ-weighted reward rise with the true return while a policy learns?

    The logged reward weighted with ζ estimates what the current policy earns; where the estimate and the played return
    rise and fall together, the ratios say something true. Every variant carries the estimator. The paper shows
    walker2d, expert and full-replay.
    """
    return Grid(
        "ratio-quality",
        "Figure 2: estimated reward against true return over training",
        "Do the estimated state ratios know how good the learned policy is: does the reward they predict rise and fall "
        "with the return that the policy truly earns?",
        scale,
        datasets_of(scale, ("walker2d",), ("expert", "full-replay")),
        (cql_family(scale),),
    )


def random_ratio(scale: Scale) -> Grid:
    """Figure 3: SA-CQL against weights drawn at random from the same range (its s-SA-CQL).

    Its runs are those of Table 1's CQL family, so a shared store trains them once.
    """
    return Grid(
        "random-ratio",
        "Figure 3: SA-CQL against random weights",
        "Is it the knowledge of the states that helps SA-CQL, or would any weights of the same size do: random ones, "
        "shuffled ones, or their mean everywhere?",
        scale,
        all_datasets(scale),
        (cql_family(scale),),
    )


def alpha_sweep(scale: Scale) -> Grid:
    """Table 6: SA-CQL against CQL at several conservative weights α.

    CQL at another α needs no estimator, only as many updates before the last phase.
    """
    sweep = {f"CQL α={alpha:g}": named(scale, "cql", alpha=alpha) for alpha in OTHER_ALPHAS}
    return Grid(
        "alpha-sweep",
        "Table 6: SA-CQL against CQL at other conservative weights",
        "Could CQL do as well as SA-CQL if only its one weight of pessimism were chosen better?",
        scale,
        datasets_of(scale, ENVIRONMENTS, SWEPT_QUALITIES),
        (cql_family(scale), Family("cql-alpha", sweep, lead_in=True)),
    )


def b0(scale: Scale) -> Grid:
    """Table 7: SA-CQL on halfcheetah and hopper with walker2d's b0 = 0.5: weights that never vanish.

    SA-CQL and its controls at both values of b0, all from one shared beginning.
    """
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
