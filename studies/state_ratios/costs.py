"""What each estimator costs beside CQL alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from sapp import CQL, Dataset, Phase
from sapp.core.precision import Precision
from sapp.experiments.in_memory import Pupil, train_in_memory
from sapp.weights import DualDICE, OccupancyInfoNCE, OccupancyModel, Uniform


def costs(
    members: int, steps: int, precision: Precision, hidden: tuple[int, ...] = (256, 256, 256)
) -> list[dict[str, Any]]:
    """Seconds per step of CQL learners, and of CQL with each estimator, on data of HalfCheetah's size."""
    rng = np.random.default_rng(0)
    count = 20_000
    observation = rng.normal(size=(count, 17)).astype(np.float32)
    action = np.tanh(rng.normal(size=(count, 6))).astype(np.float32)
    ends = np.arange(count) % 1000 == 999
    data = Dataset(observation, action, observation[:, 0], observation, np.zeros(count, bool), ends, name="sizes")
    out: list[dict[str, Any]] = []
    variants = {"CQL": Uniform(), "DualDICE": DualDICE(), "occupancy": OccupancyModel(), "infonce": OccupancyInfoNCE()}
    for name, weights in variants.items():
        algorithm = CQL(weights=weights, precision=precision, hidden=hidden)
        pupils = [Pupil(algorithm, seed=seed) for seed in range(members)]
        phase = Phase("joint", 4 * steps, ratio=weights.learns)
        seconds = [trained.seconds / steps for trained in train_in_memory(pupils, [data], phase, every=steps)]
        out.append({"variant": name, "seconds": float(np.median(seconds[1:]))})
        out[-1]["times CQL"] = out[-1]["seconds"] / out[0]["seconds"]
    return out
