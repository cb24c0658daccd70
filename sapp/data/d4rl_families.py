"""D4RL's antmaze, maze2d, adroit and kitchen by the names of their files: reference returns, and environments.

Reference returns are D4RL's own (its infos.py). Environments are gymnasium-robotics' where what is observed and how
long an episode lasts are as in D4RL's: its mazes and its kitchen observe goals besides, and its pen plays for 200 steps
instead of 100, so for these an environment of that package has to be named, or wrapped, by hand.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Family(NamedTuple):
    """What is known of a D4RL file by its name."""

    low: float
    """The return that counts as 0."""
    high: float
    """The return that counts as 100."""
    environment: str | None = None


_ADROIT = {
    "pen": Family(96.262799, 3076.8331017826877),
    "hammer": Family(-274.856578, 12794.134825156867, "AdroitHandHammer-v1"),
    "door": Family(-56.512833, 2880.5693087298737, "AdroitHandDoor-v1"),
    "relocate": Family(-6.425911, 4233.877797728884, "AdroitHandRelocate-v1"),
}
_MAZES = {
    "maze2d-open-v0": Family(0.01, 20.66),
    "maze2d-umaze-v1": Family(23.85, 161.86),
    "maze2d-medium-v1": Family(13.13, 277.39),
    "maze2d-large-v1": Family(6.7, 273.99),
    "maze2d-open-dense-v0": Family(11.17817, 27.166538620695782),
    "maze2d-umaze-dense-v1": Family(68.537689, 193.66285642381482),
    "maze2d-medium-dense-v1": Family(44.264742, 297.4552547777125),
    "maze2d-large-dense-v1": Family(30.569041, 303.4857382709002),
}
_ADROIT_NAME = re.compile(r"(pen|hammer|door|relocate)-(human|cloned|expert)-v[01]")
_ANTMAZE_NAME = re.compile(r"antmaze-(umaze|umaze-diverse|medium-play|medium-diverse|large-play|large-diverse)-v[012]")
_KITCHEN_NAME = re.compile(r"kitchen-(complete|partial|mixed)-v0")


def d4rl_family(name: str) -> Family | None:
    """What is known of the file of a name such as "antmaze-umaze-v2", dashes or underscores; None of any other."""
    name = name.replace("_", "-")
    if adroit := _ADROIT_NAME.fullmatch(name):
        return _ADROIT[adroit[1]]
    if _ANTMAZE_NAME.fullmatch(name):
        return Family(0.0, 1.0)
    if _KITCHEN_NAME.fullmatch(name):
        return Family(0.0, 4.0)
    return _MAZES.get(name)
