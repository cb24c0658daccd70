"""The eighteen datasets of the benchmark: their names, D4RL's sizes, and the levels that a policy must have."""

from __future__ import annotations

import re
from typing import NamedTuple

from sapp.core.errors import SappError, did_you_mean

ENVIRONMENTS = ("halfcheetah", "hopper", "walker2d")
QUALITIES = ("random", "medium", "medium-replay", "full-replay", "expert", "medium-expert")
NAMES = tuple(f"{environment}-{quality}" for environment in ENVIRONMENTS for quality in QUALITIES)
"""Such as "hopper-medium": ours, made on this machine. With "-v2" behind it is D4RL's own file."""

MEDIUM = {"halfcheetah": 42.0, "hopper": 45.0, "walker2d": 62.0}
"""Normalised score of the medium policy: the return of D4RL's medium data, on D4RL's scale."""
MEDIUM_TOLERANCE = 8.0
EXPERT = {"halfcheetah": 90.0, "hopper": 100.0, "walker2d": 100.0}
"""Least normalised score that the best policy of a run must have for its snapshots to be shipped."""

TRANSITIONS = {
    "halfcheetah": (1_000_000, 1_000_000, 202_000, 1_000_000, 1_000_000, 2_000_000),
    "hopper": (1_000_000, 999_906, 402_000, 1_000_000, 999_494, 1_999_400),
    "walker2d": (1_000_000, 999_995, 302_000, 1_000_000, 999_214, 1_999_209),
}
"""D4RL v2's sizes, by quality in the order of ``QUALITIES``."""

D4RL_EPISODES = {
    "halfcheetah": (1_000, 1_000, 202, 1_000, 1_000, 2_000),
    "hopper": (45_240, 2_187, 2_041, 3_515, 1_028, 3_214),
    "walker2d": (48_908, 1_191, 1_093, 1_888, 1_001, 2_191),
}
"""Episodes in D4RL v2's files, by quality in the order of ``QUALITIES``."""

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


class Name(NamedTuple):
    """A dataset's name in its parts."""

    environment: str
    quality: str

    @property
    def text(self) -> str:
        """Such as "hopper-medium"."""
        return f"{self.environment}-{self.quality}"

    @property
    def minari(self) -> str:
        """Such as "sapp/hopper/medium-v0"."""
        return f"sapp/{self.environment}/{self.quality}-v0"

    @property
    def transitions(self) -> int:
        """D4RL v2's size."""
        return TRANSITIONS[self.environment][QUALITIES.index(self.quality)]

    @property
    def d4rl_episodes(self) -> int:
        """Episodes in D4RL v2's file."""
        return D4RL_EPISODES[self.environment][QUALITIES.index(self.quality)]


_PATTERN = re.compile(rf"({'|'.join(ENVIRONMENTS)})-({'|'.join(sorted(QUALITIES, key=len, reverse=True))})")


def is_name(text: str) -> bool:
    """Whether the text is one of the eighteen names."""
    return _PATTERN.fullmatch(text) is not None


def parse(text: str) -> Name:
    """A name in its parts, or what is wrong with it."""
    match = _PATTERN.fullmatch(text)
    if match is None:
        if _PATTERN.fullmatch(re.sub(r"-v\d+$", "", text)):
            raise SappError(
                f"{text}: a version names D4RL's own file, which is downloaded and not made; "
                f"use {re.sub(r'-v[0-9]+$', '', text)}"
            )
        raise SappError(
            f"{text}: no such dataset{did_you_mean(text, NAMES)}; "
            f"choose {{{','.join(ENVIRONMENTS)}}}-{{{','.join(QUALITIES)}}}, or all"
        )
    return Name(match[1], match[2])


def of_minari(identity: str) -> str | None:
    """The name behind one of our Minari ids ("sapp/hopper/medium-v0" → "hopper-medium"), else None."""
    match = re.fullmatch(r"sapp/([^/]+)/(.+)-v0", identity)
    name = f"{match[1]}-{match[2]}" if match else ""
    return name if is_name(name) else None


def d4rl_parts(dataset: str) -> tuple[str, str] | None:
    """Environment and quality in a D4RL-style name such as "hopper_medium_replay-v2"; None for other names."""
    match = re.match(rf"({'|'.join(ENVIRONMENTS)})[-_]([a-z_-]+?)([-_]v\d+)?$", dataset.lower())
    return (match[1], match[2].replace("_", "-")) if match else None
