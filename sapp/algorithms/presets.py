"""The paper's settings by name: which algorithm, and b0, b1 for which dataset."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable

from sapp.algorithms.base import Algorithm
from sapp.algorithms.cql import CQL
from sapp.errors import SappError
from sapp.ratios import DualDICE, LogMinMax, MatchedWeights, RandomWeights, ShuffledWeights

_NARROW = ("expert", "medium-expert")


def weight_range(dataset: str) -> tuple[float, float]:
    """(b0, b1) of the paper's table for a D4RL-style name; (0, 1) for data the paper does not know.

    halfcheetah and hopper have b0 = 0, walker2d 0.5; expert and medium-expert have b1 = 5, all others 1.
    """
    match = re.match(r"(halfcheetah|hopper|walker2d)[-_]([a-z_-]+?)([-_]v\d+)?$", dataset.lower())
    if not match:
        return 0.0, 1.0
    quality = match.group(2).replace("_", "-")
    return (0.5 if match.group(1) == "walker2d" else 0.0), (5.0 if quality in _NARROW else 1.0)


def _sa(dataset: str) -> DualDICE:
    return DualDICE(f=LogMinMax(*weight_range(dataset)))


def _random(dataset: str) -> RandomWeights:
    b0, b1 = weight_range(dataset)
    return RandomWeights(b0, b0 + b1)


PRESETS: dict[str, tuple[str, Callable[[str], Algorithm]]] = {
    "cql": ("CQL(H) on d3rlpy v1's scale, weight 5", lambda _: CQL()),
    "sa-cql": ("the paper's SA-CQL: CQL with DualDICE state weights", lambda d: CQL(weights=_sa(d))),
    "s-sa-cql": ("the paper's control: random weights in the same range", lambda d: CQL(weights=_random(d))),
    "shuffled-sa-cql": (
        "control: SA-CQL's weights permuted over the batch",
        lambda d: CQL(weights=ShuffledWeights(_sa(d))),
    ),
    "matched-sa-cql": ("control: every weight is SA-CQL's batch mean", lambda d: CQL(weights=MatchedWeights(_sa(d)))),
}
"""What ``sapp train NAME`` takes."""


def preset(name: str, dataset: str = "") -> Algorithm:
    """The named algorithm with the paper's hyper-parameters for a dataset's name."""
    if name not in PRESETS:
        close = difflib.get_close_matches(name, PRESETS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"use one of {', '.join(PRESETS)}"
        raise SappError(f"algorithm {name!r} is unknown; {hint}")
    return PRESETS[name][1](dataset)
