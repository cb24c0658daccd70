"""SA-CQL with each ratio estimator against CQL and every control, on medium data and on data of skewed coverage.

    sapp experiment studies/skewed_coverage/grid.py --scale paper --steps 150000 --seeds 5 --out runs/skewed

Besides the medium datasets there are mixtures: 95 % of the transitions by uniform actions, 5 % by the medium policy,
that is a few good episodes in a sea of bad ones. States of the good policy are rare there, so their ratios are large:
the setting in which weights by state should matter if they matter anywhere.

All weights are rescaled to a batch mean of 1, step by step, so that every variant is as pessimistic on average and CQL
is the constant at the matched mean. They are used even while the estimator reports that it is unreliable, as in the
paper.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from sapp import Dataset, SappError
from sapp.data.dataset import concatenate
from sapp.experiments.datasets import SMOKE_DATA, load_dataset
from sapp.experiments.grid import Family, Grid, Scale
from sapp.experiments.variants import with_controls
from sapp.weights import DualDICE, LogMinMax, OccupancyInfoNCE, OccupancyModel, StateWeights
from sapp.weights.paper import weight_range

ESTIMATORS: dict[str, type[DualDICE] | type[OccupancyModel] | type[OccupancyInfoNCE]] = {
    "dualdice": DualDICE, "occupancy": OccupancyModel, "infonce": OccupancyInfoNCE,
}  # fmt: skip
MEAN = 1.0
"""Of all weights over a batch."""
MIXTURE = "-random95-medium5"
SHARE = 0.05
"""Of a mixture's transitions, by the better policy."""


def grid(scale: Scale) -> Grid:
    """An estimator's variants share their first phases; CQL and random weights, which use none, are with the first."""
    families = []
    for name in ESTIMATORS:
        kinds = {name: "real", f"{name}-shuffled": "shuffled", f"{name}-frozen": "frozen"}
        if not families:
            kinds = {"CQL": "uniform", "random": "random", **kinds}
        variants = with_controls(scale, estimator(scale, name), kinds, mean=MEAN)
        families.append(Family(name, variants, state_aware=True))
    medium = tuple(f"{name}-medium" for name in ("halfcheetah", "hopper", "walker2d"))
    mixtures = tuple(name + MIXTURE for name in ("halfcheetah", "hopper"))
    return Grid(
        "skewed-coverage",
        "SA-CQL with three ratio estimators on data of skewed coverage",
        "Do weights by state help where states of a good policy are rare in the data, with estimators that find them?",
        scale,
        SMOKE_DATA if scale.name == "smoke" else (*medium, *mixtures),
        tuple(families),
        focus="occupancy",
        load=load,
    )


def estimator(scale: Scale, name: str) -> Callable[[str], StateWeights]:
    """An estimator's weights by the dataset's name, in the range of the environment's medium set in the paper."""

    def on(dataset: str) -> StateWeights:
        f = LogMinMax(*weight_range(f"{dataset.split('-')[0]}-medium"))
        return ESTIMATORS[name](f=f, fallback=scale.fallback)

    return on


def load(name: str, folder: Path | None) -> Dataset:
    """A dataset by name; a mixture is made of whole episodes of the random and the medium one."""
    if not name.endswith(MIXTURE):
        return vectors(name, folder)
    environment = name.removesuffix(MIXTURE)
    worse, better = (vectors(f"{environment}-{quality}", folder) for quality in ("random", "medium"))
    return mix(worse, better, name, min(len(worse), len(better)))


def vectors(name: str, folder: Path | None) -> Dataset:
    """A dataset of vectors."""
    found = load_dataset(name, folder)
    if not isinstance(found, Dataset):
        raise SappError(f"{name}: holds images; the study takes vectors")
    return found


def mix(worse: Dataset, better: Dataset, name: str, transitions: int) -> Dataset:
    """The first whole episodes of both, with about ``SHARE`` of so many transitions from the better one."""
    parts = []
    for data, count in ((worse, (1.0 - SHARE) * transitions), (better, SHARE * transitions)):
        episodes = int(np.searchsorted(data.episode_ends + 1, count)) + 1
        parts.append(data.take_episodes(min(episodes, data.num_episodes)))
    return concatenate(parts, name)
