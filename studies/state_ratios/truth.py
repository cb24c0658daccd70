"""What is known of each problem: its data, the true log-ratios of the target policies, and samples of their states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sapp import Dataset
from sapp.networks import MLP
from sapp.weights import OccupancyModel
from sapp.weights.classifier import (
    ADAM,
    Standard,
    against,
    averaged,
    classifier_loss,
    descend,
    log_ratio,
    make_classifier,
)
from studies.state_ratios.judging import rank_correlation
from studies.state_ratios.problems import Finite, Problem, Shifted, simulate

AVERAGE, CLASSIFIER_LR = OccupancyModel.average, OccupancyModel.classifier_lr
"""Of the classifiers on true samples: the estimators'."""
NOISES = {1.0: "", 0.5: ", half noise", 0.0: ", mean model"}
"""Shares of the occupancy model's noise that are compared, and what the table adds to its name."""
REFERENCE = 0.6
"""The share of the true samples from which a truth is learned; the ceiling's are the others."""

@dataclass(frozen=True)
class Scale:
    """How much of everything: the defaults are the bench's, ``small`` is for a test on a CPU."""

    steps: int = 100_000
    seeds: int = 3
    hidden: tuple[int, ...] = (256, 256)
    batch: int = 256
    copies: int = 512
    """Copies of the system that make the data, each for ``record`` steps."""
    record: int = 400
    truth_copies: int = 4096
    truth_steps: int = 400
    burn: int = 600
    reference_steps: int = 10_000
    reference_batch: int = 1024
    rows: int = 8192
    """Logged states on which estimates are compared."""
    chunk: int = 5_000
    discount: float = 0.99
    noises: tuple[float, ...] = tuple(NOISES)


SMALL = Scale(
    steps=60, seeds=1, hidden=(8,), batch=64, copies=32, record=60, truth_copies=64, truth_steps=40, burn=60,
    reference_steps=40, reference_batch=64, rows=512, chunk=30,
)  # fmt: skip

@dataclass(frozen=True)
class Truth:
    """What is known of π_k at the compared rows: log-ratio, reward per step, and samples of its states [n, O]."""

    log_ratio: np.ndarray
    value: float
    samples: np.ndarray


@dataclass(frozen=True)
class Ground:
    """A problem's data, the rows compared, and the truth by shift."""

    data: Dataset
    rows: np.ndarray
    truth: dict[float, Truth]


def ground(problem: Problem, shifts: Sequence[float], scale: Scale) -> Ground:
    """Record the data and sample the truth."""
    data = simulate(problem.env, problem.logging(), scale.copies, scale.record, seed=0).dataset(problem.name)
    rows = np.random.default_rng(0).permutation(len(data))[: scale.rows]
    # on the host as many samples from fewer copies: burning in costs most there
    host = isinstance(problem.env, str)
    copies = min(scale.truth_copies, 2 * scale.copies) if host else scale.truth_copies
    steps = scale.truth_copies * scale.truth_steps // copies
    # the data's distribution from more samples than the data are: their own counts are noise where the ratio is nearly
    # flat
    trace = simulate(problem.env, problem.logging(), 2 * copies if host else copies, scale.record, seed=1000)
    many = _shuffled(trace.observation, 1000)
    truth = {}
    for number, shift in enumerate(shifts):
        policy = problem.policy(shift)
        trace = simulate(
            problem.env, policy, copies, steps, seed=1 + number, burn=scale.burn, discount=scale.discount
        )
        samples = _shuffled(trace.observation, number)
        kept = int(REFERENCE * len(samples))
        found = _log_ratio(problem, policy, data, many, rows, samples[:kept], scale)
        if len(found) > 1:
            alike = rank_correlation(*found)
            print(f"{problem.name}, k = {shift:g}: halves of the truth rank alike by {alike:.2f}", flush=True)
        truth[shift] = Truth(found.mean(0), float(trace.reward.mean()), samples[kept:])
    return Ground(data, rows, truth)


