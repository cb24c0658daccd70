"""From a training run to the shipped policies: pick a seed and its snapshots, measure them, write files and card.

For each environment one seed is chosen, and of that seed: the last of its best snapshots; the snapshot before it whose
score is nearest to D4RL's medium; and some twenty in all, spread over training up to the best. Which of them then are
the benchmark's medium and expert, and for how much of the replay sets each stands, ``studies.benchmark_data.shares``
chooses from what is measured here. All scores are of stochastic actions and of the policies as stored, rounded to
float16. Snapshots are picked by a few episodes each, the best few of them by more, and what is picked is measured once
more with fresh starts: the score on the card is not the one that chose it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sapp.algorithms import config as configuration
from sapp.collect.benchmark.shipped import CARD
from sapp.collect.online_run import OnlineRun
from sapp.collect.snapshot_evaluation import evaluate_snapshots, play
from sapp.core.errors import SappError
from sapp.core.files import write_text
from sapp.data.normalised_scores import normalized_score
from sapp.envs.policies import TanhGaussianPolicy
from sapp.envs.policy_files import rounded, save_policies
from studies.benchmark_data.levels import EXPERT, MEDIUM, MEDIUM_TOLERANCE
from studies.benchmark_data.shares import choose

Say = Callable[[str], None]
SEEDS = {"pick": 1, "compare": 2, "confirm": 3}
"""Seeds of the three rounds of measuring: starts and noise of one are never seen by another."""

SLACK = 3.0
"""Points of score that a later expert may be worse than the best: less than what distinguishes two snapshots."""


class Choice(NamedTuple):
    """What was picked of one seed.

    Attributes:
        seed: of the run.
        medium: step of the medium snapshot.
        expert: step of the expert snapshot.
        medium_score: of the second round.
        expert_score: of the second round.
    """

    seed: int
    medium: int
    expert: int
    medium_score: float
    expert_score: float


def ship(
    run: OnlineRun,
    folder: str | Path,
    *,
    snapshots: int = 20,
    episodes: tuple[int, int, int] = (10, 60, 200),
    candidates: int = 4,
    again: str = "",
    say: Say = print,
) -> dict[str, Any]:
    """Write the policies of a run, and return the card.

    Args:
        run: of environments with reference scores.
        folder: where the files go.
        snapshots: how many of each environment.
        episodes: of each policy in the three rounds: all snapshots, candidates, those picked.
        candidates: snapshots of each seed that enter the second round, for medium and for expert.
        again: the command that makes the run again, for the card.
        say: told what happens.
    """
    folder = Path(folder)
    rows = evaluate_snapshots(run, episodes=episodes[0], seed=SEEDS["pick"], half=True, say=say)
    card: dict[str, Any] = {
        "what": "behaviour policies: soft actor-critic, tanh-Gaussian networks, weights rounded to float16",
        "again": again,
        "plan": {key: value for key, value in run.plan.to_json().items() if key not in ("format", "kind", "versions")},
        "versions": run.versions,
        "steps_trained": run.step,
        "environments": {},
    }
    card["plan"]["algorithm"] = configuration.describe(run.plan.algorithm)
    for environment in run.plan.environments:
        choices = _compare(run, environment, rows, episodes[1], candidates, say)
        choice = best(environment, choices)
        say(f"{environment}: seed {choice.seed} of {[tuple(one) for one in choices]}")
        steps = spread(list(run.snapshots), choice.medium, choice.expert, snapshots)
        policies = {f"step-{step:010d}": _policy(run, environment, choice.seed, step) for step in steps}
        save_policies(folder / f"{environment}.safetensors", policies, {"environment": environment}, half=True)
        entry = _entry(run, environment, choice, policies, episodes[2], say)
        card["environments"][environment] = entry | choose(environment, entry)
    write_text(folder / CARD, json.dumps(card, indent=2, ensure_ascii=False) + "\n")
    return card


def best(environment: str, choices: Sequence[Choice]) -> Choice:
    """The seed to ship: medium near its level and expert above its bar first, then the better expert."""
    target, bar = MEDIUM[environment], EXPERT[environment]

    def rank(choice: Choice) -> tuple[bool, bool, float]:
        near = abs(choice.medium_score - target) <= MEDIUM_TOLERANCE / 2
        return choice.expert_score >= bar, near, choice.expert_score

    return max(choices, key=rank)


def latest_of_the_best(scores: dict[int, float], bar: float) -> int:
    """The last snapshot within ``SLACK`` of the best score, but not below the bar if the best is above it.

    A later expert has more of training behind it, which is what full-replay is made of.
    """
    top = max(scores.values())
    least = max(top - SLACK, min(top, bar))
    return max(step for step, score in scores.items() if score >= least)


def spread(available: Sequence[int], medium: int, expert: int, count: int) -> list[int]:
    """``count`` of the snapshots up to the expert, medium and expert among them, spread as (i/count)^1.5."""
    upto = np.asarray([step for step in sorted(available) if step <= expert])
    chosen = {medium, expert, int(upto[0])}
    for i in range(count):
        if len(chosen) >= min(count, len(upto)):
            break
        chosen.add(int(upto[np.argmin(np.abs(upto - expert * (i / (count - 1)) ** 1.5))]))
    while len(chosen) < min(count, len(upto)):  # coinciding wishes: fill the widest gap
        left = [int(step) for step in upto if int(step) not in chosen]
        chosen.add(max(left, key=lambda step: min(abs(step - other) for other in chosen)))
    return sorted(chosen)


def _policy(run: OnlineRun, environment: str, seed: int, step: int) -> TanhGaussianPolicy:
    return rounded(run.snapshot(step)[f"{environment}/{seed}"])


def _compare(
    run: OnlineRun, environment: str, rows: Sequence[dict[str, Any]], episodes: int, candidates: int, say: Say
) -> list[Choice]:
    """The best expert and the nearest medium of every seed, by a second round with more episodes."""
    wanted: list[tuple[int, int]] = []
    for seed in run.plan.seeds:
        scores = {r["step"]: r["stochastic_score"] for r in rows if r["member"] == f"{environment}/{seed}"}
        if len(scores) < 2:
            raise SappError(f"{run.path}: {environment}/{seed} has {len(scores)} snapshots; train on")
        top = sorted(scores, key=lambda step: -scores[step])[:candidates]
        before = [step for step in scores if step < max(top)] or list(scores)
        middle = sorted(before, key=lambda step: abs(scores[step] - MEDIUM[environment]))[:candidates]
        wanted += [(seed, step) for step in {*top, *middle}]
    say(f"{environment}: second round, {len(wanted)} candidates, {episodes} episodes each")
    policies = [_policy(run, environment, seed, step) for seed, step in wanted]
    result = play(policies, run.environment(environment), episodes, SEEDS["compare"], [True] * len(policies))
    measured = dict(zip(wanted, normalized_score(environment, result.returns.mean(1)).tolist(), strict=True))
    choices = []
    for seed in run.plan.seeds:
        own = {step: score for (number, step), score in measured.items() if number == seed}
        expert = latest_of_the_best(own, EXPERT[environment])
        earlier = {step: score for step, score in own.items() if step < expert} or own
        medium = min(earlier, key=lambda step: abs(earlier[step] - MEDIUM[environment]))
        choices.append(Choice(seed, medium, expert, earlier[medium], own[expert]))
    return choices


def _entry(
    run: OnlineRun, environment: str, choice: Choice, policies: dict[str, TanhGaussianPolicy], episodes: int, say: Say
) -> dict[str, Any]:
    """An environment's part of the card, measured with fresh starts."""
    say(f"{environment}: third round, {len(policies)} policies, {episodes} episodes each")
    result = play(
        list(policies.values()), run.environment(environment), episodes, SEEDS["confirm"], [True] * len(policies)
    )
    listed: list[dict[str, Any]] = []
    for name, returns, lengths in zip(policies, result.returns, result.lengths, strict=True):
        scores = normalized_score(environment, returns)
        listed.append(
            {
                "name": name,
                "step": int(name.removeprefix("step-")),
                "score": round(float(scores.mean()), 2),
                "score_error": round(float(scores.std(ddof=1) / len(scores) ** 0.5), 2) if len(scores) > 1 else None,
                "return": round(float(returns.mean()), 2),
                "length": round(float(lengths.mean()), 1),
            }
        )
    by_name = {one["name"]: one for one in listed}
    medium, expert = f"step-{choice.medium:010d}", f"step-{choice.expert:010d}"
    say(f"{environment}: medium {by_name[medium]['score']:.1f}, best {by_name[expert]['score']:.1f}")
    return {
        "seed": choice.seed,
        "random_steps": run.plan.random_steps,
        "medium_target": MEDIUM[environment],
        "expert_bar": EXPERT[environment],
        "met": bool(
            abs(by_name[medium]["score"] - MEDIUM[environment]) <= MEDIUM_TOLERANCE
            and by_name[expert]["score"] >= EXPERT[environment]
        ),
        "episodes": episodes,
        "snapshots": listed,
    }
