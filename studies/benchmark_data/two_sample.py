"""How far apart are two samples of states? Distances; `studies.benchmark_data.comparison` tests with them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import ks_2samp

from sapp.core.errors import SappError

Matrix = npt.NDArray[np.float64]


def ks_distance(first: npt.ArrayLike, second: npt.ArrayLike) -> Matrix:
    """Kolmogorov–Smirnov distance max_x |F(x) − G(x)| of each dimension; samples [n, D] and [m, D] → [D]."""
    one, other = _matrix(first), _matrix(second)
    return np.asarray(ks_2samp(one, other, axis=0, method="asymp").statistic)


def energy_distance(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """2E|X−Y| − E|X−X'| − E|Y−Y'|, unbiased: 0 on average for equal distributions, samples [n, D] and [m, D]."""
    one, other = _matrix(first), _matrix(second)
    return float(2 * _distances(one, other).mean() - _within(one) - _within(other))


def standardised(*samples: npt.ArrayLike) -> list[Matrix]:
    """Samples on a common scale: each dimension minus its mean over all, divided by its deviation over all."""
    matrices = [_matrix(sample) for sample in samples]
    pooled = np.concatenate(matrices)
    scale = np.maximum(pooled.std(0), 1e-9)
    return [(matrix - pooled.mean(0)) / scale for matrix in matrices]


def _matrix(sample: npt.ArrayLike) -> Matrix:
    matrix = np.asarray(sample, np.float64)
    matrix = matrix[:, None] if matrix.ndim == 1 else matrix
    if matrix.ndim != 2 or not len(matrix):
        raise SappError(f"a sample has shape {matrix.shape}: give [n, dimensions] with at least one row")
    return matrix


def _distances(one: Matrix, other: Matrix) -> Matrix:
    square = (one**2).sum(1)[:, None] + (other**2).sum(1)[None] - 2 * one @ other.T
    return np.sqrt(np.maximum(square, 0.0))


def _within(sample: Matrix) -> float:
    count = len(sample)
    return float(_distances(sample, sample).sum() / (count * (count - 1))) if count > 1 else 0.0
