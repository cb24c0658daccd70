"""f: from state ratios to weights. Each maps the ratios of a batch [B] to weights [B]."""

from __future__ import annotations

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from typing_extensions import override

from sapp.core.errors import SappError, check_ranges

TINY = 1e-12
"""Ratios are floored here before the logarithm; the batch quantile clamp then decides what an outlier counts."""


class Transform(eqx.Module):
    """f of f-SA-PP, a monotone map of ratios.

    Examples:
        >>> import jax.numpy as jnp
        >>> import sapp
        >>> class Shifted(sapp.Transform):
        ...     def __call__(self, ratio):
        ...         return 0.5 + ratio, jnp.float32(0.0)
        >>> sapp.DualDICE(f=Shifted()).f(jnp.asarray([0.0, 1.0]))[0].tolist()
        [0.5, 1.5]
    """

    def __call__(self, ratio: Array) -> tuple[Array, Array]:
        """Weights [B] and the share of ratios that were clamped."""
        raise TypeError(f"{type(self).__name__} must define __call__()")

    def bounds(self) -> tuple[Array, Array]:
        """Smallest and largest weight."""
        return jnp.float32(0.0), jnp.float32(jnp.inf)


class LogMinMax(Transform):
    """The paper's f: log-ratios rescaled by the batch's minimum and maximum into a small range.

    u = (log x − min log x) / (max log x − min log x),  f = b0 + b1·u (``span="added"``, range [b0, b0 + b1]: the
    nearest repair of the printed formula) or b0 + (b1 − b0)·u (``span="upper"``, range [b0, b1]: the prose).

    f is invariant to x → c·xᵏ, so the normalisation of dᵖ does not matter. It is fragile, too: one ratio near zero
    sends every other weight to the top of the range. So ratios are first clamped to the batch's ``quantile`` and
    1 − ``quantile`` (0 switches this off), and the share clamped is logged. A batch of equal ratios has u = 1/2.

    Attributes:
        b0: smallest weight.
        b1: span of the weights, or (span upper) the largest.
        quantile: of the batch's ratios, at each end, to which they are clamped; 0 = off.
        span: added (weights in [b0, b0 + b1]) or upper (in [b0, b1]).

    Examples:
        >>> import jax.numpy as jnp
        >>> import sapp
        >>> weights, clamped = sapp.LogMinMax(b0=0.5, b1=2.0, quantile=0.0)(jnp.asarray([0.1, 1.0, 10.0]))
        >>> [round(weight, 3) for weight in weights.tolist()]
        [0.5, 1.5, 2.5]
    """

    b0: float = 0.0
    b1: float = 1.0
    quantile: float = 0.01
    span: Literal["added", "upper"] = eqx.field(static=True, default="added")

    def __check_init__(self) -> None:
        check_ranges("LogMinMax", {"b0": self.b0, "b1": self.b1}, 0.0, float("inf"))
        check_ranges("LogMinMax", {"quantile": self.quantile}, 0.0, 0.5)
        if self.span not in ("added", "upper"):
            raise SappError(f"span {self.span!r} is unknown: use 'added' for [b0, b0+b1] or 'upper' for [b0, b1]")

    @override
    def __call__(self, ratio: Array) -> tuple[Array, Array]:
        log_ratio = jnp.log(jnp.maximum(ratio, TINY))
        quantile = jnp.clip(jnp.asarray(self.quantile, jnp.float32), 0.0, 0.5)
        low, high = jnp.quantile(log_ratio, jnp.stack([quantile, 1.0 - quantile]))
        clamped = jnp.mean((log_ratio < low) | (log_ratio > high), dtype=jnp.float32)
        spread = high - low
        flat = spread < 1e-9
        unit = jnp.where(flat, 0.5, (jnp.clip(log_ratio, low, high) - low) / jnp.where(flat, 1.0, spread))
        bottom, top = self.bounds()
        return bottom + (top - bottom) * unit, clamped

    @override
    def bounds(self) -> tuple[Array, Array]:
        b0, b1 = jnp.asarray(self.b0, jnp.float32), jnp.asarray(self.b1, jnp.float32)
        return b0, (b0 + b1 if self.span == "added" else b1)


class Identity(Transform):
    """f(x) = x, negatives to zero: plain SA-PP. Occupancies are normalised, so the mean weight is at most 1.

    Examples:
        >>> import jax.numpy as jnp
        >>> import sapp
        >>> sapp.Identity()(jnp.asarray([-1.0, 0.5, 3.0]))[0].tolist()
        [0.0, 0.5, 3.0]
    """

    @override
    def __call__(self, ratio: Array) -> tuple[Array, Array]:
        return jnp.maximum(ratio, 0.0), jnp.mean(ratio < 0.0, dtype=jnp.float32)


class Power(Transform):
    """f(x) = xᵏ; k = ½ is a common compromise between PP (k = 0) and SA-PP (k = 1).

    Examples:
        >>> import jax.numpy as jnp
        >>> import sapp
        >>> [round(weight, 3) for weight in sapp.Power(0.5)(jnp.asarray([0.25, 4.0]))[0].tolist()]
        [0.5, 2.0]
    """

    exponent: float = 0.5
    """k, the power that ratios are raised to."""

    @override
    def __call__(self, ratio: Array) -> tuple[Array, Array]:
        return jnp.maximum(ratio, TINY) ** self.exponent, jnp.mean(ratio < TINY, dtype=jnp.float32)


class Clip(Transform):
    """f(x) = min(max(x, low), high).

    Examples:
        >>> import jax.numpy as jnp
        >>> import sapp
        >>> weights, clamped = sapp.Clip(low=0.5, high=2.0)(jnp.asarray([0.0, 1.0, 1.5, 9.0]))
        >>> weights.tolist(), float(clamped)
        ([0.5, 1.0, 1.5, 2.0], 0.5)
    """

    low: float = 0.1
    """Least weight."""
    high: float = 10.0
    """Largest weight."""

    @override
    def __call__(self, ratio: Array) -> tuple[Array, Array]:
        clamped = jnp.mean((ratio < self.low) | (ratio > self.high), dtype=jnp.float32)
        return jnp.clip(ratio, self.low, self.high), clamped

    @override
    def bounds(self) -> tuple[Array, Array]:
        return jnp.asarray(self.low, jnp.float32), jnp.asarray(self.high, jnp.float32)
