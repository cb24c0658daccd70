"""Off-policy estimates against the truth: locomotion policies, our own checkpoints, and ICU-Sepsis.

    python -m studies.ope.ope locomotion --environment hopper --policy POLICY --dope DOPE --out OUT
    python -m studies.ope.ope sepsis --out OUT
    python -m studies.ope.ope report --out OUT --results docs/results

*locomotion* regenerates logs of D4RL's medium behaviour policy under D4RL's physics (``POLICY``, an .npz file or
D4RL's .hdf5) and asks the estimators about

- a *family* of policies between the behaviour policy and the snapshot that the DOPE benchmark published (``DOPE`` is a
  folder with ``dope_ENVIRONMENT_online_5.npz`` and its table ``d4rl_policies.json``): blends of the two, the behaviour
  with more and less noise, and with shifted actions;
- our own *checkpoints*: CQL at several weights, at several steps, as they would be played (deterministic).

Truths are Monte-Carlo means of our own rollouts, discounted; undiscounted returns of the published snapshot are held to
DOPE's table. *sepsis* draws logs of the clinicians' policy of ICU-Sepsis over and over: true values are exact, so the
intervals' coverage can be counted. *report* writes the page and the tables.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sapp.core.errors import SappError
from sapp.core.precision import Precision
from sapp.data import Dataset
from sapp.evaluation.policy_file import load_actor
from sapp.evaluation.rollouts import evaluate_discounted
from sapp.networks import GaussianActor, TanhGaussian
from sapp.ope.doubly_robust import ESTIMATORS
from sapp.ope.estimators import Settings
from sapp.ope.offline import Offline, evaluate_offline
from sapp.ope.targets import Act, TargetPolicy, from_actor

FAMILY: dict[str, tuple[float, float, float]] = {
    "behaviour": (0.0, 0.0, 1.0),
    "noise 0": (0.0, 0.0, 1e-3),
    "noise 0.3": (0.0, 0.0, 0.3),
    "noise 1.5": (0.0, 0.0, 1.5),
    "shift -1": (0.0, -1.0, 1.0),
    "shift -0.5": (0.0, -0.5, 1.0),
    "shift 0.5": (0.0, 0.5, 1.0),
    "shift 1": (0.0, 1.0, 1.0),
    "blend 0.1": (0.1, 0.0, 1.0),
    "blend 0.25": (0.25, 0.0, 1.0),
    "blend 0.5": (0.5, 0.0, 1.0),
    "DOPE": (1.0, 0.0, 1.0),
}
"""Policies by (share of DOPE's snapshot, shift in the behaviour's standard deviations, factor of the noise)."""

COLUMNS = (
    "problem", "policy", "draw", "estimator", "truth", "truth_error", "estimate", "low", "high", "verdict", "off_data",
    "effective_episodes", "episodes", "seconds",
)  # fmt: skip


class Blend(eqx.Module):
    """A tanh-Gaussian between two others, with its mean shifted and its noise scaled."""

    first: GaussianActor
    second: GaussianActor
    share: Array
    shift: Array
    noise: Array

    def __call__(self, observation: Array) -> TanhGaussian:
        """Mean and log standard deviation are blended before tanh."""
        one, two = self.first(observation), self.second(observation)
        mean = one.mean + self.share * (two.mean - one.mean) + self.shift * jnp.exp(one.log_std)
        log_std = one.log_std + self.share * (two.log_std - one.log_std) + jnp.log(self.noise)
        return TanhGaussian(mean, log_std)


def family(behaviour: GaussianActor, snapshot: GaussianActor) -> dict[str, Blend]:
    """The policies of ``FAMILY``."""
    return {
        name: Blend(behaviour, snapshot, *(jnp.float32(number) for number in numbers))
        for name, numbers in FAMILY.items()
    }


def play(
    actors: Sequence[Any], act: Act, environment: Any, episodes: int, seed: int, discount: float
) -> tuple[np.ndarray, np.ndarray]:
    """Discounted and plain returns of policies of one structure, [P, episodes] each."""
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *actors)

    @jax.jit
    def ask(observation: Array, key: Array) -> Array:
        def one(actor: Any, x: Array, key: Array) -> Array:
            return actor(x).mode() if act == "mode" else actor(x).sample(key)[0]

        return jax.vmap(one)(stacked, observation, jax.random.split(key, len(actors)))

    keys = iter(range(1 << 30))

    def answer(observation: np.ndarray) -> np.ndarray:
        key = jax.random.fold_in(jax.random.PRNGKey(seed + 1), next(keys))
        unit = np.asarray(ask(jnp.asarray(observation), key), np.float64)
        low, high = environment.action_low, environment.action_high
        return low + (unit + 1) * 0.5 * (high - low)

    found = evaluate_discounted(answer, environment, len(actors), episodes, seed, discount)
    return found.discounted, found.returns


def checkpoints(
    data: Dataset, weights: Sequence[float], steps: Sequence[int], hidden: tuple[int, ...], precision: str
) -> dict[str, GaussianActor]:
    """CQL's actors at several weights and after several numbers of steps, trained as one population."""
    from sapp.algorithms import CQL
    from sapp.runs.phases import plain_protocol
    from sapp.training.device_data import DeviceData, spec_of
    from sapp.training.program import Member, Population

    members = [
        Member(f"cql {weight:g}", CQL(alpha=weight, hidden=hidden, action_samples=4, precision=precision), 0, 0)  # type: ignore[arg-type]
        for weight in weights
    ]
    population = Population(members, DeviceData.of([data]), [spec_of(data)])
    learner, phase, done = population.init(), plain_protocol(max(steps))[0], 0
    found = {}
    for step in steps:
        learner, _ = population.run(learner, population.empty_sums(learner, phase), phase, step - done)
        done = step
        actors = population.actors(learner)
        for position, member in enumerate(members):
            found[f"{member.name} @ {step}"] = jax.tree.map(lambda leaf, i=position: leaf[i], actors)
    return found


