"""Rollouts of many policies at once, and the statistics to report them with."""

from sapp.core.statistics import (
    Interval,
    bootstrap_interval,
    iqm,
    mean,
    mean_interval,
    standard_error,
)
from sapp.evaluation.rollouts import Rollouts, evaluate, evaluate_one

__all__ = [
    "Interval",
    "Rollouts",
    "bootstrap_interval",
    "evaluate",
    "evaluate_one",
    "iqm",
    "mean",
    "mean_interval",
    "standard_error",
]
