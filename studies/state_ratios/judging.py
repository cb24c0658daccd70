"""How an estimate of log-ratios is judged against the truth, and the table of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np

from sapp.core.statistics import spearman
from sapp.report.report_tables import Table, table
from sapp.weights import LogMinMax

if TYPE_CHECKING:
    from studies.state_ratios.truth import Ground

WEIGHT_BATCH = 256

@dataclass(frozen=True)
class Row:
    """One cell of the table: an estimator on a problem at a shift, one seed."""

    problem: str
    estimator: str
    shift: float
    seed: int
    spearman: float
    weights: float
    value_error: float
    largest: float
    clipped: float
    unreliable: float
    seconds: float


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Pearson's; 0 where one of them does not vary or is not finite: such an estimate says nothing."""
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return 0.0
    a, b = one - one.mean(), other - other.mean()
    scale = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / scale if scale > 0.0 else 0.0


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's; 0 where one of them does not vary or is not finite."""
    found = spearman(one, other)
    return found if np.isfinite(found) else 0.0


def batch_weights(log: np.ndarray) -> np.ndarray:
    """Log-min–max weights in batches, as training makes them."""
    count = max(1, len(log) // WEIGHT_BATCH)
    parts = np.array_split(np.asarray(log, np.float64), count)
    return np.concatenate([np.asarray(LogMinMax()(jnp.asarray(np.exp(part - part.max())))[0]) for part in parts])


def judge(
    at: Ground, problem: str, name: str, shift: float, seed: int, log: np.ndarray, largest: float, clipped: float,
    unreliable: float, seconds: float,
) -> Row:  # fmt: skip
    """An estimate of log-ratios at the compared rows, against the truth."""
    truth, reward = at.truth[shift], at.data.reward[at.rows]
    log = np.asarray(log, np.float64)
    weight = np.exp(log - log.max()) if np.isfinite(log).all() else np.ones(len(log))
    value = float((weight * reward).sum() / weight.sum())
    weights = correlation(batch_weights(log), batch_weights(truth.log_ratio)) if np.isfinite(log).all() else 0.0
    error = abs(value - truth.value) / max(float(at.data.reward.std()), 1e-6)
    alike = rank_correlation(log, truth.log_ratio)
    return Row(problem, name, shift, seed, alike, weights, error, largest, clipped, unreliable, seconds)

def tables(rows: Sequence[Row]) -> list[Table]:
    """Means over seeds (lowest and highest seed), a table per problem."""
    found = []
    for problem in dict.fromkeys(row.problem for row in rows):
        mine = [row for row in rows if row.problem == problem]
        shifts = sorted({row.shift for row in mine})
        lines = [_line(mine, name, shifts) for name in dict.fromkeys(row.estimator for row in mine)]
        head = (
            "estimator", *(f"Spearman, k = {shift:g}" for shift in shifts), "weights' correlation", "value error",
            "largest", "clipped", "µs",
        )  # fmt: skip
        found.append(table(problem, f"{len({row.seed for row in mine})} seeds.", head, lines))
    return found


def _line(rows: Sequence[Row], name: str, shifts: Sequence[float]) -> list[str]:
    by = [[row for row in rows if row.estimator == name and row.shift == shift] for shift in shifts]
    cells = [
        f"{np.mean(s):.2f} ({min(s):.2f} to {max(s):.2f})" if (s := [row.spearman for row in cell]) else "–"
        for cell in by
    ]
    each = [cell for cell in by if cell]

    def over(field: str) -> str:
        return " ".join(f"{np.mean([getattr(row, field) for row in cell]):.2f}" for cell in each)

    largest = " ".join(f"{max(row.largest for row in cell):.3g}" for cell in each)
    return [
        name, *cells, over("weights"), over("value_error"), largest, over("clipped"), f"{1e6 * each[0][0].seconds:.1f}",
    ]  # fmt: skip
