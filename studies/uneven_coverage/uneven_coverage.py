"""A setting in which pessimism has to know the state, exact and learned.

    python -m studies.uneven_coverage.uneven_coverage --out runs/foyer
    python -m studies.uneven_coverage.uneven_coverage --out runs/foyer --learned

A behaviour penalty protects against noise where the data are few and costs where they are many: the best weight of it
falls with the number of visits n(s). One weight for all states is a compromise whenever visits differ between states
that matter alike. Visits that are few *for what the policy does there* are a large ratio d^π(s)/d^D(s). So the ratio
must help if (1) the data's visits and the policy's differ, (2) the states of both kinds matter, and (3) the behaviour
knows something, so that staying near it is worth anything. The foyer has all three, and a switch for each.

Every episode begins in one of ``doors`` foyer states and goes on through the hall, ``length`` − 1 more steps, each in
one of ``halls`` states at random, whatever was done. With γ = ½ the first decision counts as much as all later ones
together, but only one row in ``length`` is such a decision: there the ratio is length/2, in the hall about ½. Rewards
are r(s,a) and noise. The behaviour prefers good actions, β(a|s) ∝ exp(skill·r(s,a) + noise), everywhere alike. What is
lost is Σ_s d^π(s)·(max_a r(s,a) − r(s, chosen a)), exactly.

Since no action changes what follows, d^π is the same for every policy and CQL's minimiser can be computed state by
state. Each way to spread the penalty has its α tuned on half of the worlds; losses are those of the other half.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sapp.algorithms import DiscreteCQL
from sapp.core.errors import SappError
from sapp.core.files import write_text
from sapp.core.spec import Batch
from sapp.core.statistics import Interval, paired_difference
from sapp.data import Dataset
from sapp.networks import Policy
from sapp.networks.conv import DefaultScores
from sapp.runs.phases import Phase
from sapp.training.device_data import DeviceData, spec_of
from sapp.training.program import Learner, Member, Population
from sapp.weights import DualDICE, LogMinMax, StateWeights, control
from sapp.weights.base import Metrics
from sapp.weights.transforms import Transform

Floats = np.ndarray
HIDDEN, RATIO_HIDDEN = (64, 64), (32, 32)
UNIT = 6.0
"""Networks see rewards in this unit: their Huber loss is a square, as CQL's is, for errors below 1."""
FLOOR = 0.02
"""Least weight: of the log-min–max, whose lowest weight would be no penalty at all."""


@dataclass(frozen=True)
class Setting:
    """A family of worlds; see the module."""

    doors: int = 10
    halls: int = 10
    actions: int = 8
    episodes: int = 400
    length: int = 100
    noise: float = 3.0
    """Standard deviation of a reward."""
    spread: float = 0.5
    """Standard deviation of r(s,a) over actions."""
    skill: float = 1.5
    discount: float = 0.5


CASES = {
    "uneven coverage": Setting(),
    "even coverage": Setting(length=2),
    "ignorant behaviour": Setting(skill=0.0),
}
"""The setting, and what is left when the first or the third of its conditions is taken away."""


@dataclass(frozen=True)
class World:
    """One draw: true rewards r [S, A], logs, their visits [S, A] and mean rewards [S, A], and d^π [S]."""

    reward: Floats
    data: Dataset
    visits: Floats
    mean: Floats
    occupancy: Floats

    @property
    def share(self) -> Floats:
        """d^D [S]."""
        return self.visits.sum(1) / self.visits.sum()

    @property
    def ratio(self) -> Floats:
        """d^π/d^D [S]."""
        return self.occupancy / self.share

    def lost(self, values: Floats) -> float:
        """Reward a step that greedy choices by values [S, A] lose."""
        chosen = np.take_along_axis(self.reward, values.argmax(1)[:, None], 1)[:, 0]
        return float((self.occupancy * (self.reward.max(1) - chosen)).sum())


