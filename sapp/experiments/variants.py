"""What an experiment compares: presets by name, and an algorithm with state weights beside all their controls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from sapp.algorithms import Algorithm
from sapp.algorithms import config as configuration
from sapp.algorithms.registry import preset
from sapp.experiments.grid import Family, Maker, Scale
from sapp.weights import DualDICE, LogMinMax, RescaledWeights, StateWeights, control
from sapp.weights.paper import weight_range

A = TypeVar("A", bound=Algorithm)
CONTROLS = {"CQL": "uniform", "SA-CQL": "real", "shuffled": "shuffled", "matched": "matched", "random": "random"}
"""CQL, SA-CQL and the three controls without which SA-CQL's score says nothing about states."""


def changed(algorithm: A, changes: Mapping[str, Any]) -> A:
    """An algorithm with those hyper-parameters changed that it has."""
    known = {dotted for dotted, _ in configuration.options(algorithm)}
    return configuration.override(algorithm, {name: value for name, value in changes.items() if name in known})


def named(scale: Scale, name: str, **own: Any) -> Maker:
    """A preset by the dataset's name, with numbers of its own."""
    return lambda dataset: changed(changed(preset(name, dataset), scale.changes), own)


def dualdice(scale: Scale, b0: float | None = None) -> Callable[[str], StateWeights]:
    """The paper's state weights by the dataset's name, perhaps with another b0."""

    def on(dataset: str) -> StateWeights:
        low, span = weight_range(dataset)
        return DualDICE(f=LogMinMax(low if b0 is None else b0, span), fallback=scale.fallback)

    return on


def with_controls(
    scale: Scale,
    weights: Callable[[str], StateWeights],
    kinds: Mapping[str, str] = CONTROLS,
    *,
    base: str = "cql",
    mean: float | None = None,
) -> dict[str, Maker]:
    """An algorithm with state weights and with their controls: what tells knowledge of the states from anything else.

    Args:
        scale: whose changes of hyper-parameters apply.
        weights: the real state weights by the dataset's name.
        kinds: what each variant does with them, by the variant's name (see ``sapp.weights.control``).
        base: the preset that gets the weights.
        mean: scale all weights to this batch mean, so that every variant is as pessimistic on average.
    """

    def variant(kind: str) -> Maker:
        def on(dataset: str) -> Algorithm:
            chosen: StateWeights = control(weights(dataset), kind)
            changes = scale.changes
            if mean is not None:
                chosen = RescaledWeights(chosen, mean)
                changes = {name.replace("weights.of.", "weights.of.of."): value for name, value in changes.items()}
            return changed(replace(preset(base, dataset), weights=chosen), changes)

        return on

    return {name: variant(kind) for name, kind in kinds.items()}


def cql_family(scale: Scale) -> Family:
    """CQL, SA-CQL and the controls."""
    return Family("cql", with_controls(scale, dualdice(scale)), state_aware=True)
