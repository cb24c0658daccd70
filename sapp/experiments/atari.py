"""Atari by the paper's second half: logs of our own, then CQL, SA-CQL, its controls and REM on them.

    python -m sapp.experiments.atari --out runs/atari --log-steps 500_000 --minutes 25 --set network.precision=mixed
    python -m sapp.experiments.atari --out runs/atari --policies POLICIES --epsilons 0.01 0.1 0.3 1 --minutes 25
    python -m sapp.experiments.atari --out runs/atari --report

First every game is played by an online DQN that logs its replay (Dopamine's protocol; ``OUT/logs``), or, with
``--policies``, by a policy of that folder (``*GAME*.npz``, see ``sapp.envs.frame_policies``) that draws from
its softmax (at ``--temperature``), with as many steps at each of ``--epsilons``, the chance of a random action. Then
one run trains the shared phases of SA-CQL (CQL alone, then the ratio of its policy), another REM for as many updates as
the third, which forks the first into SA-CQL and all its controls, CQL among them. What is finished is not done again;
what a time limit stopped goes on where it was. ``--part`` lets two processes train CQL's family and REM side by side.

Of ``--minutes`` each run may use an even share of what is left; what the cheap ones leave is the fork's, the last. A
run that its share stops is played once more (``stopped.csv``): ``--spare`` seconds are kept for that.

``results.md`` has final and best returns beside the paper's table and SA-CQL's lead over every other column with
intervals, ``curves.csv`` every evaluation, ``curves.png`` a picture of them. ``--report`` needs the runs' tables and
settings (``*.csv``, ``*.json``), no checkpoints and no frames.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import sapp
from sapp.algorithms.config import override
from sapp.algorithms.presets import preset
from sapp.collect import online_dqn as dqn
from sapp.collect.frames_log import EPISODES
from sapp.collect.given import log_given
from sapp.core.errors import SappError
from sapp.core.files import write_text
from sapp.core.statistics import seeds_and_episodes
from sapp.data.frames import FrameDataset
from sapp.data.loaders.dqn_files import META
from sapp.experiments.grid import CONTROLS, Family, Grid, Maker, Scale, changed
from sapp.experiments.paper import TABLE_2
from sapp.runs.metric_tables import read
from sapp.runs.phases import Phase, plain_protocol
from sapp.runs.run import CONFIG, EVALUATIONS
from sapp.weights import control
from studies.baselines.baselines import STOPPED, Clock, run_job
from studies.baselines.curves import draw

GAMES = ("Pong", "Breakout", "Qbert", "Seaquest")
REM_COLUMN = "REM"
SMOKE_SIZES: dict[str, Any] = {
    "network.channels": (8,), "network.kernels": (6,), "network.strides": (3,), "network.features": 32, "lr": 1e-3,
    "target_every": 50, "ensemble": 4, "batch_size": 32, "weights.of.hidden": (32, 32),
}  # fmt: skip
"""Small networks on the small image game: enough to see every part at work, not to compare methods."""


def grid(scale: Scale) -> Grid:
    """Table 2 at a scale: ``sapp experiment atari``. The games' logs are found in the folder of the data."""
    smoke = scale.name == "smoke"
    precision = {"network.precision": scale.changes["precision"]} if "precision" in scale.changes else {}
    settings = (SMOKE_SIZES if smoke else {}) | precision
    columns = {name: column(kind, settings, scale.fallback) for name, kind in CONTROLS.items()}
    rem = {REM_COLUMN: lambda dataset: changed(preset("rem", dataset), settings)}
    return Grid(
        "atari",
        "Table 2: discrete SA-CQL on Atari",
        "Does weighting discrete CQL's pessimism state by state (SA-CQL) give better players from logged frames than "
        "CQL, than REM, and than three controls whose weights know nothing of the states?",
        scale,
        ("catch-60",) if smoke else tuple(game.lower() for game in GAMES),
        (Family("discrete-cql", columns, state_aware=True), Family("rem", rem, lead_in=True)),
    )


def environment(game: str) -> str:
    """The environment's name of a game: "Pong" is "ALE/Pong-v5"."""
    return game if game == "catch" or game.startswith("ALE/") else f"ALE/{game}-v5"