def rows_of(problem: str, report: Offline, truth: np.ndarray, error: np.ndarray, draw: int = 0) -> list[dict[str, Any]]:
    """One row a policy and estimator; values are normalised, (1−γ) × discounted return."""
    rows = []
    for policy, name in enumerate(report.names):
        diagnosis = report.diagnoses[policy]
        for estimator in ESTIMATORS:
            found = report.interval(policy, estimator)
            numbers = (
                problem, name, draw, estimator, truth[policy], error[policy], found.estimate, found.low, found.high,
                diagnosis.verdict if estimator == diagnosis.chosen else "", diagnosis.off_data,
                diagnosis.effective_episodes, diagnosis.episodes, report.seconds,
            )  # fmt: skip
            rows.append(dict(zip(COLUMNS, numbers, strict=True)))
    return rows


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """A table of results, numbers to six digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float | np.floating) else v for k, v in row.items()})


def locomotion(options: argparse.Namespace) -> None:
    """Family and checkpoints of one environment."""
    from sapp.envs import make
    from sapp.envs.collect import collect
    from sapp.envs.policies import load_policy

    began = time.perf_counter()

    def say(text: str) -> None:
        print(f"{time.perf_counter() - began:6.1f} s  {text}", flush=True)

    name = options.environment
    file = options.policy
    place = make(name, physics="d4rl")
    data = collect(load_policy(file), place, options.transitions, seed=options.seed, name=f"{name}-medium")
    say(f"{data.size:,} transitions, {data.num_episodes} episodes")
    short = {"walker2d": "walker"}.get(name, name)
    snapshot = load_actor(options.dope / f"dope_{short}_online_5.npz")
    blends = family(load_actor(file), snapshot)
    if options.policies_count:
        blends = dict(list(blends.items())[: options.policies_count])
    settings = Settings(
        discount=0.99, steps=options.steps, bags=options.bags, hidden=tuple(options.hidden), seed=options.seed,
        batch_size=options.batch, value_lr=options.value_lr, nu_lr=options.nu_lr, zeta_lr=options.zeta_lr,
    )  # fmt: skip
    everything: list[dict[str, Any]] = []
    facts: dict[str, Any] = {
        "environment": name, "transitions": data.size, "episodes": data.num_episodes, "truth_episodes": options.truth,
        "settings": {"steps": settings.steps, "bags": settings.bags, "hidden": settings.hidden, "discount": 0.99},
        "device": jax.devices()[0].device_kind,
    }  # fmt: skip

    def measure(kind: str, actors: dict[str, Any], act: Act) -> None:
        discounted, returns = play(list(actors.values()), act, place, options.truth, options.seed + 1, 0.99)
        truth = 0.01 * discounted.mean(1)
        error = 0.01 * discounted.std(1, ddof=1) / options.truth**0.5
        say(f"{kind}: truth of {len(actors)} policies")
        targets: list[TargetPolicy] = [from_actor(key, actor, False, act) for key, actor in actors.items()]
        report = evaluate_offline(
            targets, data, settings, progress=lambda done, total: say(f"{kind}: {done} of {total} steps")
        )
        say(f"{kind}: estimates of {len(actors)} policies ({report.seconds:.1f} s)")
        everything.extend(rows_of(f"{name} {kind}", report, truth, error, options.seed))
        facts[kind] = {
            "seconds": report.seconds,
            "returns": {
                key: [float(found.mean()), float(found.std(ddof=1) / len(found) ** 0.5)]
                for key, found in zip(actors, returns, strict=True)
            },
            "behaviour": list(report.behaviour),
        }
        # written after each part, so that a run cut short leaves what it has
        options.out.mkdir(parents=True, exist_ok=True)
        write_rows(options.out / f"{name}-draw{options.seed}.csv", everything)
        (options.out / f"{name}-draw{options.seed}.json").write_text(json.dumps(facts, indent=1) + "\n")

    table = json.loads((options.dope / "d4rl_policies.json").read_text())
    facts["dope"] = next(
        {"return": row["return_mean"], "std": row["return_std:"]}
        for row in table
        if row["policy_path"] == f"{short}/{short}_online_5.pkl"
    )
    measure("family", blends, "sample")
    if options.checkpoint_steps:
        own = checkpoints(
            data, options.weights, options.checkpoint_steps, tuple(options.checkpoint_hidden), options.precision
        )
        say(f"trained {len(options.weights)} CQL members to step {max(options.checkpoint_steps):,}")
        measure("checkpoints", own, "mode")


def tilted(task: Any) -> dict[str, np.ndarray]:
    """Policies around a finite task's behaviour β: β·exp(Q/τ) better and worse than it, and β mixed with uniform."""
    value = task.mdp.value(task.behaviour)
    q = task.mdp.action_value(value)

    def tilt(temperature: float) -> np.ndarray:
        power = (q - q.mean(-1, keepdims=True)) / temperature
        weight = task.behaviour * np.exp(power - power.max(-1, keepdims=True))
        return weight / weight.sum(-1, keepdims=True)

    uniform = np.full_like(task.behaviour, 1.0 / task.behaviour.shape[-1])
    return {
        "behaviour": task.behaviour,
        "better 0.3": tilt(0.3),
        "better 0.1": tilt(0.1),
        "better 0.03": tilt(0.03),
        "better 0.01": tilt(0.01),
        "worse 0.1": tilt(-0.1),
        "worse 0.03": tilt(-0.03),
        "quarter uniform": 0.75 * task.behaviour + 0.25 * uniform,
    }


