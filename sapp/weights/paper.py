"""The paper's state weights for a dataset: b0 and b1 of its tables, ζ's rate on Atari, the literal s-SA-CQL."""

from __future__ import annotations

import re

from sapp.data.benchmark_names import d4rl_parts
from sapp.weights.controls import RandomWeights
from sapp.weights.dualdice import DualDICE
from sapp.weights.transforms import LogMinMax

GAMES = ("pong", "qbert", "seaquest", "breakout")
"""The paper's Atari games."""
ATARI_ZETA_LR = 1e-3
"""The paper's for ζ on Atari; elsewhere it is DualDICE's default."""
NARROW = ("expert", "medium-expert")
"""Qualities of D4RL data that the paper gives b1 = 5."""


def is_atari(dataset: str) -> bool:
    """Whether a name is that of an Atari game's data: it begins with ``ALE/`` or with one of the paper's games."""
    name = dataset.lower()
    return name.startswith("ale/") or bool(re.match(rf"({'|'.join(GAMES)})(?![a-z])", name))


def weight_range(dataset: str) -> tuple[float, float]:
    """(b0, b1) of the paper's tables for a D4RL-style or Atari name; (0, 1) for data the paper does not know.

    halfcheetah and hopper have b0 = 0, walker2d 0.5; expert and medium-expert have b1 = 5, all others 1. Atari games
    have (0.5, 2).
    """
    if is_atari(dataset):
        return 0.5, 2.0
    known = d4rl_parts(dataset)
    if known is None:
        return 0.0, 1.0
    environment, quality = known
    return (0.5 if environment == "walker2d" else 0.0), (5.0 if quality in NARROW else 1.0)


def dualdice(dataset: str) -> DualDICE:
    """DualDICE's weights as the paper has them for a dataset: what makes CQL its SA-CQL."""
    f = LogMinMax(*weight_range(dataset))
    return DualDICE(f=f, zeta_lr=ATARI_ZETA_LR) if is_atari(dataset) else DualDICE(f=f)


def literal_random(dataset: str) -> RandomWeights:
    """The paper's s-SA-CQL to the letter: weights uniform in (b0, b1), whatever range f has."""
    return RandomWeights(LogMinMax(*weight_range(dataset), span="upper"))
