"""Algorithms by name: what ``sapp train NAME``, ``sapp.train("NAME", …)`` and ``preset`` take.

A package adds its own by an entry point of the group "sapp.algorithms" that names a subclass of ``Algorithm``, or a
function from a dataset's name to one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

from sapp.core.errors import SappError, did_you_mean
from sapp.core.registry import Registry

if TYPE_CHECKING:
    from sapp.algorithms.base import Algorithm
    from sapp.weights import StateWeights

ABOUT = {
    "cql": "conservative Q-learning, CQL(H); α on d3rlpy v1's scale",
    "discrete-cql": "CQL(H) for discrete actions, on double DQN",
    "td3bc": "TD3+BC",
    "rebrac": "ReBRAC; penalties set by dataset",
    "bear": "BEAR; kernel set by dataset",
    "brac": "BRAC-v: KL divergence, in policy and values",
    "brac-p": "BRAC-p: KL divergence, in the policy only",
    "brac-mmd": "BRAC-p with the squared MMD",
    "fisher-brc": "Fisher-BRC, after cloning the behaviour",
    "uwac": "UWAC: BEAR with dropout critics trusted by their variance",
    "bc": "behaviour cloning by least squares",
    "bcq": "BCQ, as in its authors' code",
    "edac": "EDAC; critics and η set by dataset",
    "sac-n": "SAC-N; number of critics set by dataset",
    "iql": "implicit Q-learning",
    "discrete-bc": "behaviour cloning of discrete actions",
    "dqn": "double DQN on logs, without pessimism",
    "qr-dqn": "QR-DQN, 200 quantiles",
    "rem": "random ensemble mixture, 200 heads",
}
"""One line about each, for help pages, which must not import JAX."""
ALGORITHMS: Registry[type[Algorithm] | Callable[[str], Algorithm]] = Registry(
    "algorithm",
    {
        "cql": "sapp.algorithms.cql:CQL",
        "discrete-cql": "sapp.algorithms.discrete_cql:DiscreteCQL",
        "td3bc": "sapp.algorithms.td3bc:TD3BC",
        "rebrac": "sapp.algorithms.rebrac:rebrac",
        "bear": "sapp.algorithms.bear:bear",
        "brac": "sapp.algorithms.brac:BRAC",
        "brac-p": "sapp.algorithms.brac:brac_p",
        "brac-mmd": "sapp.algorithms.brac:brac_mmd",
        "fisher-brc": "sapp.algorithms.fisher_brc:FisherBRC",
        "uwac": "sapp.algorithms.uwac:UWAC",
        "bc": "sapp.algorithms.bc:BC",
        "bcq": "sapp.algorithms.bcq:BCQ",
        "edac": "sapp.algorithms.edac:edac",
        "sac-n": "sapp.algorithms.edac:sac_n",
        "iql": "sapp.algorithms.iql:IQL",
        "discrete-bc": "sapp.algorithms.discrete_bc:DiscreteBC",
        "dqn": "sapp.algorithms.dqn:DQN",
        "qr-dqn": "sapp.algorithms.dqn:qr_dqn",
        "rem": "sapp.algorithms.rem:REM",
    },
    "sapp.algorithms",
)
"""Those of sapp and of installed packages, by name; a function is a preset that depends on the dataset."""
PAPER = {
    "sa-cql": ("cql", "dualdice"),
    "s-sa-cql": ("cql", "random"),
    "sa-discrete-cql": ("discrete-cql", "dualdice"),
    "s-sa-discrete-cql": ("discrete-cql", "random"),
}
"""The paper's names of an algorithm with its weights: ``sa-cql`` is ``cql --weights dualdice``."""


def preset(name: str, dataset: str = "", weights: str | StateWeights | None = None) -> Algorithm:
    """The named algorithm with its published hyper-parameters for a dataset.

    Args:
        name: such as "cql", or a name of the paper such as "sa-cql".
        dataset: name of the data, which hyper-parameters may depend on.
        weights: of states, or what ``state_weights`` takes, such as "occupancy"; by default as published.

    Examples:
        >>> import sapp
        >>> sapp.preset("sa-cql", "walker2d-expert").weights.f.b1  # by dataset, as in the paper's table
        5.0
        >>> type(sapp.preset("td3bc", weights="shuffled:occupancy").weights.of).__name__
        'OccupancyModel'
    """
    from sapp.algorithms.base import Algorithm
    from sapp.weights.registry import state_weights

    if name in PAPER:
        base, usual = PAPER[name]
        if weights is not None:
            raise SappError(f"{name} is {base} with weights {usual!r}: for other weights name {base}")
        name, weights = base, usual
    if name not in ALGORITHMS:
        known = [*PAPER, *ALGORITHMS]
        raise SappError(f"algorithm {name!r} is unknown{did_you_mean(name, known)}; use one of {', '.join(known)}")
    maker = ALGORITHMS[name]
    found = maker() if isinstance(maker, type) else maker(dataset)
    if not isinstance(found, Algorithm):
        raise SappError(f"algorithm {name!r}: its package gives {found!r}, which is no Algorithm")
    if weights is None:
        return found
    chosen = state_weights(weights, dataset) if isinstance(weights, str) else weights
    return dataclasses.replace(found, weights=chosen)
