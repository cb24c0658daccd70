"""How a penalty is spread over states: f(w) of the state ratio w, with the constants that a batch of data sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sapp.tabular.mdp import Floats

CEILING = 2.0
"""Where ``clipped-w`` cuts w, whose mean is 1."""

MOVING = ("w", "sqrt-w", "clipped-w")
"""Weights that depend on the policy and are differentiated through: (f-)SA-PP as the paper's theory has it."""

HELD = {"w-held": "w", "log-min-max": "log-min-max"}
"""Weights that depend on the policy but are held while it improves, as SA-CQL does.

Log-min–max is here because it stretches whatever spread w has to [0, 1]: near β̂ its derivative is without bound.
"""

@dataclass(frozen=True)
class Spread:
    """f(w) = scale·φ(w), where w is the occupancy over d^D times a constant.

    ``unit``: w has mean 1 under d^D at the policy found. ``scale``: so has f(w); hence every way of spreading pessimism
    spends the same amount at the same α. low, high: the ends of log-min–max, the 1 % and 99 % quantiles of log w under
    d^D (the plain minimum is set by some state that π nearly never enters, and makes f constant). These are statistics
    of a batch: they are held while the policy climbs, and then taken anew (``Solver.solve``).
    """

    kind: str
    unit: float = 1.0
    scale: float = 1.0
    low: float = -1.0
    high: float = 1.0

    def parts(self, ratio: Floats) -> tuple[Floats, Floats]:
        """f(w) and its elasticity term w·f'(w), given the unscaled ratio d/d^D."""
        w = self.unit * ratio
        if self.kind == "w":
            value, rise = w, w
        elif self.kind == "sqrt-w":
            value = np.sqrt(w)
            rise = 0.5 * value
        elif self.kind == "clipped-w":
            value = np.minimum(w, CEILING)
            rise = np.where(w < CEILING, w, 0.0)
        else:
            u = (np.log(np.maximum(w, 1e-300)) - self.low) / (self.high - self.low)
            value = np.clip(u, 0.0, 1.0)
            rise = np.where((u > 0) & (u < 1), 1.0 / (self.high - self.low), 0.0)
        return self.scale * value, self.scale * rise

    def fitted(self, ratio: Floats, visits: Floats) -> Spread:
        """The same f with its constants taken at this ratio d/d^D."""
        unit = 1.0 / float(np.sum(visits * ratio))
        low, high = _quantiles(np.log(np.maximum(unit * ratio, 1e-300)), visits, (0.01, 0.99))
        fresh = Spread(self.kind, unit, 1.0, low, max(high, low + 1e-6))
        return replace(fresh, scale=1.0 / float(np.sum(visits * fresh.parts(ratio)[0])))

    def between(self, other: Spread) -> Spread:
        """Constants half-way (in logarithm) to those of another."""
        return replace(
            self, unit=float(np.sqrt(self.unit * other.unit)), scale=float(np.sqrt(self.scale * other.scale)),
            low=0.5 * (self.low + other.low), high=0.5 * (self.high + other.high),
        )

def _quantiles(values: Floats, weights: Floats, levels: Sequence[float]) -> list[float]:
    order = np.argsort(values)
    mass = np.cumsum(weights[order]) / np.sum(weights)
    return [float(values[order[min(int(np.searchsorted(mass, level)), len(order) - 1)]]) for level in levels]
