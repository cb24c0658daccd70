"""How pessimism is spread over states: maps from the ratio w = d_D^π/d^D [..., S] to weights [..., S]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sapp.tabular.mdp import Floats


@dataclass(frozen=True)
class Uniform:
    """Weight 1 everywhere: proximal pessimism (PP)."""

    scale: float = 1.0

    def __call__(self, ratio: Any) -> Any:
        """f of the ratios [..., S], in the same array library."""
        xp = ratio.__array_namespace__()
        return xp.full_like(ratio, self.scale)


@dataclass(frozen=True)
class Ratio:
    """f(w) = min(w^power, ceiling): SA-PP at power 1, its square-root and clipped versions.

    ``normalised``: w is made of the occupancy that sums to 1 (DualDICE's), so its mean under d^D is 1; otherwise of the
    paper's, which sums to 1/(1−γ), and the same α then means about 1/(1−γ) times the pessimism.
    """

    power: float = 1.0
    ceiling: float = float("inf")
    normalised: bool = True

    def __call__(self, ratio: Any) -> Any:
        """f of the ratios [..., S], in the same array library."""
        xp = ratio.__array_namespace__()
        positive = ratio > 0
        raised = ratio if self.power == 1 else xp.where(positive, xp.where(positive, ratio, 1.0) ** self.power, 0.0)
        return xp.minimum(raised, self.ceiling)


@dataclass(frozen=True)
class LogMinMax:
    """b₀ + b₁·(log w − min log w)/(max log w − min log w), min and max over the states with w > 0; b₀ where w = 0."""

    b0: float = 0.0
    b1: float = 1.0

    def __call__(self, ratio: Any) -> Any:
        """f of the ratios [..., S], in the same array library."""
        xp = ratio.__array_namespace__()
        positive = (ratio > 0) & (ratio < xp.inf)
        log = xp.log(xp.where(positive, ratio, 1.0))
        low = xp.min(xp.where(positive, log, xp.inf), axis=-1, keepdims=True)
        high = xp.max(xp.where(positive, log, -xp.inf), axis=-1, keepdims=True)
        spread = high - low
        unit = xp.where(spread > 0, (log - low) / xp.where(spread > 0, spread, 1.0), 0.0)
        return xp.where(positive, self.b0 + self.b1 * unit, xp.where(ratio > 0, self.b0 + self.b1, self.b0))


@dataclass(frozen=True, eq=False)
class Fixed:
    """Given weights [..., S], whatever the policy: random, shuffled, or 1/d^D."""

    values: Floats

    def __call__(self, ratio: Any) -> Any:
        """f of the ratios [..., S], in the same array library."""
        xp = ratio.__array_namespace__()
        return xp.asarray(self.values) + xp.zeros_like(ratio)


Weights = Uniform | Ratio | LogMinMax | Fixed
"""A map from state ratios to the weights of a penalty."""


def is_normalised(weights: Weights) -> bool:
    """Whether these weights want the ratio of normalised occupancies."""
    return not isinstance(weights, Ratio) or weights.normalised
