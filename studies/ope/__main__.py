"""Can off-policy estimates be believed? Locomotion policies, our own checkpoints, and ICU-Sepsis, against the truth.

    python -m studies.ope locomotion --environment hopper --policy POLICY --dope DOPE --out OUT
    python -m studies.ope sepsis --out OUT
    python -m studies.ope tables --out OUT

*locomotion* regenerates logs of D4RL's medium behaviour policy (``POLICY``, an .npz file or D4RL's .hdf5) under D4RL's
physics and asks the estimators about

- a *family* of policies between the behaviour policy and the snapshot that the DOPE benchmark published (``DOPE`` is a
  folder with ``dope_ENVIRONMENT_online_5.npz`` and its table ``d4rl_policies.json``): blends of the two, the behaviour
  with more and less noise, and with shifted actions;
- our own *checkpoints*: CQL at several weights, at several steps, as they would be played (deterministic).

Truths are Monte-Carlo means of our own rollouts, discounted; undiscounted returns of the published snapshot are held to
DOPE's table. *sepsis* draws logs of the clinicians' policy of ICU-Sepsis over and over: true values are exact, so the
intervals' coverage can be counted. *tables* prints the tables of the rows in a folder.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import jax
import numpy as np

from sapp.core.errors import SappError
from sapp.core.precision import Precision
from sapp.envs import make
from sapp.envs.collect import collect
from sapp.envs.policies import load_policy
from sapp.evaluation.policy_file import load_actor
from sapp.ope.estimators import Settings
from sapp.ope.offline import evaluate_offline
from sapp.ope.targets import Act, TargetPolicy, from_actor
from sapp.tabular.estimator_logs import draw_logs, normalised_value, table_policy
from sapp.tabular.tasks import HORIZON, icu_sepsis, ward
from studies.ope.control import PROBLEMS, measure
from studies.ope.policies import checkpoints, family, play, tilted
from studies.ope.rows import rows_of, write_rows
from studies.ope.tables import tables


def locomotion(options: argparse.Namespace) -> None:
    """Family and checkpoints of one environment."""
    began = time.perf_counter()

    def say(text: str) -> None:
        print(f"{time.perf_counter() - began:6.1f} s  {text}", flush=True)

    name = options.environment
    file = options.policy
    environment = make(name, physics="d4rl")
    data = collect(load_policy(file), environment, options.transitions, seed=options.seed, name=f"{name}-medium")
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
        discounted, returns = play(list(actors.values()), act, environment, options.truth, options.seed + 1, 0.99)
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

def finite(options: argparse.Namespace) -> None:
    """Repeated logs of a finite task: ICU-Sepsis with exact solutions, or a small ward with networks."""

    sepsis = options.kind == "sepsis"
    exact = sepsis or options.exact
    task = icu_sepsis() if sepsis else ward(np.random.default_rng(options.seed))
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
            name = "ward, solved" if exact and not sepsis else options.kind
            rows += rows_of(f"{name} {size}", report, truth, np.zeros(len(truth)), draw)
            print(
                f"{options.kind}, {size} episodes, draw {draw + 1} of {options.draws}: {report.seconds:.1f} s",
                flush=True,
            )
            write_rows(options.out / f"{options.kind}.csv", rows)

def control(options: argparse.Namespace) -> None:
    """Problems of ``studies.ope.control``, one after the other."""
    first, _, last = options.draws.partition("-")
    for name in options.problems:
        measure(name, range(int(first), int(last or first) + 1), options.out, lambda text: print(text, flush=True))


def print_tables(options: argparse.Namespace) -> None:
    """The tables of a folder's rows, as Markdown."""
    print("\n".join(table.markdown() for table in tables(options.out)))


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
    one.add_argument("--truth", type=int, default=40, help="episodes per policy for its true value")
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
        one.add_argument("--exact", action="store_true", help="solve equations for the ward, too")
        one.set_defaults(run=finite)
    one = kinds.add_parser("control", help="locomotion with the package's own policies, and small control tasks")
    one.add_argument("--problems", nargs="+", choices=tuple(PROBLEMS), default=list(PROBLEMS))
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--draws", default="0-1", help="of the logs, as in 0-1")
    one.set_defaults(run=control)
    one = kinds.add_parser("tables", help="print the tables of the rows in a folder")
    one.add_argument("--out", type=Path, required=True)
    one.set_defaults(run=print_tables)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except SappError as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main()
