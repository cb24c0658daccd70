"""Draw logs, learn by every method, measure what is truly lost; then means and paired differences."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sapp.core.errors import SappError
from sapp.core.statistics import Estimate, student
from sapp.tabular.bounds import suboptimality
from sapp.tabular.mdp import Floats
from sapp.tabular.tasks import Task, icu_sepsis
from studies.sepsis.methods import ALPHAS, METHODS, REFERENCES, learn
from studies.sepsis.rows import Row, Rows
from studies.sepsis.solver import SOLVABLE, Solver

if TYPE_CHECKING:
    from rich.console import Console

def experiment(
    path: str | Path | None = None, sizes: Sequence[int] = (1_000, 10_000, 100_000, 1_000_000), draws: int = 12,
    tuning: int = 4, seed: int = 0, divergence: str = "kl", alphas: Sequence[float] = ALPHAS,
    methods: Iterable[str] = tuple(METHODS), task: Task | None = None, console: Console | None = None,
) -> list[Row]:
    """Draw logs, learn, measure the true suboptimality; resume from the CSV at ``path`` if it is there.

    For each size: every method at every α on ``tuning`` logs; then, on ``draws`` other logs, every method at the α that
    did best on average on the tuning logs (counts at ten times the grid: their unit is smaller). All methods see the
    same logs. Returns the rows of this experiment.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    methods = tuple(methods)
    for name in methods:
        if name not in METHODS:
            raise SappError(f"method {name!r} is unknown: use {', '.join(METHODS)}")
    if not sizes or min(sizes) < 1 or draws < 1 or tuning < 1:
        raise SappError("sizes, draws and tuning must be at least 1")
    if not alphas or min(alphas) <= 0:
        raise SappError("every alpha must be positive: no pessimism is the method 'none'")
    if divergence not in SOLVABLE:
        raise SappError(f"divergence {divergence!r} has no closed step here: use {' or '.join(SOLVABLE)}")
    task = icu_sepsis() if task is None else task
    store = Rows(path)
    best = task.mdp.optimal()[1]
    wanted: list[Row] = []
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console, disable=console is None) as progress:
        per_tuning = sum(len(alpha_grid(name, alphas)) for name in methods)
        bar = progress.add_task("", total=len(sizes) * (tuning * per_tuning + draws * (len(methods) + len(REFERENCES))))

        def work(size: int, role: str, draw: int, jobs: list[tuple[str, float]]) -> None:
            progress.update(bar, description=f"{size:,} transitions, {role} {draw}")
            solver: Solver | None = None
            transitions, key = 0, (seed, ("tuning", "evaluation").index(role), size, draw)
            for method, alpha in jobs:
                asked = (task.name, task.mdp.discount, divergence, seed, size, role, draw, method, alpha)
                if asked not in store.rows:
                    if solver is None:
                        log = task.draw(np.random.default_rng([1, *key]), size)
                        transitions = int(log.size)
                        solver = Solver(task.model(log), divergence)
                    store.add(Row(*asked, transitions, *measure(task, solver, method, alpha, key, best)))
                wanted.append(store.rows[asked])
                progress.advance(bar)

        for size in sizes:
            for draw in range(tuning):
                work(size, "tuning", draw, [(name, alpha) for name in methods for alpha in alpha_grid(name, alphas)])
            chosen = tuned([row for row in wanted if row.size == size])
            for draw in range(draws):
                work(size, "evaluation", draw, [*chosen.items(), *((name, 0.0) for name in REFERENCES)])
    return wanted

def alpha_grid(method: str, alphas: Sequence[float]) -> tuple[float, ...]:
    """The values of α that a method is tuned over; counts take ten times the others', their unit is smaller."""
    if method == "none":
        return (0.0,)
    return tuple(round(10 * alpha, 12) for alpha in alphas) if method == "count" else tuple(alphas)

def measure(
    task: Task, solver: Solver, method: str, alpha: float, key: tuple[int, ...], best: Floats
) -> tuple[float, float, float, float, int, float]:
    """Suboptimality, objective, mean weight, residual, iterations and seconds of one method on one log."""
    if method in REFERENCES:
        policy = task.behaviour if method == "clinicians" else solver.model.behaviour
        return float(suboptimality(task.mdp, policy, best)), float("nan"), 0.0, 0.0, 0, 0.0
    began = time.perf_counter()
    found = learn(method, solver, alpha, key)
    seconds = time.perf_counter() - began
    value = float(suboptimality(task.mdp, found.policy, best))
    return value, found.value, found.mean_weight, found.residual, found.iterations, round(seconds, 4)

def tuned(rows: Iterable[Row]) -> dict[str, float]:
    """For each method the α with the lowest mean suboptimality over the tuning logs of one size."""
    scores: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        if row.role == "tuning":
            scores.setdefault(row.method, {}).setdefault(row.alpha, []).append(row.suboptimality)
    return {
        method: min(by_alpha, key=lambda alpha: float(np.mean(by_alpha[alpha])))
        for method, by_alpha in scores.items()
    }

@dataclass(frozen=True)
class Summary:
    """A method at one size: its α, mean suboptimality over evaluation logs, and that minus PP's on the same logs."""

    size: int
    method: str
    alpha: float
    suboptimality: Estimate
    against_pp: Estimate | None
    logs: int

def summarise(rows: Iterable[Row]) -> list[Summary]:
    """Means over evaluation logs, and paired differences to PP (negative: better than PP)."""
    table: dict[int, dict[str, dict[int, Row]]] = {}
    for row in rows:
        if row.role == "evaluation":
            table.setdefault(row.size, {}).setdefault(row.method, {})[row.draw] = row
    result = []
    for size, methods in sorted(table.items()):
        base = methods.get("pp")
        for name in (*METHODS, *REFERENCES):
            if name not in methods:
                continue
            own = methods[name]
            values = [own[draw].suboptimality for draw in sorted(own)]
            against = None
            if base is not None and name != "pp":
                shared = sorted(set(own) & set(base))
                against = student([own[draw].suboptimality - base[draw].suboptimality for draw in shared])
            result.append(Summary(size, name, next(iter(own.values())).alpha, student(values), against, len(values)))
    return result