def make_world(setting: Setting, seed: int) -> World:
    """Draw a world and its logs; every state is visited at least once."""
    rng = np.random.default_rng([seed, 7])
    states, steps = setting.doors + setting.halls, (setting.episodes, setting.length + 1)
    reward = setting.spread * rng.normal(size=(states, setting.actions))
    preference = setting.skill * reward + 0.3 * rng.normal(size=reward.shape)
    behaviour = np.exp(preference) / np.exp(preference).sum(1, keepdims=True)
    state = setting.doors + rng.integers(setting.halls, size=steps)
    state[:, 0] = rng.integers(setting.doors, size=setting.episodes)
    state[: setting.doors, 0] = np.arange(setting.doors)
    here, there = state[:, :-1].ravel(), state[:, 1:].ravel()
    action = (behaviour[here].cumsum(1) < rng.uniform(size=(len(here), 1))).sum(1).clip(0, setting.actions - 1)
    paid = reward[here, action] + setting.noise * rng.normal(size=len(here))
    visits, total = np.zeros_like(reward), np.zeros_like(reward)
    np.add.at(visits, (here, action), 1.0)
    np.add.at(total, (here, action), paid)
    ends = np.arange(len(here)) % setting.length == setting.length - 1
    one_hot = np.eye(states, dtype=np.float32)
    data = Dataset(
        one_hot[here], action.astype(np.int32), paid, one_hot[there], np.zeros(len(here), bool), ends,
        name=f"foyer-{setting.length}-{seed}", num_actions=setting.actions,
    )  # fmt: skip
    first, later = (1.0 - setting.discount) / setting.doors, setting.discount / setting.halls
    occupancy = np.repeat([first, later], [setting.doors, setting.halls])
    return World(reward, data, visits, total / np.maximum(visits, 1.0), occupancy)


def conservative_values(world: World, charge: Floats, iterations: int = 60) -> Floats:
    """The minimiser Q(s,·) of CQL's loss at every state, −∞ for actions never taken there [S, A].

        Σ_a β̂(a|s)·(Q(s,a) − r_D(s,a))² + c(s)·(log Σ_a exp Q(s,a) − Σ_a β̂(a|s)·Q(s,a))

    What follows is the same for all actions and shifts both sides alike, so it is left out. The loss is convex; each
    iteration is Newton's with the curvature's diagonal, which bounds it from above.
    """
    seen = world.visits > 0
    behaviour = world.visits / world.visits.sum(1, keepdims=True)
    values = np.where(seen, world.mean, -np.inf)
    for _ in range(iterations):
        policy = np.exp(values - values.max(1, keepdims=True))
        policy /= policy.sum(1, keepdims=True)
        error = np.where(seen, values - world.mean, 0.0)
        slope = 2.0 * behaviour * error + charge[:, None] * (policy - behaviour)
        curvature = np.where(seen, 2.0 * behaviour + charge[:, None] * policy, 1.0)
        values = values - np.where(seen, np.clip(slope / curvature, -1.0, 1.0), 0.0)
    return values


def _log_min_max(ratio: Floats) -> Floats:
    log = np.log(ratio)
    spread = np.ptp(log)
    return FLOOR + (log - log.min()) / spread if spread > 0.0 else np.ones_like(ratio)


SPREADS: Mapping[str, Callable[[World, np.random.Generator], Floats]] = {
    "CQL": lambda world, rng: np.ones_like(world.ratio),
    "SA-CQL, w": lambda world, rng: world.ratio,
    "SA-CQL, √w": lambda world, rng: np.sqrt(world.ratio),
    "SA-CQL, log-min–max": lambda world, rng: _log_min_max(world.ratio),
    "√w shuffled": lambda world, rng: rng.permutation(np.sqrt(world.ratio)),
    "random": lambda world, rng: rng.uniform(FLOOR, 1.0 + FLOOR, len(world.ratio)),
    "counts, n^-½": lambda world, rng: world.share**-0.5,
}
"""Ways to spread a penalty over states, before all are scaled to a mean of 1 over the data."""


class Row(NamedTuple):
    """A column of a table: tuned α, mean loss, and its difference to the first column, paired by world."""

    column: str
    alpha: float
    lost: float
    difference: Interval


