"""The chain with α tuned: each way to spread pessimism at its best α, chosen on other chains than it is judged on.

A problem is a chain whose ends pay with chances drawn uniformly; the log goes to the left in 2 to 30 % of ``total``
trajectories. ``knowing``: the left end is the one that pays less, as when the behaviour knows something; otherwise
either. The choice and its loss are those of ``chain.choice``. α = 0 is always a candidate, so that pessimism can be
switched off and no method is bound to lose.

Two versions of log–min–max tell what it is about it: *as run* takes minimum and maximum over the states of each
policy's own ratio, so that a policy which stays where the log is good and one which goes where it is poor are charged
over the same range; *one range* takes them over all policies' ratios, which makes f a function of the ratio again.
*Held* weights are those of the policy that turns left and right alike, for all policies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sapp.core.errors import SappError
from sapp.core.statistics import Interval, student
from sapp.tabular.evaluation import weighted
from sapp.tabular.mdp import Floats
from sapp.theory.chain import Choice, Setting, choice

GRID = (0.0, *np.geomspace(1e-3, 100, 21))
"""α to tune over."""
METHODS = {
    "none": "no pessimism", "pp": "PP", "w": "SA-PP, w", "sqrt-w": "SA-PP, √w", "log": "log–min–max, as run",
    "log-one": "log–min–max, one range", "log-held": "log–min–max, held", "w-held": "w, held", "counts": "n^(−1/2)",
}  # fmt: skip
"""Ways to spread pessimism, with their labels."""
SHARES = (0.02, 0.3)
"""Least and largest share of the trajectories that go left."""


@dataclass(frozen=True)
class Tuned:
    """A method's tuned α, its mean loss on the judged chains, the paired difference to PP (95 %) and its p-value."""

    method: str
    alpha: float
    loss: float
    difference: Interval
    p: float


def problems(count: int, total: int, knowing: bool, seed: int) -> list[Setting]:
    """Chains of the family; the same for the same arguments."""
    if count < 4:
        raise SappError(f"problems is {count}: at least 4 are needed, half of them to tune alpha on")
    if total < 4:
        raise SappError(f"total is {total}: a log needs at least 4 trajectories")
    rng = np.random.default_rng([seed, total])
    made = []
    for _ in range(count):
        left, right = rng.uniform(size=2)
        if knowing:
            left, right = sorted((left, right))
        few = int(np.clip(round(total * rng.uniform(*SHARES)), 1, total - 1))
        made.append(Setting(left=few, right=total - few, left_reward=float(left), right_reward=float(right)))
    return made


def weights(made: Choice) -> dict[str, Floats]:
    """Weights [K, S] by method, each of mean 1 under d^D (held and one-range ones: in the mean over policies)."""
    model = made.model
    visits = np.where(model.seen, model.visits, 1.0)
    ratio = np.where(model.seen, made.occupancy / visits, 0.0)
    some = ratio > 0
    log = np.log(np.where(some, ratio, 1.0))
    low, high = np.where(some, log, np.inf), np.where(some, log, -np.inf)

    def stretched(least: Floats, most: Floats) -> Floats:
        return np.where(some, (log - least) / np.where(most > least, most - least, 1.0), 0.0)

    own = stretched(low.min(-1, keepdims=True), high.max(-1, keepdims=True))
    raw = {
        "none": np.zeros_like(ratio), "pp": np.ones_like(ratio), "w": ratio, "sqrt-w": np.sqrt(ratio), "log": own,
        "log-one": stretched(low.min(), high.max()), "log-held": np.broadcast_to(own[:1], ratio.shape),
        "w-held": np.broadcast_to(ratio[:1], ratio.shape), "counts": np.broadcast_to(visits**-0.5, ratio.shape),
    }  # fmt: skip
    found = {}
    for name, weight in raw.items():
        mean = np.sum(model.visits * weight, -1, keepdims=True)
        mean = np.broadcast_to(mean.mean(), mean.shape) if name == "log-one" else mean
        found[name] = weight / np.where(mean > 0, mean, 1.0)
    return found


def losses(settings: Sequence[Setting], follow: bool, grid: Sequence[float] = GRID) -> dict[str, Floats]:
    """Expected true value lost [α, problems], by method."""
    found: dict[str, list[list[float]]] = {name: [] for name in METHODS}
    for setting in settings:
        made = choice(setting, follow)
        for name, weight in weights(made).items():
            cost = made.cost(weighted(weight, made.distance))
            found[name].append([made.expected_loss(alpha * cost) for alpha in grid])
    return {name: np.array(values).T for name, values in found.items()}


def tuned_chain(
    count: int = 400, total: int = 20, follow: bool = True, knowing: bool = True, seed: int = 0,
    grid: Sequence[float] = GRID,
) -> list[Tuned]:
    """Every method at its best α: chosen on the first half of ``count`` chains, tested on the second.

    Example: ``tuned_chain(total=100)``.
    """
    half = count // 2
    made = losses(problems(count, total, knowing, seed), follow, grid)
    picked = {name: int(values[:, :half].mean(1).argmin()) for name, values in made.items()}
    tested = {name: values[picked[name], half:] for name, values in made.items()}
    gap = {name: student(values - tested["pp"]) for name, values in tested.items()}
    return [
        Tuned(name, float(grid[picked[name]]), float(tested[name].mean()), gap[name].interval(), gap[name].p)
        for name in METHODS
    ]
