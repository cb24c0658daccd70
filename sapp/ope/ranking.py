"""How well estimates rank and size policies whose true values are known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def ranks(values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Ranks from 1 up; ties share their mean rank."""
    array = np.asarray(values, np.float64).ravel()
    order = np.argsort(array, kind="stable")
    sorted_ = array[order]
    first = np.searchsorted(sorted_, array, "left")
    last = np.searchsorted(sorted_, array, "right")
    return np.asarray(0.5 * (first + 1 + last), np.float64)


def rank_correlation(estimates: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """Spearman's correlation; NaN where either is constant."""
    one, other = ranks(estimates), ranks(truth)
    one, other = one - one.mean(), other - other.mean()
    size = float(np.sqrt(np.square(one).sum() * np.square(other).sum()))
    return float((one * other).sum() / size) if size > 0 else float("nan")


def regret_at_1(estimates: npt.ArrayLike, truth: npt.ArrayLike) -> float:
    """True value lost by taking the policy of highest estimate, as a share of the truth's range (0 best, 1 worst)."""
    real = np.asarray(truth, np.float64).ravel()
    span = float(np.ptp(real))
    return float(real.max() - real[int(np.argmax(estimates))]) / span if span > 0 else 0.0