def tuned(losses: Mapping[str, Floats], alphas: Sequence[float]) -> list[Row]:
    """Losses [α, worlds] by column: α by the first half of the worlds, the result by the second."""
    found = {}
    for name, loss in losses.items():
        half = loss.shape[1] // 2
        best = int(loss[:, :half].mean(1).argmin())
        found[name] = float(alphas[best]), loss[best, half:]
    base = next(iter(found.values()))[1]
    return [
        Row(name, alpha, float(loss.mean()), paired_difference(loss, base, seed=0))
        for name, (alpha, loss) in found.items()
    ]


def exact_losses(worlds: Sequence[World], alphas: Sequence[float]) -> dict[str, Floats]:
    """What CQL's exact minimiser loses [α, worlds], by the way the penalty is spread."""
    found = {}
    for name, spread in SPREADS.items():
        weights = [spread(world, np.random.default_rng(number)) for number, world in enumerate(worlds)]
        weights = [w / (world.share * w).sum() for w, world in zip(weights, worlds, strict=True)]
        found[name] = np.array(
            [
                [world.lost(conservative_values(world, alpha * w)) for w, world in zip(weights, worlds, strict=True)]
                for alpha in alphas
            ]
        )
    return found


class KnownRatio(StateWeights):
    """f of a ratio that is known for every state [S]; states are one-hot."""

    ratio: Any
    f: Transform = LogMinMax(b0=FLOOR)

    def bounds(self) -> tuple[Array, Array]:
        """Range of f."""
        return self.f.bounds()

    def weights(self, state: Any, batch: Batch, policy: Policy, key: Array) -> tuple[Array, Metrics]:
        """f of the batch's ratios."""
        return self.f(batch.observation @ jnp.asarray(self.ratio, jnp.float32))[0], {}


KINDS = {
    "known": ("uniform", "real", "shuffled", "matched", "random"),
    "DualDICE": ("real", "shuffled", "matched"),
}
"""Columns of the learned comparison, by estimator; ``uniform`` is CQL."""


def learned_losses(
    setting: Setting,
    worlds: Sequence[World],
    alphas: Sequence[float],
    steps: int,
    estimators: Sequence[str] = tuple(KINDS),
    say: Callable[[str], None] = print,
) -> tuple[dict[str, Floats], float]:
    """What discrete (SA-)CQL with networks loses [α, worlds] by column, and how DualDICE's log-ratios correlate with
    the truth over states (mean over worlds and α; nan without DualDICE)."""
    logs = [replace(world.data, reward=world.data.reward / UNIT) for world in worlds]
    data, specs = DeviceData.of(logs), [spec_of(log) for log in logs]
    found: dict[str, Floats] = {}
    agreement = float("nan")
    for estimator in estimators:
        kinds = KINDS[estimator]
        members = []
        for kind in kinds:
            for alpha in alphas:
                for number, world in enumerate(worlds):
                    real: StateWeights = KnownRatio(world.ratio.astype(np.float32))
                    if estimator == "DualDICE":
                        real = DualDICE(
                            fallback=True,
                            f=LogMinMax(b0=FLOOR), hidden=RATIO_HIDDEN, nu_lr=1e-3, zeta_lr=1e-3, ratio_lr=1e-3
                        )
                    algorithm = DiscreteCQL(
                        alpha=float(alpha), discount=setting.discount, lr=1e-3, target_every=100, batch_size=128,
                        network=DefaultScores(hidden=HIDDEN), weights=control(real, kind),
                    )  # fmt: skip
                    members.append(Member(f"{estimator}/{kind}/{alpha}/{number}", algorithm, number, number))
        population = Population(members, data, specs)
        phase = Phase("joint", steps, ratio=estimator == "DualDICE")
        learner = population.init()
        learner, _ = population.run(learner, population.empty_sums(learner, phase), phase, steps)
        values = _values(population, learner, worlds)
        for place, kind in enumerate(kinds):
            shape = len(kinds), len(alphas), len(worlds)
            of_kind = values.reshape(*shape, *values.shape[1:])[place]
            label = "CQL" if kind == "uniform" else f"{estimator} ratio" + ("" if kind == "real" else f", {kind}")
            found[label] = np.array(
                [[world.lost(value) for value, world in zip(row, worlds, strict=True)] for row in of_kind]
            )
        if estimator == "DualDICE":
            agreement = _agreement(population, learner, worlds, members)
        say(f"{len(members)} learners with the {estimator} ratio, {steps:,} steps")
    return found, agreement