def finite(options: argparse.Namespace) -> None:
    """Repeated logs of a finite task: ICU-Sepsis with exact solutions, or a small ward with networks."""
    from sapp.tabular.estimator_logs import draw_logs, normalised_value, table_policy
    from sapp.tabular.tasks import HORIZON, icu_sepsis, ward

    exact = options.kind == "sepsis"
    task = icu_sepsis() if exact else ward(np.random.default_rng(options.seed))
    discount = task.mdp.discount
    policies = tilted(task)
    truth = np.array([normalised_value(task.mdp, policy) for policy in policies.values()])
    targets = [table_policy(name, policy) for name, policy in policies.items()]
    rows: list[dict[str, Any]] = []
    for size in options.episodes:
        for draw in range(options.draws):
            seed = options.seed + 1000 * draw + size
            data = draw_logs(task.mdp, task.behaviour, size, HORIZON, seed, task.ends, task.paying)
            settings = Settings(
                discount=discount, steps=options.steps, bags=options.bags, hidden=tuple(options.hidden),
                batch_size=options.batch, value_lr=1e-3, nu_lr=1e-3, zeta_lr=3e-3, seed=seed, exact=exact,
            )  # fmt: skip
            report = evaluate_offline(targets, data, settings)
            rows += rows_of(f"{options.kind} {size}", report, truth, np.zeros(len(truth)), draw)
            print(
                f"{options.kind}, {size} episodes, draw {draw + 1} of {options.draws}: {report.seconds:.1f} s",
                flush=True,
            )
            write_rows(options.out / f"{options.kind}.csv", rows)


