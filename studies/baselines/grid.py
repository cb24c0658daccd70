"""Every baseline on the three medium datasets, and state-aware variants of four of them with their controls.

    sapp experiment studies/baselines/grid.py --scale paper --out runs/baselines --time-limit 7200

``--methods td3bc,iql,rebrac`` takes some of them; the same command continues what a time limit stopped.
"""

from __future__ import annotations

from sapp.experiments.datasets import datasets_of
from sapp.experiments.grid import Family, Grid, Scale
from sapp.experiments.variants import dualdice, named, with_controls

ALGORITHMS = (
    "td3bc", "iql", "rebrac", "bc", "edac", "fisher-brc", "brac", "brac-p", "brac-mmd", "bear", "bcq", "uwac", "sac-n",
)  # fmt: skip
"""In the order of what is most worth knowing, should the time run out."""
STATE_AWARE = ("td3bc", "bear", "brac", "fisher-brc")


def grid(scale: Scale) -> Grid:
    """Each algorithm trains by itself; a state-aware variant shares its first phases with its controls."""
    plain = tuple(Family(name, {name: named(scale, name, decay_steps=float(scale.steps))}) for name in ALGORITHMS)
    families = []
    for name in STATE_AWARE:
        kinds = {
            f"{name}, weight 1": "uniform", f"sa-{name}": "real", f"sa-{name}, shuffled": "shuffled",
            f"sa-{name}, matched": "matched",
        }  # fmt: skip
        variants = with_controls(scale, dualdice(scale), kinds, base=name)
        families.append(Family(f"sa-{name}", variants, state_aware=True))
    return Grid(
        "baselines",
        "Baselines on the medium datasets",
        "Do the baselines reach their published scores, and do state-aware weights make four of them better than the "
        "same weights at other states, or than their mean everywhere?",
        scale,
        datasets_of(scale, ("halfcheetah", "hopper", "walker2d"), ("medium",)),
        (*plain, *families),
        focus="sa-td3bc",
    )
