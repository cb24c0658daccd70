"""What the exact minimiser of CQL's loss loses, by the way its penalty is spread over states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sapp.tabular.uneven_coverage import FLOOR, Floats, World


def conservative_values(world: World, charge: Floats, iterations: int = 60) -> Floats:
    """The minimiser Q(s,·) of CQL's loss at every state, −∞ for actions never taken there [S, A].

        Σ_a β̂(a|s)·(Q(s,a) − r_D(s,a))² + c(s)·(log Σ_a exp Q(s,a) − Σ_a β̂(a|s)·Q(s,a))

    What follows is the same for all actions and shifts both sides alike, so it is left out. The loss is convex; each
    iteration is Newton's with the curvature's diagonal, which bounds it from above.
    """
    seen = world.visits > 0
    behaviour = world.visits / world.visits.sum(1, keepdims=True)
    values = np.where(seen, world.mean, -np.inf)
    for _ in range(iterations):
        policy = np.exp(values - values.max(1, keepdims=True))
        policy /= policy.sum(1, keepdims=True)
        error = np.where(seen, values - world.mean, 0.0)
        slope = 2.0 * behaviour * error + charge[:, None] * (policy - behaviour)
        curvature = np.where(seen, 2.0 * behaviour + charge[:, None] * policy, 1.0)
        values = values - np.where(seen, np.clip(slope / curvature, -1.0, 1.0), 0.0)
    return values


def log_min_max(ratio: Floats) -> Floats:
    """The paper's f of every state's ratio, from FLOOR to FLOOR + 1."""
    log = np.log(ratio)
    spread = np.ptp(log)
    return FLOOR + (log - log.min()) / spread if spread > 0.0 else np.ones_like(ratio)


Spread = Callable[[World, np.random.Generator], Floats]

SPREADS: Mapping[str, Spread] = {
    "CQL": lambda world, rng: np.ones_like(world.ratio),
    "SA-CQL, w": lambda world, rng: world.ratio,
    "SA-CQL, √w": lambda world, rng: np.sqrt(world.ratio),
    "SA-CQL, log-min–max": lambda world, rng: log_min_max(world.ratio),
    "√w shuffled": lambda world, rng: rng.permutation(np.sqrt(world.ratio)),
    "random": lambda world, rng: rng.uniform(FLOOR, 1.0 + FLOOR, len(world.ratio)),
    "counts, n^-½": lambda world, rng: world.share**-0.5,
}
"""Ways to spread a penalty over states, before all are scaled to a mean of 1 over the data."""


def exact_losses(
    worlds: Sequence[World], alphas: Sequence[float], spreads: Mapping[str, Spread] = SPREADS
) -> dict[str, Floats]:
    """What CQL's exact minimiser loses [α, worlds], by the way the penalty is spread."""
    found = {}
    for name, spread in spreads.items():
        weights = [spread(world, np.random.default_rng(number)) for number, world in enumerate(worlds)]
        weights = [w / (world.share * w).sum() for w, world in zip(weights, worlds, strict=True)]
        found[name] = np.array(
            [
                [world.lost(conservative_values(world, alpha * w)) for w, world in zip(weights, worlds, strict=True)]
                for alpha in alphas
            ]
        )
    return found