def write_report(options: argparse.Namespace) -> None:
    """The page."""
    from studies.ope.ope_report import report

    print(report(options.out, options.results))


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    one = kinds.add_parser("locomotion", help="DOPE's policy, a family around it, our checkpoints")
    one.add_argument("--environment", required=True, choices=("halfcheetah", "hopper", "walker2d"))
    one.add_argument("--policy", type=Path, required=True, help="D4RL's medium policy (.npz, or D4RL's .hdf5 file)")
    one.add_argument("--dope", type=Path, required=True)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--transitions", type=int, default=300_000)
    one.add_argument("--truth", type=int, default=40, help="episodes a policy for its true value")
    one.add_argument("--steps", type=int, default=20_000)
    one.add_argument("--bags", type=int, default=6)
    one.add_argument("--hidden", type=int, nargs="+", default=[256, 256])
    one.add_argument("--batch", type=int, default=256)
    one.add_argument("--value-lr", type=float, default=3e-4)
    one.add_argument("--nu-lr", type=float, default=3e-4)
    one.add_argument("--zeta-lr", type=float, default=1e-3)
    one.add_argument("--checkpoint-hidden", type=int, nargs="+", default=[256, 256])
    one.add_argument("--weights", type=float, nargs="+", default=[0.5, 2.0, 5.0, 20.0])
    one.add_argument("--checkpoint-steps", type=int, nargs="*", default=[2_000, 6_000, 20_000])
    one.add_argument("--precision", default="auto", choices=get_args(Precision))
    one.add_argument("--policies-count", type=int, default=0, help="only the first so many of the family")
    one.add_argument("--seed", type=int, default=0, help="draw of the logs; each writes its own files into OUT")
    one.set_defaults(run=locomotion)
    for kind, what, episodes, bags in (
        ("sepsis", "ICU-Sepsis, exact solutions", [500, 2000, 5000], 8),
        ("ward", "a small task of the same form, networks", [200], 6),
    ):
        one = kinds.add_parser(kind, help=what)
        one.add_argument("--out", type=Path, required=True)
        one.add_argument("--episodes", type=int, nargs="+", default=episodes)
        one.add_argument("--draws", type=int, default=20)
        one.add_argument("--bags", type=int, default=bags)
        one.add_argument("--steps", type=int, default=2_000)
        one.add_argument("--batch", type=int, default=128)
        one.add_argument("--hidden", type=int, nargs="+", default=[32, 32])
        one.add_argument("--seed", type=int, default=0)
        one.set_defaults(run=finite)
    one = kinds.add_parser("report", help="write the page and the tables")
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--results", type=Path, required=True)
    one.set_defaults(run=write_report)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except SappError as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main()
