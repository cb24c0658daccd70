"""Hooks that are ready to use, for ``sapp.train(..., hooks=[...])``; make your own from ``sapp.Hook``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sapp.core.lazy import attach

if TYPE_CHECKING:
    from sapp.hooks.csv_log import CSVLog as CSVLog
    from sapp.hooks.early_stop import EarlyStop as EarlyStop
    from sapp.hooks.hub_push import HubPush as HubPush
    from sapp.hooks.keep_best import KeepBest as KeepBest
    from sapp.hooks.mlflow import MLflow as MLflow
    from sapp.hooks.tensorboard import TensorBoard as TensorBoard
    from sapp.hooks.weights_and_biases import WandB as WandB

__getattr__, __dir__ = attach(
    __name__,
    {
        "sapp.hooks.csv_log": ["CSVLog"],
        "sapp.hooks.early_stop": ["EarlyStop"],
        "sapp.hooks.hub_push": ["HubPush"],
        "sapp.hooks.keep_best": ["KeepBest"],
        "sapp.hooks.mlflow": ["MLflow"],
        "sapp.hooks.tensorboard": ["TensorBoard"],
        "sapp.hooks.weights_and_biases": ["WandB"],
    },
)
