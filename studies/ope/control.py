"""Control problems: logs of a controller with noise, estimates of a family around it, and what playing says."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from sapp.data import Dataset
from sapp.envs import make
from sapp.envs.base import BatchEnvironment
from sapp.envs.collect import collect
from sapp.evaluation.rollouts import evaluate_discounted
from sapp.ope.estimators import Settings
from sapp.ope.offline import evaluate_offline
from sapp.ope.targets import from_actor
from studies.ope.controllers import FAMILIES, Drawn
from studies.ope.rows import Row, rows_of, write_rows

BEYOND = 700
"""Steps that a policy is played for its true value, where nothing ends the episode before: 0.99⁷⁰⁰ is a thousandth."""


@dataclass(frozen=True)
class Problem:
    """One problem of this study.

    Attributes:
        environment: its name.
        transitions: logged.
        truth: episodes played per policy for its true value.
        hidden: layers of the estimators' networks.
        steps: of fitting.
        discount: γ.
    """

    environment: str
    transitions: int
    truth: int
    hidden: tuple[int, ...] = (32, 32)
    steps: int = 5_000
    discount: float = 0.99


PROBLEMS = {
    "CartPole": Problem("CartPole-v1", 15_000, 400),
    "Pendulum": Problem("Pendulum-v1", 20_000, 300),
    "hopper": Problem("hopper", 40_000, 200, (48, 48)),
    "halfcheetah": Problem("halfcheetah", 40_000, 200, (48, 48)),
    "walker2d": Problem("walker2d", 40_000, 200, (48, 48)),
    "Acrobot": Problem("Acrobot-v1", 15_000, 200),
    "InvertedPendulum": Problem("InvertedPendulum-v5", 15_000, 200),
    "MountainCar": Problem("MountainCarContinuous-v0", 15_000, 200),
    "point": Problem("point", 10_000, 2_000, steps=1_500, discount=0.9),
}


def environment(problem: Problem, limit: int | None = None) -> BatchEnvironment:
    """The problem's environment, with another time limit if one is given."""
    if limit is not None and problem.environment.endswith(("-v0", "-v1", "-v5")):
        return make(lambda: gymnasium.make(problem.environment, max_episode_steps=limit))
    made = make(problem.environment)
    if limit is not None:
        made.max_episode_steps = min(limit, made.max_episode_steps)
    return made


def logs(name: str, draw: int) -> Dataset:
    """One draw of a problem's logs."""
    problem = PROBLEMS[name]
    where = environment(problem)
    behaviour = Drawn(next(iter(FAMILIES[name]().values())), where)
    return collect(behaviour, where, problem.transitions, seed=100 + draw, name=name)


def truths(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Normalised values of a problem's policies by playing them, and their standard errors."""
    problem, rng = PROBLEMS[name], np.random.default_rng(1)
    where, means, errors = environment(problem, BEYOND), [], []
    for actor in FAMILIES[name]().values():
        drawn = Drawn(actor, where)

        def act(observation: np.ndarray, drawn: Drawn = drawn) -> np.ndarray:
            return drawn.sample(observation[0], rng)[0][None]

        found = (1 - problem.discount) * evaluate_discounted(act, where, 1, problem.truth, 7, problem.discount)[0]
        means.append(found.mean())
        errors.append(found.std(ddof=1) / problem.truth**0.5)
    return np.array(means), np.array(errors)


def measure(name: str, draws: range, out: Path, say: Callable[[str], None], **changes: Any) -> None:
    """Rows of a problem, one file per draw of the logs; the true values are kept in a file of their own."""
    problem = PROBLEMS[name]
    discrete = environment(problem).num_actions is not None
    targets = [from_actor(key, actor, discrete, "sample") for key, actor in FAMILIES[name]().items()]
    file = out / f"{name}-truth.json"
    if not file.is_file():
        out.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps([each.tolist() for each in truths(name)]) + "\n", encoding="utf-8")
    value, error = (np.array(each) for each in json.loads(file.read_text(encoding="utf-8")))
    say(f"{name}: " + ", ".join(f"{t.name} {v:.4g} ± {e:.2g}" for t, v, e in zip(targets, value, error, strict=True)))
    for draw in draws:
        data = logs(name, draw)
        settings = Settings(
            **{"discount": problem.discount, "steps": problem.steps, "bags": 5, "hidden": problem.hidden,
               "batch_size": 128, "seed": draw, **changes}
        )  # fmt: skip
        report = evaluate_offline(targets, data, settings)
        rows: list[Row] = rows_of(name, report, value, error, draw)
        write_rows(out / f"{name}-{draw}.csv", rows)
        verdicts = [str(each.verdict) for each in report.diagnoses]
        say(f"{name} draw {draw}: {data.num_episodes} episodes, {report.seconds:.0f} s, {' '.join(verdicts)}")
