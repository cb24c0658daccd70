"""The eighteen datasets of the benchmark: their names, and D4RL's sizes."""

from __future__ import annotations

import re
from typing import NamedTuple

from sapp.core.errors import SappError, did_you_mean

ENVIRONMENTS = ("halfcheetah", "hopper", "walker2d")
QUALITIES = ("random", "medium", "medium-replay", "full-replay", "expert", "medium-expert")
NAMES = tuple(f"{environment}-{quality}" for environment in ENVIRONMENTS for quality in QUALITIES)
"""Such as "hopper-medium": ours, made on this machine. With "-v2" behind it is D4RL's own file."""

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