def _values(population: Population, learner: Learner, worlds: Sequence[World]) -> Floats:
    """Q [members, S, A]; actions that the logs never show in a state are not chosen, as in the exact comparison."""
    states = jnp.eye(worlds[0].reward.shape[0])
    scores = jax.jit(jax.vmap(lambda algorithm, base: algorithm.policy(base)(states).logits))
    values = np.asarray(scores(population.algorithm, learner.base))
    seen = np.stack([worlds[member.dataset].visits > 0 for member in population.members])
    return np.where(seen, values, -np.inf)


def _agreement(population: Population, learner: Learner, worlds: Sequence[World], members: Sequence[Member]) -> float:
    states = jnp.eye(worlds[0].reward.shape[0])

    def log_ratio(algorithm: Any, ratio: Any, base: Any) -> Array:
        zero = jnp.zeros(len(states))
        batch = Batch(states, jnp.zeros(len(states), jnp.int32), zero, states, zero, states)
        return jnp.log(algorithm.weights.of.ratio(ratio, batch, algorithm.policy(base)))

    found = np.asarray(jax.jit(jax.vmap(log_ratio))(population.algorithm, learner.ratio, learner.base))
    pairs = zip(found, members, strict=True)
    return float(np.mean([np.corrcoef(one, np.log(worlds[member.dataset].ratio))[0, 1] for one, member in pairs]))


def table(rows: Sequence[Row]) -> str:
    """Rows as Markdown; losses in thousandths of a reward a step."""
    lines = ["| penalty spread by | α, tuned | lost, ‰ | − CQL (95 % interval) |", "|---|---|---|---|"]
    for row in rows:
        estimate, low, high = (1e3 * value for value in row.difference)
        against = "" if row is rows[0] else f"{estimate:+.1f} ({low:+.1f} to {high:+.1f})".replace("-", "−")
        lines.append(f"| {row.column} | {row.alpha:.3g} | {1e3 * row.lost:.1f} | {against} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the tables")
    parser.add_argument("--cases", nargs="+", default=tuple(CASES), choices=tuple(CASES), help="a table each")
    parser.add_argument("--worlds", type=int, help="half of them to tune α on (default: 120, learned 40)")
    parser.add_argument("--learned", action="store_true", help="networks instead of the exact minimiser")
    parser.add_argument("--steps", type=int, default=3_000, help="of the networks")
    parser.add_argument(
        "--estimators",
        nargs="+",
        default=tuple(KINDS),
        choices=tuple(KINDS),
        help="of the ratio, learned (known first)",
    )
    parser.add_argument("--alphas", type=float, nargs="+", help="α to choose from (default: wide grids)")
    options = parser.parse_args(arguments)
    if options.learned and options.estimators[0] != "known":
        raise SappError("estimators: 'known' comes first, CQL trains with it")
    count = (40 if options.learned else 120) if options.worlds is None else options.worlds
    if count < 2:
        raise SappError(f"worlds is {count}: at least 2 are needed, half of them to tune alpha on")
    alphas = options.alphas or (np.geomspace(0.5, 500, 7) if options.learned else np.geomspace(0.003, 300, 26)).tolist()
    for case in options.cases:
        setting = CASES[case]
        worlds = [make_world(setting, seed) for seed in range(count)]
        note = ""
        if options.learned:
            losses, agreement = learned_losses(setting, worlds, alphas, options.steps, options.estimators)
            if "DualDICE" in options.estimators:
                note = f"DualDICE's log-ratios correlate with the truth by {agreement:.2f}."
        else:
            losses = exact_losses(worlds, alphas)
        rows = tuned(losses, alphas)
        text = f"### {case}, {count} worlds\n\n{table(rows)}\n\n{note}\n"
        record = {"setting": asdict(setting), "rows": [row._asdict() for row in rows], "note": note}
        name = f"{'learned' if options.learned else 'exact'}-{case.replace(' ', '-')}"
        write_text(options.out / f"{name}.md", text)
        write_text(options.out / f"{name}.json", json.dumps(record, indent=1) + "\n")
        print(text)


if __name__ == "__main__":
    main()
