"""The demonstration's question and its two answers: where does pessimism have to know the state?

Decision problems of ``sapp.tabular.uneven_coverage`` in two cases. *Uneven coverage*: the entrance, where half of the
discounted value is decided, is one logged row in 25. *Even coverage*: one in two. In both the penalty of CQL is spread
over states alike (CQL), by the state ratio (SA-CQL), and by the same weights at the wrong states (shuffled).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sapp.tabular.uneven_coverage import FLOOR, Floats, Setting, World, make_world

if TYPE_CHECKING:
    from sapp.algorithms import Algorithm
    from sapp.runs.members import MemberId
    from sapp.runs.run import Run

UNEVEN, EVEN = "uneven", "even"
CASES: Mapping[str, Setting] = {
    UNEVEN: Setting(doors=40, halls=10, episodes=1600, length=25, noise=0.5, spread=1 / 12, skill=9.0),
    EVEN: Setting(doors=40, halls=10, episodes=1600, length=2, noise=0.5, spread=1 / 12, skill=9.0),
}
"""Rewards are of the size that the networks' Huber loss squares."""

VARIANTS = ("CQL", "SA-CQL", "shuffled")

ALPHAS: Mapping[str, Mapping[str, float]] = {
    UNEVEN: {"CQL": 160.0, "SA-CQL": 1.6, "shuffled": 16.0},
    EVEN: {"CQL": 1.6, "SA-CQL": 5.0, "shuffled": 50.0},
}
"""Of the networks: each variant's best on other worlds (``studies/uneven_coverage/tuning.py``)."""

EXACT_ALPHAS = tuple(np.geomspace(0.1, 100.0, 10).tolist())
FIRST_SEED = 500
"""Worlds of the demonstration are numbered from here; α is tuned on those below."""


@dataclass(frozen=True)
class Sizes:
    """How much the demonstration computes.

    Attributes:
        exact_worlds: solved exactly; α is chosen on the first half, the losses are the second half's.
        worlds: of uneven coverage that networks learn; of even coverage half as many.
        steps: of the joint phase; before it the paper's two others, each a third of this.
        hidden: layer sizes of the action values' networks.
    """

    exact_worlds: int = 100
    worlds: int = 12
    steps: int = 1_500
    hidden: tuple[int, ...] = (64, 64)

    def __post_init__(self) -> None:
        for number in (self.exact_worlds, self.worlds, self.steps, *self.hidden):
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                raise ValueError(f"sizes of a demo are whole numbers from 1: {number!r}")


def regrets(losses: Floats, worlds: Sequence[World]) -> Floats:
    """Losses [..., worlds] in percent of what uniformly random actions lose: 0 is the best policy."""
    return 100.0 * losses / np.array([world.at_random for world in worlds])


def exact_regrets(case: str, count: int) -> dict[str, Floats]:
    """Regret [worlds] of CQL's exact minimiser with the true ratio, by variant; α tuned on half of the worlds."""
    from sapp.tabular.exact_cql import exact_losses, log_min_max

    worlds = [make_world(CASES[case], FIRST_SEED + number) for number in range(count)]
    spreads = {
        "CQL": lambda world, rng: np.ones_like(world.ratio),
        "SA-CQL": lambda world, rng: log_min_max(world.ratio),
        "shuffled": lambda world, rng: rng.permutation(log_min_max(world.ratio)),
    }
    found = {}
    for name, losses in exact_losses(worlds, EXACT_ALPHAS, spreads).items():
        regret, half = regrets(losses, worlds), count // 2
        found[name] = regret[regret[:, :half].mean(1).argmin(), half:]
    return found


def learning_worlds(count: int) -> dict[str, tuple[str, World]]:
    """What networks learn: case and world, by the name of the dataset; half as many of even coverage."""
    return {
        f"{case}-{number}": (case, make_world(setting, FIRST_SEED + number))
        for case, setting in CASES.items()
        for number in range(count if case == UNEVEN else (count + 1) // 2)
    }


def algorithm(variant: str, alpha: float, hidden: Sequence[int]) -> Algorithm:
    """Discrete CQL, its weights from DualDICE by the paper's f (or these shuffled over the batch)."""
    from sapp.algorithms import DiscreteCQL
    from sapp.networks.conv import DefaultScores
    from sapp.weights import ConstantWeights, DualDICE, LogMinMax, control

    ratio = DualDICE(f=LogMinMax(b0=FLOOR), hidden=(32, 32), nu_lr=1e-3, zeta_lr=1e-3, ratio_lr=1e-3, fallback=True)
    kinds = {"SA-CQL": "real", "shuffled": "shuffled"}
    return DiscreteCQL(
        alpha=alpha, discount=CASES[UNEVEN].discount, lr=1e-3, target_every=100, batch_size=128,
        network=DefaultScores(hidden=tuple(hidden)),
        weights=control(ratio, kinds[variant]) if variant in kinds else ConstantWeights(),
    )  # fmt: skip


def learned_regrets(run: Run, worlds: Mapping[str, tuple[str, World]]) -> dict[str, dict[str, Floats]]:
    """Regret [worlds] of a run's policies, exactly, by case and variant."""
    found: dict[str, dict[str, list[float]]] = {case: {name: [] for name in VARIANTS} for case in CASES}
    for member in run.members:
        case, world = worlds[member.dataset]
        found[case][member.algorithm].append(regret_of(run, member, world))
    return {case: {name: np.array(values) for name, values in of.items()} for case, of in found.items()}


def regret_of(run: Run, member: MemberId, world: World) -> float:
    """Regret of one policy, exactly."""
    return float(regrets(np.array([world.lost(actions_of(run, member, world))]), [world])[0])


def actions_of(run: Run, member: MemberId, world: World) -> Floats:
    """A member's choice in every state, one-hot [S, A]."""
    states, actions = world.reward.shape
    chosen = run.predict(np.eye(states, dtype=np.float32), member)
    return np.eye(actions)[np.asarray(chosen).reshape(-1)]
