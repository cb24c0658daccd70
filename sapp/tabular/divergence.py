"""State-wise divergences Dis(π, β̂)(s) between a policy and the behaviour policy.

Each takes π and β̂ [..., S, A] as NumPy or JAX arrays and returns [..., S]. Where π puts mass on an action that β̂ never
takes, CQL's and KL's are +∞; TV and MMD stay finite. To stay finite with the first two, keep the policies to the
support of β̂ (``EmpiricalMDP.support``; what the optimiser does) or smooth β̂ (``empirical(..., smoothing=λ)``).

TV and MMD have a kink at π = β̂. With ``smooth`` ε > 0 they become √(x² + ε²) − ε in place of |x|: differentiable, and
below the exact value by at most a multiple of ε.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sapp.core.errors import SappError
from sapp.tabular.mdp import Floats

Divergence = Callable[..., Any]


def _ratio(xp: Any, policy: Any, behaviour: Any) -> tuple[Any, Any]:
    """π/β̂ where β̂ > 0 (0 elsewhere), and whether π leaves the support."""
    inside = behaviour > 0
    return xp.where(inside, policy / xp.where(inside, behaviour, 1.0), 0.0), xp.any(~inside & (policy > 0), axis=-1)


def cql(policy: Any, behaviour: Any, smooth: float = 0.0) -> Any:
    """CQL's: E_π[π/β̂ − 1] = Σ_a π²/β̂ − 1 = χ²(π‖β̂)."""
    xp = policy.__array_namespace__()
    ratio, outside = _ratio(xp, policy, behaviour)
    return xp.where(outside, xp.inf, xp.sum(behaviour * xp.square(ratio - 1.0), axis=-1))


def kl(policy: Any, behaviour: Any, smooth: float = 0.0) -> Any:
    """KL(π‖β̂) = Σ_a π log(π/β̂)."""
    xp = policy.__array_namespace__()
    ratio, outside = _ratio(xp, policy, behaviour)
    terms = policy * xp.log(xp.where(ratio > 0, ratio, 1.0))
    return xp.where(outside, xp.inf, xp.maximum(xp.sum(terms, axis=-1), 0.0))


def tv(policy: Any, behaviour: Any, smooth: float = 0.0) -> Any:
    """Total variation ½Σ_a |π − β̂|, at most 1."""
    xp = policy.__array_namespace__()
    difference = policy - behaviour
    size = xp.sqrt(xp.square(difference) + smooth**2) - smooth if smooth else xp.abs(difference)
    return 0.5 * xp.sum(size, axis=-1)


def mmd(policy: Any, behaviour: Any, smooth: float = 0.0, kernel: Floats | None = None) -> Any:
    """Maximum mean discrepancy √((π−β̂)ᵀK(π−β̂)) under a kernel K [A, A]; Gaussian on the action index if not given."""
    xp = policy.__array_namespace__()
    kernel = gaussian_kernel(policy.shape[-1]) if kernel is None else kernel
    difference = policy - behaviour
    square = xp.sum(difference * (difference @ xp.asarray(kernel)), axis=-1)
    if smooth:
        return xp.sqrt(xp.maximum(square, 0.0) + smooth**2) - smooth
    positive = square > 0
    return xp.where(positive, xp.sqrt(xp.where(positive, square, 1.0)), 0.0)


def gaussian_kernel(actions: int, width: float = 1.0) -> Floats:
    """K(a,b) = exp(−(a−b)²/(2·width²)) [A, A] on the action index."""
    if width <= 0:
        raise SappError(f"kernel width is {width}: it must be positive")
    index = np.arange(actions)
    return np.exp(-((index[:, None] - index) ** 2) / (2.0 * width**2))


DIVERGENCES: dict[str, Divergence] = {"cql": cql, "kl": kl, "tv": tv, "mmd": mmd}
"""The divergences by name."""

BOUNDED = ("tv", "mmd")
"""Those that stay finite off the support of β̂."""


def divergence(name: str) -> Divergence:
    """The divergence of that name."""
    if name not in DIVERGENCES:
        raise SappError(f"divergence {name!r} is unknown: use {', '.join(DIVERGENCES)}")
    return DIVERGENCES[name]
