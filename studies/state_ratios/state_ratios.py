"""The ground-truth bench of the state-ratio estimators.

    python -m studies.state_ratios.state_ratios --policy POLICY --out runs/state-ratios --limit 1500
    python -m studies.state_ratios.state_ratios --out runs/state-ratios --cost 54

Problems (``ratio_problems``) × shifts k × seeds × estimators. While an estimator learns, the policy
moves from k = 0 to its shift over the first half of the steps, then stays. Then, over logged states: the Spearman
correlation of estimated and true log-ratios; the correlation of the log-min–max weights made of them, in batches of
256; the error of the value E_D[w·r]/E_D[w] in standard deviations of the data's rewards; the largest |ν| or |log ratio|
seen on the way; seconds a step and member. The truth is counted in small cells of the state space,
exact (``finite``), or, where neither can be had (HalfCheetah), the mean of two classifiers between many true samples of
policy and behaviour, each on its own half of them; how well the two rank alike is printed, since no estimate can agree
with the truth better than the truth with itself. ``ceiling`` is what the estimators' own classifier makes of other true
samples in as many steps.

All members of a problem and estimator train as one program. Results are written after each such group, and called
again with the same ``--out`` the bench goes on where it stopped; ``--limit`` ends it in time.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sapp.algorithms import CQL, Algorithm
from sapp.core.files import write_text
from sapp.core.precision import Precision
from sapp.core.spec import Batch, Spec
from sapp.core.statistics import spearman
from sapp.data import Dataset
from sapp.networks import MLP
from sapp.runs.phases import Phase
from sapp.training.device_data import DeviceData, spec_of
from sapp.training.program import Learner, Member, Population
from sapp.weights import DualDICE, LogMinMax, OccupancyInfoNCE, OccupancyModel, StateWeights, Uniform
from sapp.weights.base import Metrics
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
from studies.state_ratios.ratio_problems import NAMES, Finite, Problem, Shifted, make_problem, simulate

SHIFTS = (0.0, 1.0, 2.0, 4.0)
ESTIMATORS = ("ceiling", "dualdice", "occupancy", "unpaired", "infonce")
WEIGHT_BATCH = 256
AVERAGE, CLASSIFIER_LR = OccupancyModel.average, OccupancyModel.classifier_lr
"""Of the classifiers on true samples: the estimators'."""
NOISES = {1.0: "", 0.5: ", half noise", 0.0: ", mean model"}
"""Shares of the occupancy model's noise that are compared, and what the table adds to its name."""
REFERENCE = 0.6
"""The share of the true samples from which a truth is learned; the ceiling's are the others."""


@dataclass(frozen=True)
class Scale:
    """How much of everything: the defaults are the bench's, ``small`` is for a test on a processor."""

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