def make_logs(options: argparse.Namespace) -> dict[str, Path]:
    """The games' logs, played where they are not there yet."""
    folders = {}
    for game in options.games:
        folder = options.out / "logs" / game
        if not (folder / dqn.LOGS / EPISODES).is_file():
            began = time.monotonic()
            (log_dqn if options.policies is None else log_by_policy)(game, folder, options)
            took, steps = time.monotonic() - began, sum(length for length, *_ in _episodes(folder))
            print(f"{game}: logged {steps:,} steps in {took:.0f} s ({steps / took:,.0f} a second)", flush=True)
        folders[game] = folder
    return folders


def log_dqn(game: str, folder: Path, options: argparse.Namespace) -> None:
    """A game's log by a DQN that learns it."""
    dqn.train(
        environment(game), steps=options.log_steps, seed=0, rows=options.log_rows,
        algorithm=changed(dqn.dopamine_dqn(), options.settings),
        exploration=dqn.Exploration(options.log_warm_up, options.log_decay),
        capacity=min(1_000_000, max(options.log_steps, 20 * options.log_rows)), out=folder,
        progress=False, time_limit=None if options.log_minutes is None else 60 * options.log_minutes,
    )  # fmt: skip


def log_by_policy(game: str, folder: Path, options: argparse.Namespace) -> None:
    """A game's log by a policy that is given, with noise of several strengths."""
    found = sorted(options.policies.glob(f"*{game}*.npz"))
    if not found:
        raise SappError(f"{options.policies}: no policy of {game} (*{game}*.npz)")
    log_given(
        environment(game), found[0], steps=options.log_steps, epsilon=options.epsilons, rows=options.log_rows,
        temperature=options.temperature, out=folder,
    )  # fmt: skip


def column(kind: str, settings: Mapping[str, Any], fallback: bool = True) -> Maker:
    """Discrete SA-CQL, or one of its controls."""

    def on(dataset: str) -> sapp.Algorithm:
        algorithm = preset("sa-discrete-cql", dataset)
        weights = override(algorithm.weights, {"fallback": fallback})
        return changed(replace(algorithm, weights=control(weights, kind)), settings)

    return on


