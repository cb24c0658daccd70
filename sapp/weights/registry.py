"""State weights by name: what ``--weights``, ``CQL(weights="occupancy")`` and configuration files take.

    dualdice             weights of that name
    constant:0.5         with a number
    shuffled:dualdice    a control of weights; they nest: rescaled:shuffled:dualdice

A package adds its own by an entry point of the group "sapp.weights" that names a subclass of ``StateWeights``, or a
function from a dataset's name to one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sapp.core.errors import SappError, did_you_mean
from sapp.core.registry import Registry

if TYPE_CHECKING:
    from sapp.weights.base import StateWeights

ABOUT = {
    "uniform": "1 for every state: the algorithm as published",
    "dualdice": "DualDICE's state ratio: the paper's SA-CQL",
    "occupancy": "state ratio from a one-step model and a classifier",
    "infonce": "state ratio from a TD-InfoNCE critic and a classifier",
    "random": "drawn from the range of f: the paper's s-SA-CQL",
    "random-b0-b1": "drawn from (b0, b1): the paper's s-SA-CQL taken literally",
    "constant:NUMBER": "the same for every state, such as constant:0.5",
}
"""One line about each, for help pages, which must not import JAX."""
CONTROLS = {
    "shuffled": "the weights permuted over the batch",
    "matched": "every weight is the batch mean",
    "frozen": "of an estimator that stops learning after the ratio phase",
    "rescaled": "the weights divided by their batch mean",
}
"""What may stand before other weights and a colon: they share everything with them but what they say."""

WEIGHTS: Registry[type[StateWeights] | Callable[[str], StateWeights]] = Registry(
    "state weights",
    {
        "uniform": "sapp.weights.base:Uniform",
        "dualdice": "sapp.weights.paper:dualdice",
        "occupancy": "sapp.weights.occupancy:OccupancyModel",
        "infonce": "sapp.weights.infonce:OccupancyInfoNCE",
        "random": "sapp.weights.controls:RandomWeights",
        "random-b0-b1": "sapp.weights.paper:literal_random",
        "constant": "sapp.weights.controls:ConstantWeights",
    },
    "sapp.weights",
)
"""Those of sapp and of installed packages, by name."""


def state_weights(text: str, dataset: str = "") -> StateWeights:
    """The weights with a given name; see the module for the grammar of names.

    Args:
        text: such as "occupancy" or "shuffled:dualdice".
        dataset: name of the data, which determines b0 and b1 by the paper's tables; without it, (0, 1).

    Examples:
        >>> import sapp
        >>> sapp.state_weights("constant:0.5").value
        0.5
        >>> sapp.state_weights("shuffled:occupancy").of.__class__.__name__
        'OccupancyModel'
    """
    name, colon, rest = text.strip().partition(":")
    if name in CONTROLS:
        if not rest:
            raise SappError(f"weights {text!r}: name the weights to control, as in {name}:dualdice")
        return _control(name, state_weights(rest, dataset))
    if name == "constant":
        from sapp.weights.controls import ConstantWeights

        try:
            return ConstantWeights(float(rest))
        except ValueError:
            raise SappError(f"weights {text!r}: give the number, as in constant:0.5") from None
    if name not in WEIGHTS:
        hint = did_you_mean(name, [*WEIGHTS, *CONTROLS])
        raise SappError(
            f"weights {name!r} are unknown{hint}; use {', '.join(names())}, or a control such as shuffled:dualdice"
        )
    if colon:
        raise SappError(f"weights {text!r}: nothing follows {name}; a control comes first, as in shuffled:{name}")
    return _made(name, dataset)


def given_weights(given: object) -> StateWeights:
    """State weights as an algorithm is given them: an object, or a name that ``state_weights`` takes."""
    from sapp.weights.base import StateWeights

    if isinstance(given, str):
        return state_weights(given)
    if isinstance(given, StateWeights):
        return given
    if isinstance(given, type) and issubclass(given, StateWeights):
        raise SappError(f"weights is the class {given.__name__}: give an object, {given.__name__}()")
    raise SappError(f"weights is {given!r}: give state weights such as sapp.DualDICE(), or a name such as 'dualdice'")


def names() -> list[str]:
    """Names of weights as they are typed: "constant:NUMBER" for the one that takes a number."""
    return ["constant:NUMBER" if name == "constant" else name for name in WEIGHTS]


def _made(name: str, dataset: str) -> StateWeights:
    from sapp.weights.base import StateWeights
    from sapp.weights.paper import weight_range
    from sapp.weights.transforms import LogMinMax

    maker: Any = WEIGHTS[name]
    if isinstance(maker, type) and issubclass(maker, StateWeights):
        ranged = any(each.name == "f" and isinstance(each.default, LogMinMax) for each in dataclasses.fields(maker))
        return maker(**({"f": LogMinMax(*weight_range(dataset))} if ranged else {}))
    found = maker(dataset) if callable(maker) else maker
    if not isinstance(found, StateWeights):
        raise SappError(f"state weights {name!r}: their package gives {found!r}, which are no StateWeights")
    return found


def _control(kind: str, of: StateWeights) -> StateWeights:
    from sapp.weights.controls import FrozenWeights, RescaledWeights, control

    if kind == "frozen":
        return FrozenWeights(of)
    return RescaledWeights(of) if kind == "rescaled" else control(of, kind)