def _shuffled(observation: np.ndarray, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(observation.reshape(-1, observation.shape[-1]))


def _log_ratio(
    problem: Problem, policy: Shifted, data: Dataset, many: np.ndarray, rows: np.ndarray, samples: np.ndarray,
    scale: Scale,
) -> np.ndarray:  # fmt: skip
    """The truth at the rows, [1, rows], or two independent estimates of it, [2, rows]."""
    if isinstance(problem.env, Finite):
        state = data.observation.argmax(1)
        visits = np.bincount(state, minlength=data.observation.shape[1]) / len(state)
        return np.log(problem.env.ratio(policy, np.maximum(visits, 1e-9), scale.discount))[None, state[rows]]
    if problem.cells is not None:
        ours, theirs = problem.cells(samples), problem.cells(many)
        count = 1 + int(max(each.max() for each in (ours, theirs, problem.cells(data.observation))))
        # half a visit each, so that a cell π never entered has a finite, very small ratio
        share = [(np.bincount(each, minlength=count) + 0.5) / len(each) for each in (ours, theirs)]
        return np.log(share[0] / share[1])[None, problem.cells(data.observation[rows])]
    halves = [jnp.asarray(each[: len(each) // 2 * 2].reshape(2, -1, each.shape[-1])) for each in (samples, many)]
    sizes = scale.hidden, scale.reference_steps, scale.reference_batch, True
    networks = classify(*sizes, jnp.arange(1), *halves, standard_of(data))
    return log_ratios(networks, data, rows)[:, 0]


def standard_of(data: Dataset) -> Standard:
    """Mean and deviation of the logged states."""
    return Standard(jnp.asarray(data.observation_mean), jnp.asarray(np.maximum(data.observation_std, 1e-3)))


def log_ratios(networks: MLP, data: Dataset, rows: np.ndarray) -> np.ndarray:
    """Of classifiers [sets, seeds], at the rows: [sets, seeds, rows]."""
    observation = standard_of(data)(jnp.asarray(data.observation[rows]))
    return np.asarray(jax.vmap(jax.vmap(lambda network: log_ratio(network, observation)))(networks))


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def classify(
    hidden: tuple[int, ...], steps: int, batch: int, decay: bool, seeds: Array, positive: Array, negative: Array,
    standard: Standard,
) -> MLP:  # fmt: skip
    """Classifiers [sets, seeds] between states of two distributions [sets, n, O], [sets, m, O]; with ``decay`` the
    rate falls to 0 by a half cosine."""

    def one(ours: Array, theirs: Array, seed: Array) -> MLP:
        key = jax.random.PRNGKey(seed)
        network = make_classifier(key, ours.shape[-1], hidden, 2, "tf32")
        shares = against(jnp.full(batch, 1.0 / batch), batch)

        def body(step: Array, carry: tuple[MLP, MLP, Any]) -> tuple[MLP, MLP, Any]:
            network, readout, optimiser = carry
            keys = jax.random.split(jax.random.fold_in(key, step))
            drawn = [
                each[jax.random.randint(key, (batch,), 0, len(each))]
                for each, key in zip((ours, theirs), keys, strict=True)
            ]
            states = standard(jnp.concatenate(drawn))
            rate = CLASSIFIER_LR * (0.5 * (1.0 + jnp.cos(jnp.pi * step / steps)) if decay else 1.0)
            loss, gradient = jax.value_and_grad(lambda n: classifier_loss(n[0], states, shares)[0])((network,))
            (network,), optimiser, _ = descend((network,), loss, gradient, optimiser, (rate,))
            return network, averaged(readout, network, AVERAGE, step), optimiser

        return jax.lax.fori_loop(0, steps, body, (network, network, ADAM.init((network,))))[1]

    return jax.vmap(lambda ours, theirs: jax.vmap(lambda seed: one(ours, theirs, seed))(seeds))(positive, negative)