def train(options: argparse.Namespace, data: Sequence[FrameDataset], clock: Clock) -> None:
    """The three runs, each begun, continued or left as it is, in the order of what they cost."""
    every = max(1, options.steps // options.evaluations)
    shared: dict[str, Any] = {
        "seeds": options.seeds, "eval_episodes": options.eval_episodes, "eval_max_steps": options.eval_max_steps,
        "log_every": max(1, min(1_000, every)),
    }  # fmt: skip
    pretrain, ratio, joint = sapp.sa_protocol(options.steps, options.pretrain, options.ratio)
    columns = {name: column(kind, options.settings) for name, kind in CONTROLS.items()}
    games: Any = data
    ready = False
    if "cql" in options.parts:
        real = {"SA-CQL": columns["SA-CQL"]}
        ready = run_job(options.out / "shared", games, real, clock, phases=(pretrain, ratio), eval_every=0, **shared)
    if "rem" in options.parts and not clock.over:
        rem = {REM_COLUMN: lambda dataset: changed(preset("rem", dataset), options.settings)}
        # in two phases, so that it is played after as many updates as the fork's members
        lead_in = Phase("pretrain", options.pretrain, ratio=False, weighted=False)
        phases = (lead_in, *plain_protocol(options.steps))
        run_job(options.out / "rem", games, rem, clock, phases=phases, eval_every=every, **shared)
    if ready and not clock.over:
        run_job(
            options.out / "joint", games, columns, clock, phases=(joint,), start_from=options.out / "shared",
            eval_every=every, **shared,
        )  # fmt: skip


def evaluations(out: Path) -> list[dict[str, Any]]:
    """Every evaluation of the runs: game (by its log's name), column, seed, updates, mean return."""
    found: dict[tuple[str, str, int, int], dict[str, Any]] = {}
    for name in ("joint", "rem"):
        before = _pretrain(out) if name == "joint" and (out / name).is_dir() else 0  # a fork counts its own steps
        for file in (out / name / EVALUATIONS, out / name / STOPPED):
            for row in read(file) if file.is_file() else []:
                chosen, log, seed = row["member"].split("/")
                updates = int(row["step"]) + before
                one = {"log": log, "column": chosen, "seed": int(seed), "updates": updates,
                       "return": float(row["return_mean"]),
                       "returns": [float(each) for each in row["returns"].split(";") if each]}  # fmt: skip
                found.setdefault((log, chosen, int(seed), updates), one)
    return [found[key] for key in sorted(found)]


def _pretrain(out: Path) -> int:
    """Updates of the shared phases, which the fork's members have behind them."""
    file = out / "shared" / CONFIG
    if not file.is_file():
        raise SappError(f"{file}: is missing; it says how many updates came before those of {out / 'joint'}")
    return int(json.loads(file.read_text(encoding="utf-8"))["phases"][0]["steps"])


def report(out: Path, games: Sequence[str]) -> str:
    """Write results.md, curves.csv and curves.png of those games that have logs; returns the text."""
    rows = evaluations(out)
    if not rows:
        raise SappError(f"{out}: nothing was evaluated yet; run the experiment first")
    drawn: dict[str, dict[str, dict[int, list[tuple[int, float]]]]] = {}
    leads = ["| game | SA-CQL − | updates | return, 95 % interval |", "|---|---|---|---|"]
    lines = ["game,column,seed,updates,return"]
    text = ["| game | column | seeds | updates | final | best | paper |", "|---|---|---|---|---|---|---|"]
    logs = []
    for game in games:
        folder = out / "logs" / game
        if not (folder / dqn.LOGS / EPISODES).is_file():
            continue
        log = json.loads((folder / dqn.LOGS / META).read_text(encoding="utf-8"))
        mine = [row for row in rows if row["log"] == log["name"]]
        logs.append(_log_line(game, folder, log["provenance"]))
        for chosen in [*CONTROLS, REM_COLUMN]:
            curves = _curves([row for row in mine if row["column"] == chosen])
            for seed, curve in curves.items():
                lines += [f"{game},{chosen},{seed},{updates},{value:g}" for updates, value in curve]
            if curves:
                drawn.setdefault(game, {})[chosen] = curves
                leads += _lead(game, chosen, mine)
                final, best = ([function(curve) for curve in curves.values()] for function in (_final, _best))
                last = min(curve[-1][0] for curve in curves.values())
                paper = TABLE_2.get(game.lower(), {}).get(chosen)
                text.append(
                    f"| {game} | {chosen} | {len(curves)} | {last:,} | {_spread(final)} | {_spread(best)} | "
                    f"{f'{paper[0]:g} ± {paper[1]:g}' if paper else '–'} |"
                )
    body = "\n".join(["\n".join(logs), "", "\n".join(text), "", "\n".join(leads), ""])
    write_text(out / "curves.csv", "\n".join(lines) + "\n")
    write_text(out / "results.md", body)
    draw([drawn], out / "curves.png", "updates", "return")
    return body


def _lead(game: str, other: str, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """SA-CQL's lead over a column, paired by seed and start, as a line of the table.

    It is taken after the most updates at which both were played, or, where there are none, at the last of each.
    """
    if other == "SA-CQL":
        return []
    returns: list[dict[int, dict[int, list[float]]]] = [{}, {}]
    for row in rows:
        for name, own in zip(("SA-CQL", other), returns, strict=True):
            if row["column"] == name:
                own.setdefault(row["seed"], {})[row["updates"]] = row["returns"]
    pairs, places = [], set()
    for seed in sorted(returns[0].keys() & returns[1].keys()):
        ours, theirs = returns[0][seed], returns[1][seed]
        common = ours.keys() & theirs.keys()
        at, there = (max(common), max(common)) if common else (max(ours), max(theirs))
        pairs.append((ours[at], theirs[there]))
        places.add(f"{at:,}" if common else f"{at:,} and {there:,}")
    if not pairs or len({len(each) for pair in pairs for each in pair}) != 1 or not pairs[0][0]:
        return []
    found = seeds_and_episodes(np.array([np.subtract(*pair) for pair in pairs]), seed=0)
    text = f"{found.estimate:+.4g} ({found.low:.4g} to {found.high:.4g})"
    return [f"| {game} | {other} | {', '.join(sorted(places))} | {text} |"]


def _curves(rows: Sequence[Mapping[str, Any]]) -> dict[int, list[tuple[int, float]]]:
    """(updates, mean return) by seed."""
    curves: dict[int, list[tuple[int, float]]] = {}
    for row in rows:
        curves.setdefault(row["seed"], []).append((row["updates"], row["return"]))
    return curves


def _final(curve: Sequence[tuple[int, float]]) -> float:
    return curve[-1][1]


def _best(curve: Sequence[tuple[int, float]]) -> float:
    return max(value for _, value in curve)


def _spread(values: Sequence[float]) -> str:
    return f"{np.mean(values):.4g} ± {np.std(values):.2g}"


def _episodes(folder: Path) -> list[tuple[int, float, bool]]:
    """Length, true return, and whether it came to its end, of every episode of a log."""
    rows = [row.split(",") for row in (folder / dqn.LOGS / EPISODES).read_text().splitlines()[1:]]
    return [(int(row[0]), float(row[2]), row[3] == "terminal") for row in rows]


def _log_line(game: str, folder: Path, made: Mapping[str, Any]) -> str:
    episodes = _episodes(folder)
    returns = np.array([gain for _, gain, ended in episodes if ended] or [np.nan])
    tail = returns[-max(1, len(returns) // 10) :]
    # the return of a policy that learns depends on when; that of a given one does not
    noise, over_time = made.get("epsilon"), f", {tail.mean():.4g} over the last tenth"
    who = made["agent"] if noise is None else f"{made['agent']}, random actions {noise}"
    return (
        f"- {game}: {sum(length for length, *_ in episodes):,} steps of {who}, {len(episodes):,} episodes; mean return "
        f"{returns.mean():.4g} over all{over_time if noise is None else ''}, best {returns.max():.4g}."
    )


def _number(text: str) -> int:
    return int(text.replace("_", ""))


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--games", nargs="+", default=list(GAMES))
    parser.add_argument("--minutes", type=float, help="after the logs; stop then, everything saved (default: no limit)")
    parser.add_argument("--spare", type=float, default=0.0, help="seconds of the minutes to play what they stop")
    parser.add_argument("--policies", type=Path, help="folder of given policies that play the logs (default: a DQN)")
    parser.add_argument(
        "--epsilons", type=float, nargs="+", default=[0.01, 0.1, 0.3, 1.0], help="with --policies: their noise"
    )
    parser.add_argument("--temperature", type=float, default=1.0, help="with --policies: of their softmax")
    parser.add_argument("--log-minutes", type=float, help="of each DQN's log; it ends there (default: no limit)")
    parser.add_argument("--log-steps", type=_number, default=500_000, help="steps of each game's log")
    parser.add_argument("--log-rows", type=int, default=64, help="environments side by side")
    parser.add_argument("--log-warm-up", type=_number, default=20_000, help="random steps before the first update")
    parser.add_argument("--log-decay", type=_number, default=250_000, help="steps over which random actions fall")
    parser.add_argument("--steps", type=_number, default=1_000_000, help="joint steps")
    parser.add_argument("--pretrain", type=_number, default=20_000, help="steps without weights")
    parser.add_argument("--ratio", type=_number, default=100_000, help="steps of the ratio alone")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--evaluations", type=int, default=10, help="of each member")
    parser.add_argument("--eval-episodes", type=int, default=10)
    parser.add_argument("--eval-max-steps", type=_number, help="cut episodes of evaluation (default: 27,000 steps)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a hyper-parameter of all")
    parser.add_argument("--part", choices=("all", "cql", "rem"), default="all", help="what is trained (default: all)")
    parser.add_argument("--logs-only", action="store_true")
    parser.add_argument("--report", action="store_true", help="only write the tables of what is there")
    options = parser.parse_args(arguments)
    options.settings = dict(pair.split("=", 1) for pair in options.set)
    if not options.report:
        folders = make_logs(options)
        if options.logs_only:
            return
        began = time.monotonic()
        options.parts = ("cql", "rem") if options.part == "all" else (options.part,)
        minutes = None if options.minutes is None else options.minutes - options.spare / 60.0
        clock = Clock(minutes, 2 * ("cql" in options.parts) + ("rem" in options.parts))
        with ThreadPoolExecutor() as pool:  # decompressing is most of it, and runs side by side
            data = list(pool.map(lambda folder: sapp.load(folder / dqn.LOGS), folders.values()))
        frames = [one for one in data if isinstance(one, FrameDataset)]
        print(f"loaded {sum(len(one) for one in frames):,} rows in {time.monotonic() - began:.0f} s", flush=True)
        train(options, frames, clock)
        if options.part != "all":
            return
    print(report(options.out, options.games))


if __name__ == "__main__":
    main()
