"""The hooks that options of ``train`` and ``resume`` ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sapp.core.errors import SappError, did_you_mean

if TYPE_CHECKING:
    from sapp.runs.hooks import Hook

LOGGERS = {"csv": "CSVLog", "mlflow": "MLflow", "tensorboard": "TensorBoard", "wandb": "WandB"}
"""What --log-to takes, and the class in ``sapp.hooks``."""


def hooks_of(log_to: str | None, keep_best: bool, stop_early: int | None, push_to: str | None) -> list[Hook]:
    """Hooks in the order in which they are told: what is kept is kept before training stops or anything is sent."""
    names = [name.strip().lower() for name in (log_to or "").split(",") if name.strip()]
    for name in names:
        if name not in LOGGERS:
            near = did_you_mean(name, LOGGERS)
            raise SappError(f"--log-to: {name!r} is unknown{near}; it takes {', '.join(LOGGERS)}")
    if not (names or keep_best or stop_early is not None or push_to):
        return []
    from sapp import hooks

    found: list[Hook] = [getattr(hooks, LOGGERS[name])() for name in dict.fromkeys(names)]
    if keep_best:
        found.append(hooks.KeepBest())
    if stop_early is not None:
        found.append(hooks.EarlyStop(stop_early))
    if push_to:
        found.append(hooks.HubPush(push_to, best=keep_best))
    return found
