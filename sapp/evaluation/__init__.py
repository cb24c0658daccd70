"""Playing policies: many at once, for whole episodes; videos; policies of files."""

from sapp.evaluation.rollouts import Rollouts, evaluate, evaluate_one

__all__ = ["Rollouts", "evaluate", "evaluate_one"]
