"""Ours: CQL, or SA-CQL in its joint phase, as ``sapp.train`` runs it for one member."""

from __future__ import annotations

import sys
from collections.abc import Callable

import equinox as eqx
import jax
from worker import SIZES, arrays, open_answers, serve

import sapp
from sapp.data import Dataset
from sapp.runs.members import Member
from sapp.runs.phases import Phase
from sapp.training.device_data import DeviceData, spec_of
from sapp.training.population import Population
from sapp.weights import DualDICE, Uniform


def population_of(algorithm: sapp.Algorithm) -> Population:
    """One member on the data that everybody learns from."""
    raw = arrays()
    observation = raw["observation"]
    data = Dataset(observation[:-1], raw["action"], raw["reward"], observation[1:], raw["terminal"], raw["timeout"])
    return Population([Member("0", algorithm, 0, 0)], DeviceData.of([data]), [spec_of(data)])


def task(algorithm: sapp.Algorithm, updates: int = 0) -> Callable[[int], None]:
    """Steps of one member that has made so many updates."""
    population = population_of(algorithm)
    phase = Phase("joint", 0)
    learner = population.init()
    learner = eqx.tree_at(lambda x: x.updates, learner, learner.updates + updates)
    sums = population.empty_sums(phase)

    def run(steps: int) -> None:
        nonlocal learner, sums
        learner, sums = population.run(learner, sums, phase, steps)
        jax.block_until_ready(learner)

    return run


if __name__ == "__main__":
    answers = open_answers()
    algorithm = sapp.CQL(
        weights=DualDICE() if sys.argv[1] == "sa-cql" else Uniform(), hidden=tuple(SIZES["hidden"]),
        batch_size=SIZES["batch"], action_samples=SIZES["samples"],
    )  # fmt: skip
    serve({"step": task(algorithm)}, {"jax": jax.__version__, "device": jax.devices()[0].device_kind}, answers)
