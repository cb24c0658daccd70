"""What D4RL's datasets return, and the levels that a shipped policy must have."""

from __future__ import annotations

MEDIUM = {"halfcheetah": 42.0, "hopper": 45.0, "walker2d": 62.0}
"""Normalised score of the medium policy: the return of D4RL's medium data, on D4RL's scale."""
MEDIUM_TOLERANCE = 8.0
EXPERT = {"halfcheetah": 90.0, "hopper": 100.0, "walker2d": 100.0}
"""Least normalised score that the best policy of a run must have for its snapshots to be shipped."""

D4RL_RETURNS = {
    "halfcheetah-random": (-288.80, 80.43), "halfcheetah-medium": (4770.34, 355.75),
    "halfcheetah-medium-replay": (3093.29, 1680.69), "halfcheetah-expert": (10656.43, 441.68),
    "halfcheetah-medium-expert": (7713.38, 2970.24),
    "hopper-random": (18.40, 17.45), "hopper-medium": (1422.06, 378.95), "hopper-medium-replay": (467.30, 511.03),
    "hopper-expert": (3511.36, 328.59), "hopper-medium-expert": (2089.88, 1039.96),
    "walker2d-random": (1.87, 5.81), "walker2d-medium": (2852.09, 1095.44),
    "walker2d-medium-replay": (682.70, 895.96), "walker2d-expert": (4920.51, 136.39),
    "walker2d-medium-expert": (3796.57, 1312.29),
}  # fmt: skip
"""Mean and standard deviation of the episode returns in D4RL v2's files, as Decision Transformer's logs give them."""

D4RL_ESTIMATES = {"halfcheetah-full-replay": 6780.0, "hopper-full-replay": 843.0, "walker2d-full-replay": 1934.0}
"""Guesses of the mean returns of the three files for which we found none published: up to its medium policy the buffer
is D4RL's medium-replay, and what follows, in the episodes that are left, has a mean reward per step halfway between
those of D4RL's medium and of its expert. From one of these to the other: a third either way for halfcheetah, 5 % for
hopper, 15 % for walker2d."""


def d4rl_return(name: str) -> float:
    """Mean episode return of D4RL v2's file of this name: published, or else estimated."""
    return D4RL_RETURNS[name][0] if name in D4RL_RETURNS else D4RL_ESTIMATES[name]
