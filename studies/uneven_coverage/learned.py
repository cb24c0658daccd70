"""What discrete CQL with networks loses, with a ratio that is known and with one that is estimated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from sapp import Phase
from sapp.algorithms import DiscreteCQL
from sapp.core.spec import Batch
from sapp.experiments.in_memory import Pupil, Trained, train_in_memory
from sapp.networks import Policy
from sapp.networks.conv import DefaultScores
from sapp.tabular.uneven_coverage import FLOOR, Floats, Setting, World
from sapp.weights import DualDICE, LogMinMax, StateWeights, Transform, control
from sapp.weights.base import Metrics

HIDDEN, RATIO_HIDDEN = (64, 64), (32, 32)
UNIT = 6.0
"""Networks see rewards in this unit: their Huber loss is a square, as CQL's is, for errors below 1."""


class KnownRatio(StateWeights):
    """f of a ratio that is known for every state [S]; states are one-hot."""

    ratio: Any
    f: Transform = LogMinMax(b0=FLOOR)

    def bounds(self) -> tuple[Array, Array]:
        """Range of f."""
        return self.f.bounds()

    def weights(self, state: Any, batch: Batch, policy: Policy, key: Array) -> tuple[Array, Metrics]:
        """f of the batch's ratios."""
        return self.f(batch.observation @ jnp.asarray(self.ratio, jnp.float32))[0], {}


KINDS = {
    "known": ("uniform", "real", "shuffled", "matched", "random"),
    "DualDICE": ("real", "shuffled", "matched"),
}
"""Variants of the learned comparison, by estimator; ``uniform`` is CQL."""


def learned_losses(
    setting: Setting,
    worlds: Sequence[World],
    alphas: Sequence[float],
    steps: int,
    estimators: Sequence[str] = tuple(KINDS),
    say: Callable[[str], None] = print,
) -> tuple[dict[str, Floats], float]:
    """What discrete (SA-)CQL with networks loses [α, worlds] by variant, and how DualDICE's log-ratios correlate with
    the truth over states (mean over worlds and α; nan without DualDICE)."""
    logs = [replace(world.data, reward=world.data.reward / UNIT) for world in worlds]
    found: dict[str, Floats] = {}
    agreement = float("nan")
    for estimator in estimators:
        kinds = KINDS[estimator]
        pupils = [
            Pupil(learner(setting, world, estimator, kind, float(alpha)), number, number)
            for kind in kinds
            for alpha in alphas
            for number, world in enumerate(worlds)
        ]
        phase = Phase("joint", steps, ratio=estimator == "DualDICE")
        *_, trained = train_in_memory(pupils, logs, phase)
        values = action_values(trained, [worlds[pupil.dataset] for pupil in pupils])
        by_kind = values.reshape(len(kinds), len(alphas), len(worlds), *values.shape[1:])
        for kind, of_kind in zip(kinds, by_kind, strict=True):
            label = "CQL" if kind == "uniform" else f"{estimator} ratio" + ("" if kind == "real" else f", {kind}")
            found[label] = np.array(
                [[world.lost(value) for value, world in zip(row, worlds, strict=True)] for row in of_kind]
            )
        if estimator == "DualDICE":
            agreement = correlation_with_truth(trained, [worlds[pupil.dataset] for pupil in pupils])
        say(f"{len(pupils)} learners with the {estimator} ratio, {steps:,} steps")
    return found, agreement


def learner(setting: Setting, world: World, estimator: str, kind: str, alpha: float) -> DiscreteCQL:
    """Discrete CQL whose weights are those of the estimator, or a control of them."""
    real: StateWeights = KnownRatio(world.ratio.astype(np.float32))
    if estimator == "DualDICE":
        real = DualDICE(
            f=LogMinMax(b0=FLOOR), hidden=RATIO_HIDDEN, nu_lr=1e-3, zeta_lr=1e-3, ratio_lr=1e-3, fallback=True
        )
    return DiscreteCQL(
        alpha=alpha, discount=setting.discount, lr=1e-3, target_every=100, batch_size=128,
        network=DefaultScores(hidden=HIDDEN), weights=control(real, kind),
    )  # fmt: skip


def action_values(trained: Trained, worlds: Sequence[World]) -> Floats:
    """Q [learners, S, A]; actions that the logs never show in a state are not chosen, as in the exact comparison."""
    states = jnp.eye(worlds[0].reward.shape[0])
    values = trained.each(lambda algorithm, base, ratio: algorithm.policy(base)(states).logits)
    return np.where(np.stack([world.visits > 0 for world in worlds]), values, -np.inf)


def correlation_with_truth(trained: Trained, worlds: Sequence[World]) -> float:
    """How estimated log-ratios correlate with the true ones over states, on average over learners."""
    states = jnp.eye(worlds[0].reward.shape[0])

    def log_ratio(algorithm: Any, base: Any, ratio: Any) -> Array:
        zero = jnp.zeros(len(states))
        batch = Batch(states, jnp.zeros(len(states), jnp.int32), zero, states, zero, states)
        return jnp.log(algorithm.weights.of.ratio(ratio, batch, algorithm.policy(base)))

    pairs = zip(trained.each(log_ratio), worlds, strict=True)
    return float(np.mean([np.corrcoef(one, np.log(world.ratio))[0, 1] for one, world in pairs]))