@dataclass(frozen=True)
class Truth:
    """What is known of π_k at the compared rows: log-ratio, reward a step, and samples of its states [n, O]."""

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
    data = simulate(problem.place, problem.logging(), scale.copies, scale.record, seed=0).dataset(problem.name)
    rows = np.random.default_rng(0).permutation(len(data))[: scale.rows]
    # on the host as many samples from fewer copies: burning in costs most there
    host = isinstance(problem.place, str)
    copies = min(scale.truth_copies, 2 * scale.copies) if host else scale.truth_copies
    steps = scale.truth_copies * scale.truth_steps // copies
    # the data's law from more samples than the data are: their own counts are noise where the ratio is nearly flat
    trace = simulate(problem.place, problem.logging(), 2 * copies if host else copies, scale.record, seed=1000)
    many = _shuffled(trace.observation, 1000)
    truth = {}
    for number, shift in enumerate(shifts):
        policy = problem.policy(shift)
        trace = simulate(
            problem.place, policy, copies, steps, seed=1 + number, burn=scale.burn, discount=scale.discount
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
    if isinstance(problem.place, Finite):
        state = data.observation.argmax(1)
        visits = np.bincount(state, minlength=data.observation.shape[1]) / len(state)
        return np.log(problem.place.ratio(policy, np.maximum(visits, 1e-9), scale.discount))[None, state[rows]]
    if problem.cells is not None:
        ours, theirs = problem.cells(samples), problem.cells(many)
        count = 1 + int(max(each.max() for each in (ours, theirs, problem.cells(data.observation))))
        # half a visit each, so that a cell π never entered has a finite, very small ratio
        share = [(np.bincount(each, minlength=count) + 0.5) / len(each) for each in (ours, theirs)]
        return np.log(share[0] / share[1])[None, problem.cells(data.observation[rows])]
    halves = [jnp.asarray(each[: len(each) // 2 * 2].reshape(2, -1, each.shape[-1])) for each in (samples, many)]
    sizes = scale.hidden, scale.reference_steps, scale.reference_batch, True
    networks = classify(*sizes, jnp.arange(1), *halves, _standard(data))
    return _log_ratios(networks, data, rows)[:, 0]


def _standard(data: Dataset) -> Standard:
    spec = spec_of(data)
    return Standard(spec.observation_mean, spec.observation_std)


def _log_ratios(networks: MLP, data: Dataset, rows: np.ndarray) -> np.ndarray:
    """Of classifiers [sets, seeds], at the rows: [sets, seeds, rows]."""
    observation = _standard(data)(jnp.asarray(data.observation[rows]))
    return np.asarray(jax.vmap(jax.vmap(lambda network: log_ratio(network, observation)))(networks))


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def classify(
    hidden: tuple[int, ...], steps: int, batch: int, decay: bool, seeds: Array, positive: Array, negative: Array,
    standard: Standard,
) -> MLP:  # fmt: skip
    """Classifiers [sets, seeds] between states of two laws [sets, n, O], [sets, m, O]; with ``decay`` the rate falls to
    0 by a half cosine."""

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


@dataclass(frozen=True)
class Row:
    """One cell of the table: an estimator on a problem at a shift, one seed."""

    problem: str
    estimator: str
    shift: float
    seed: int
    spearman: float
    weights: float
    value_error: float
    largest: float
    clipped: float
    sick: float
    seconds: float


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Pearson's; 0 where one of them does not vary or is not finite: such an estimate says nothing."""
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return 0.0
    a, b = one - one.mean(), other - other.mean()
    scale = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / scale if scale > 0.0 else 0.0


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's; 0 where one of them does not vary or is not finite."""
    found = spearman(one, other)
    return found if np.isfinite(found) else 0.0


def batch_weights(log: np.ndarray) -> np.ndarray:
    """Log-min–max weights in batches, as training makes them."""
    count = max(1, len(log) // WEIGHT_BATCH)
    parts = np.array_split(np.asarray(log, np.float64), count)
    return np.concatenate([np.asarray(LogMinMax()(jnp.asarray(np.exp(part - part.max())))[0]) for part in parts])


def judge(
    at: Ground, problem: str, name: str, shift: float, seed: int, log: np.ndarray, largest: float, clipped: float,
    sick: float, seconds: float,
) -> Row:  # fmt: skip
    """An estimate of log-ratios at the compared rows, against the truth."""
    truth, reward = at.truth[shift], at.data.reward[at.rows]
    log = np.asarray(log, np.float64)
    weight = np.exp(log - log.max()) if np.isfinite(log).all() else np.ones(len(log))
    value = float((weight * reward).sum() / weight.sum())
    weights = correlation(batch_weights(log), batch_weights(truth.log_ratio)) if np.isfinite(log).all() else 0.0
    error = abs(value - truth.value) / max(float(at.data.reward.std()), 1e-6)
    alike = rank_correlation(log, truth.log_ratio)
    return Row(problem, name, shift, seed, alike, weights, error, largest, clipped, sick, seconds)


def ceiling(problem: str, at: Ground, scale: Scale) -> list[Row]:
    """The estimators' classifier on true samples that the reference has not seen."""
    shifts = list(at.truth)
    positive = jnp.asarray(np.stack([at.truth[k].samples for k in shifts]))
    negative = jnp.broadcast_to(jnp.asarray(at.data.observation), (len(shifts), *at.data.observation.shape))
    began = time.perf_counter()
    sizes = scale.hidden, scale.steps, scale.batch, False
    networks = classify(*sizes, jnp.arange(scale.seeds), positive, negative, _standard(at.data))
    logs = _log_ratios(networks, at.data, at.rows)
    seconds = (time.perf_counter() - began) / scale.steps / logs.shape[0] / logs.shape[1]
    return [
        judge(at, problem, "ceiling", k, seed, logs[i, seed], float(np.abs(logs[i, seed]).max()), 0.0, 0.0, seconds)
        for i, k in enumerate(shifts)
        for seed in range(scale.seeds)
    ]


def train(problem: Problem, at: Ground, group: str, scale: Scale, deadline: float) -> list[Row] | None:
    """One estimator (and its variants) on a problem: all shifts and seeds as one population; None if time ran out."""
    found = estimators(group, problem.name, scale)
    keys = [(name, k, seed) for name in found for k in at.truth for seed in range(scale.seeds)]
    members = [
        Member(
            f"{name}/{k}/{seed}",
            MovingPolicy(
                behaviour=problem.behaviour, direction=np.asarray(problem.direction, np.float32), shift=k,
                ramp=max(1.0, scale.steps / 2), discount=scale.discount, weights=found[name], batch_size=scale.batch,
            ),
            0,
            seed,
        )
        for name, k, seed in keys
    ]  # fmt: skip
    population = Population(members, DeviceData.of([at.data]), [spec_of(at.data)])
    phase = Phase("joint", scale.steps, weighted=False)
    learner, largest = population.init(), np.zeros(len(members))
    done, seconds, timed, last = 0, 0.0, 0, {}
    while done < scale.steps:
        if time.monotonic() > deadline:
            return None
        count = min(scale.chunk, scale.steps - done)
        began = time.perf_counter()
        learner, sums = population.run(learner, population.empty_sums(learner, phase), phase, count)
        last = {name: np.asarray(value) / np.maximum(np.asarray(sums.steps), 1) for name, value in sums.values.items()}
        if done:  # the first chunk compiles
            seconds, timed = seconds + time.perf_counter() - began, timed + count
        done += count
        size = last.get("ratio/nu_abs", last.get("ratio/log_ratio_max", np.zeros(len(members))))
        largest = np.fmax(largest, np.where(np.isfinite(size), size, np.inf))
    cost = seconds / max(timed, 1) / len(members)
    none = np.zeros(len(members))
    clipped, sick = last.get("ratio/clipped", none), last.get("ratio/unreliable", none)
    out = []
    for name, logs in read(population, learner, at).items():
        for i, (estimator, k, seed) in enumerate(keys):
            label = name if group == "dualdice" else estimator
            out.append(
                judge(
                    at,
                    problem.name,
                    label,
                    k,
                    seed,
                    logs[i],
                    float(largest[i]),
                    float(clipped[i]),
                    float(sick[i]),
                    cost,
                )
            )
    return out


def read(population: Population, learner: Learner, at: Ground) -> dict[str, np.ndarray]:
    """Log-ratios [members, rows] at the compared rows, by the way they are read."""
    data, rows = at.data, at.rows
    zero = jnp.zeros(len(rows))
    observation = jnp.asarray(data.observation[rows])
    batch = Batch(observation, jnp.asarray(data.scaled_action()[rows]), zero, observation, zero, observation)

    def look(algorithm: Any, ratio: Any, base: Any, route: str | None) -> Array:
        weights = algorithm.weights
        if route is not None:
            weights = replace(weights, route=route)
            ratio = ratio if route == "density" else eqx.tree_at(lambda s: s.behaviour, ratio, None)
        found = weights.ratio(ratio, batch, algorithm.policy(base))
        return jnp.log(jnp.maximum(found, 1e-12))

    dice = isinstance(population.members[0].algorithm.weights, DualDICE)
    routes: dict[str, str | None] = (
        {"dualdice ζ": "zeta", "dualdice regression": "regression", "dualdice ζβ/π": "density"} if dice else {"": None}
    )
    return {
        name: np.asarray(
            jax.jit(jax.vmap(partial(look, route=route)))(population.algorithm, learner.ratio, learner.base)
        )
        for name, route in routes.items()
    }


def costs(members: int, steps: int, precision: str, hidden: tuple[int, ...] = (256, 256, 256)) -> list[dict[str, Any]]:
    """Seconds a step of a population of CQL, and of CQL with each estimator, on data of HalfCheetah's size."""
    rng = np.random.default_rng(0)
    count = 20_000
    observation = rng.normal(size=(count, 17)).astype(np.float32)
    action = np.tanh(rng.normal(size=(count, 6))).astype(np.float32)
    ends = np.arange(count) % 1000 == 999
    data = Dataset(observation, action, observation[:, 0], observation, np.zeros(count, bool), ends, name="sizes")
    out: list[dict[str, Any]] = []
    columns = {"CQL": Uniform(), "DualDICE": DualDICE(), "occupancy": OccupancyModel(), "infonce": OccupancyInfoNCE()}
    for name, weights in columns.items():
        algorithm = CQL(weights=weights, precision=precision, hidden=hidden)  # type: ignore[arg-type]
        group = [Member(f"{name}/{seed}", algorithm, 0, seed) for seed in range(members)]
        population = Population(group, DeviceData.of([data]), [spec_of(data)])
        phase = Phase("joint", steps, ratio=weights.learns)
        learner, sums = population.init(), None
        seconds = []
        for _ in range(4):  # the first compiles
            sums = population.empty_sums(learner, phase)
            jax.block_until_ready(learner)
            began = time.perf_counter()
            learner, sums = population.run(learner, sums, phase, steps)
            jax.block_until_ready(learner)
            seconds.append((time.perf_counter() - began) / steps)
        out.append({"column": name, "seconds": float(np.median(seconds[1:]))})
        out[-1]["times CQL"] = out[-1]["seconds"] / out[0]["seconds"]
    return out


def table(rows: Sequence[Row]) -> str:
    """Means over seeds (lowest and highest seed) as Markdown, a block a problem."""
    lines: list[str] = []
    for problem in dict.fromkeys(row.problem for row in rows):
        mine = [row for row in rows if row.problem == problem]
        shifts = sorted({row.shift for row in mine})
        heads = [f"Spearman, k = {shift:g}" for shift in shifts]
        lines += [
            f"### {problem}, {len({row.seed for row in mine})} seeds",
            "",
            f"| estimator | {' | '.join(heads)} | weights' correlation | value error | largest | clipped | µs |",
            "|---" * (len(heads) + 6) + "|",
        ]
        for name in dict.fromkeys(row.estimator for row in mine):
            by = [[row for row in mine if row.estimator == name and row.shift == shift] for shift in shifts]
            cells = [
                f"{np.mean(s):.2f} ({min(s):.2f} to {max(s):.2f})" if (s := [row.spearman for row in cell]) else "–"
                for cell in by
            ]
            each = [cell for cell in by if cell]

            def over(field: str, each: list[list[Row]] = each, digits: int = 2) -> str:
                return " ".join(f"{np.mean([getattr(row, field) for row in cell]):.{digits}f}" for cell in each)

            largest = " ".join(f"{max(row.largest for row in cell):.3g}" for cell in each)
            lines.append(
                f"| {name} | {' | '.join(cells)} | {over('weights')} | {over('value_error')} | {largest} "
                f"| {over('clipped')} | {1e6 * each[0][0].seconds:.1f} |"
            )
        lines.append("")
    return "\n".join(lines)


def load(folder: Path) -> list[Row]:
    """Results so far."""
    file = folder / "state-ratios.json"
    if not file.exists():
        return []
    return [Row(**row) for row in json.loads(file.read_text(encoding="utf-8"))["rows"]]


def save(folder: Path, rows: Sequence[Row], scale: Scale) -> None:
    """JSON, CSV and the table, whole or not at all."""
    content = {"scale": asdict(scale), "rows": [asdict(row) for row in rows]}
    write_text(folder / "state-ratios.json", json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    text = io.StringIO()
    writer = csv.DictWriter(text, list(Row.__dataclass_fields__))
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    write_text(folder / "state-ratios.csv", text.getvalue())
    write_text(folder / "state-ratios.md", table(rows))


def bench(
    problems: Sequence[str], groups: Sequence[str], shifts: Sequence[float], scale: Scale, out: Path,
    policy: Path | None = None, limit: float = float("inf"),
) -> list[Row]:  # fmt: skip
    """Everything that is not in ``out`` yet, until the time is up."""
    deadline, rows = time.monotonic() + limit, load(out)
    for name in problems:
        done = {row.estimator.split(",")[0].split(" ")[0] for row in rows if row.problem == name}
        missing = [group for group in groups if group not in done]
        if not missing:
            continue
        if time.monotonic() > deadline:
            break
        problem = make_problem(name, policy)
        began = time.perf_counter()
        at = ground(problem, shifts, scale)
        print(f"{name}: {len(at.data):,} transitions and the truth in {time.perf_counter() - began:.0f} s", flush=True)
        for group in missing:
            began = time.perf_counter()
            found = ceiling(name, at, scale) if group == "ceiling" else train(problem, at, group, scale, deadline)
            if found is None:
                print(f"{name}, {group}: out of time, not kept; call again to go on", flush=True)
                return rows
            rows = [*rows, *found]
            save(out, rows, scale)
            print(f"{name}, {group}: {time.perf_counter() - began:.0f} s", flush=True)
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--policy", type=Path, help="file of D4RL's halfcheetah policy (default: a random linear one)")
    parser.add_argument("--problems", nargs="*", default=NAMES, choices=NAMES)
    parser.add_argument("--estimators", nargs="+", default=ESTIMATORS, choices=ESTIMATORS)
    parser.add_argument("--shifts", nargs="+", type=float, default=SHIFTS)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--noises", type=float, nargs="+", choices=tuple(NOISES), help="of the model (default: all)")
    parser.add_argument("--small", action="store_true", help="a few steps of tiny networks, to see that it runs")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds")
    parser.add_argument("--cost", type=int, default=0, metavar="MEMBERS", help="time CQL with each estimator instead")
    parser.add_argument("--precision", default="auto", choices=get_args(Precision), help="of CQL, for --cost")
    options = parser.parse_args(arguments)
    if options.cost:
        timed = costs(options.cost, 20 if options.small else 300, options.precision)
        write_text(options.out / f"cost-{options.cost}.json", json.dumps(timed, indent=1) + "\n")
        print("\n".join(f"{row['column']:10s} {1e3 * row['seconds']:8.3f} ms  {row['times CQL']:.2f}" for row in timed))
        return
    given = {name: getattr(options, name) for name in ("steps", "seeds", "noises")}
    changes: dict[str, Any] = {
        name: tuple(value) if name == "noises" else value for name, value in given.items() if value is not None
    }
    scale = replace(SMALL if options.small else Scale(), **changes)
    rows = bench(
        options.problems, options.estimators, options.shifts, scale, options.out, options.policy, options.limit
    )
    print(table(rows))


if __name__ == "__main__":
    main()
