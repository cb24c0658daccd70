"""Small random policies, exact in float16."""

from __future__ import annotations

import numpy as np

from sapp.envs.policies import TanhGaussianPolicy


def random_policy(seed: int, observations: int = 11, actions: int = 3) -> TanhGaussianPolicy:
    rng = np.random.default_rng(seed)

    def layer(inputs: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
        weight = rng.normal(0, inputs**-0.5, (outputs, inputs)).astype(np.float16).astype(np.float32)
        return weight, rng.normal(0, 0.1, outputs).astype(np.float16).astype(np.float32)

    return TanhGaussianPolicy((layer(observations, 8), layer(8, 8)), layer(8, actions), layer(8, actions))
