"""How well estimates rank and size policies whose true values are known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def regret_at_1(estimates: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """True value lost by taking the policy of highest estimate, as a share of the truth's range (0 best, 1 worst)."""
    real = np.asarray(truth, np.float64).ravel()
    span = float(np.ptp(real))
    return float(real.max() - real[int(np.argmax(estimates))]) / span if span > 0 else 0.0
