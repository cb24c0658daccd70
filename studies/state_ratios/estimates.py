"""The estimators on a problem, while the policy they are for moves away from the data."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from sapp import Algorithm, Phase
from sapp.core.spec import Batch, Spec
from sapp.experiments.in_memory import Pupil, Trained, train_in_memory
from sapp.weights import DualDICE, OccupancyInfoNCE, OccupancyModel, StateWeights, Uniform
from sapp.weights.base import Metrics
from studies.state_ratios.judging import Row, judge
from studies.state_ratios.problems import Problem, Shifted
from studies.state_ratios.truth import NOISES, Ground, Scale, classify, log_ratios, standard_of


class MovingPolicy(Algorithm):
    """No learner: its policy moves from the behaviour's mean (k = 0) to ``shift`` over ``ramp`` updates."""

    behaviour: Any = None
    direction: Any = None
    shift: float = 0.0
    ramp: float = 1.0
    spread: float = 0.5
    discount: float = 0.99
    weights: StateWeights = Uniform()
    batch_size: int = eqx.field(static=True, default=256)

    def init(self, key: Array, spec: Spec) -> Array:
        """The shift so far."""
        return jnp.float32(0.0)

    def scheduled_update(
        self, state: Array, batch: Batch, weights: Array, key: Array, step: Array
    ) -> tuple[Array, Metrics]:
        """Moves on along the ramp."""
        share = jnp.minimum(1.0, (step + 1) / jnp.asarray(self.ramp, jnp.float32))
        return share * jnp.asarray(self.shift, jnp.float32), {"loss": jnp.float32(0.0)}

    def policy(self, state: Array) -> Shifted:
        """π_k at the current k."""
        return Shifted(self.behaviour, jnp.asarray(self.direction, jnp.float32), state, self.spread)


def estimators(name: str, problem: str, scale: Scale) -> dict[str, StateWeights]:
    """The members of a group by the name in the table; all of one structure."""
    successor = "logged" if problem == "finite" else "gaussian"
    if name == "dualdice":  # one saddle, three ways to read it
        return {"dualdice": DualDICE(route="density", components=1, zeta_lr=1e-3, hidden=scale.hidden)}
    if name == "infonce":
        return {"infonce": OccupancyInfoNCE(hidden=scale.hidden)}
    model = OccupancyModel(successor=successor, hidden=scale.hidden, particles=scale.batch, paired=name == "occupancy")  # type: ignore[arg-type]
    label = "occupancy" if model.paired else "occupancy, unpaired"
    if successor == "logged":
        return {label: model}
    return {label + NOISES[noise]: replace(model, noise=noise) for noise in scale.noises}

def ceiling(problem: str, at: Ground, scale: Scale) -> list[Row]:
    """The estimators' classifier on true samples that the reference has not seen."""
    shifts = list(at.truth)
    positive = jnp.asarray(np.stack([at.truth[k].samples for k in shifts]))
    negative = jnp.broadcast_to(jnp.asarray(at.data.observation), (len(shifts), *at.data.observation.shape))
    began = time.perf_counter()
    sizes = scale.hidden, scale.steps, scale.batch, False
    networks = classify(*sizes, jnp.arange(scale.seeds), positive, negative, standard_of(at.data))
    logs = log_ratios(networks, at.data, at.rows)
    seconds = (time.perf_counter() - began) / scale.steps / logs.shape[0] / logs.shape[1]
    return [
        judge(at, problem, "ceiling", k, seed, logs[i, seed], float(np.abs(logs[i, seed]).max()), 0.0, 0.0, seconds)
        for i, k in enumerate(shifts)
        for seed in range(scale.seeds)
    ]

def train(problem: Problem, at: Ground, group: str, scale: Scale, deadline: float) -> list[Row] | None:
    """One estimator (and its variants) on a problem: all shifts and seeds as one program; None if time ran out."""
    found = estimators(group, problem.name, scale)
    keys = [(name, k, seed) for name in found for k in at.truth for seed in range(scale.seeds)]
    pupils = [
        Pupil(
            MovingPolicy(
                behaviour=problem.behaviour, direction=np.asarray(problem.direction, np.float32), shift=k,
                ramp=max(1.0, scale.steps / 2), discount=scale.discount, weights=found[name], batch_size=scale.batch,
            ),
            seed=seed,
        )
        for name, k, seed in keys
    ]  # fmt: skip
    largest, seconds, timed, trained = np.zeros(len(pupils)), 0.0, 0, None
    for trained in train_in_memory(pupils, [at.data], Phase("joint", scale.steps, weighted=False), every=scale.chunk):
        if time.monotonic() > deadline:
            return None
        if trained.step > scale.chunk:  # the first chunk compiles
            seconds, timed = seconds + trained.seconds, trained.step - scale.chunk
        last = trained.metrics
        size = last.get("ratio/nu_abs", last.get("ratio/log_ratio_max", np.zeros(len(pupils))))
        largest = np.fmax(largest, np.where(np.isfinite(size), size, np.inf))
    assert trained is not None
    cost = seconds / max(timed, 1) / len(pupils)
    none = np.zeros(len(pupils))
    clipped, unreliable = last.get("ratio/clipped", none), last.get("ratio/unreliable", none)
    out = []
    for name, logs in read(trained, at, group == "dualdice").items():
        for i, (estimator, k, seed) in enumerate(keys):
            label = name if group == "dualdice" else estimator
            numbers = float(largest[i]), float(clipped[i]), float(unreliable[i]), cost
            out.append(judge(at, problem.name, label, k, seed, logs[i], *numbers))
    return out

def read(trained: Trained, at: Ground, dice: bool) -> dict[str, np.ndarray]:
    """Log-ratios [learners, rows] at the compared rows, by the way they are read."""
    data, rows = at.data, at.rows
    zero = jnp.zeros(len(rows))
    observation = jnp.asarray(data.observation[rows])
    batch = Batch(observation, jnp.asarray(data.scaled_action()[rows]), zero, observation, zero, observation)

    def look(algorithm: Any, base: Any, ratio: Any, route: str | None) -> Array:
        weights = algorithm.weights
        if route is not None:
            weights = replace(weights, route=route)
            ratio = ratio if route == "density" else eqx.tree_at(lambda s: s.behaviour, ratio, None)
        found = weights.ratio(ratio, batch, algorithm.policy(base))
        return jnp.log(jnp.maximum(found, 1e-12))

    routes: dict[str, str | None] = (
        {"dualdice ζ": "zeta", "dualdice regression": "regression", "dualdice ζβ/π": "density"} if dice else {"": None}
    )
    return {name: trained.each(partial(look, route=route)) for name, route in routes.items()}
