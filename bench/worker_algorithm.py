"""Ours: a preset for halfcheetah-medium as ``sapp.train`` runs it for one member, past its warm starts."""

from __future__ import annotations

import sys
from collections.abc import Callable

import equinox as eqx
import jax
from algorithms import DATASET
from worker import arrays, open_answers, serve

import sapp
from sapp.data import Dataset
from sapp.runs.members import Member
from sapp.runs.phases import Phase
from sapp.training.device_data import DeviceData, spec_of
from sapp.training.population import Population


def task(name: str) -> Callable[[int], None]:
    raw = arrays()
    observation = raw["observation"]
    data = Dataset(observation[:-1], raw["action"], raw["reward"], observation[1:], raw["terminal"], raw["timeout"])
    algorithm = sapp.preset(name, DATASET)
    population = Population([Member("0", algorithm, 0, 0)], DeviceData.of([data]), [spec_of(data)])
    phase = Phase("joint", 0)
    learner = population.init()
    learner = eqx.tree_at(lambda x: x.updates, learner, learner.updates + algorithm.preparation + 100_000)
    sums = population.empty_sums(phase)

    def run(steps: int) -> None:
        nonlocal learner, sums
        learner, sums = population.run(learner, sums, phase, steps)
        jax.block_until_ready(learner)

    return run


if __name__ == "__main__":
    answers = open_answers()
    serve({"step": task(sys.argv[1])}, {"jax": jax.__version__}, answers)
