"""From finished run folders to rows of the results store."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import jax
import numpy as np

from sapp.algorithms import config as configuration
from sapp.data.normalised_scores import base_name, normalized_score
from sapp.experiments.grid import Grid
from sapp.experiments.store import Results, Row, text
from sapp.runs.logger import METRIC_COLUMNS
from sapp.runs.members import Member, MemberId
from sapp.runs.phases import Phase, total_steps
from sapp.runs.plan import versions
from sapp.runs.problem import Problem
from sapp.runs.run import Run


def collect_results(
    grid: Grid, run: Run, keys: Mapping[MemberId, str], phases: Sequence[Phase], shared: Run | None, job: str
) -> Results:
    """All rows of a finished run.

    Steps count from the beginning of the last phase; what came before has negative ones.

    Args:
        grid: the experiment.
        run: the run.
        keys: of its members.
        phases: of the whole protocol, also where the run was forked from another.
        shared: the run that trained the phases before, if it was.
        job: name of the job, for the timings.
    """
    plan = run.plan
    rows: dict[str, list[Row]] = {table: [] for table in ("runs", "evaluations", "metrics", "events")}
    sharing: dict[tuple[str, int], list[str]] = {}
    for each, member in zip(plan.ids, plan.members, strict=True):
        problem, key = plan.problems[member.dataset], keys[each]
        rows["runs"].append(_run_row(key, member, problem, phases, grid))
        sharing.setdefault((problem.name, member.seed), []).append(key)
    before = total_steps(plan.phases[:-1])
    environments = {problem.name: problem.environment for problem in plan.problems}
    for row in run.evaluations():
        rows["evaluations"] += _evaluation_rows(row, keys[MemberId.of(row)], before, environments[row["dataset"]])
    for row in run.metrics():
        rows["metrics"].append(_metric_row(row, keys[MemberId.of(row)], before))
    counts: dict[str, int] = {}
    for event in run.events():
        key = keys[event.member]
        rows["events"].append((key, counts.get(key, 0), event.step - before, event.kind.value))
        counts[key] = counts.get(key, 0) + 1
    if shared is not None:
        for row in shared.metrics():
            for key in sharing.get((row["dataset"], int(row["seed"])), ()):
                rows["metrics"].append(_metric_row(row, key, shared.total_steps))
    return Results(rows, [_timing(run, job)])


def cells(grid: Grid, datasets: Sequence[str], keys: Mapping[MemberId, str]) -> Results:
    """The rows that say which run fills which cell of the experiment."""
    label = grid.scale.label
    found: list[Row] = []
    for each, key in keys.items():
        if each.dataset in datasets:
            place = grid.position(each.algorithm)
            found.append((grid.name, label, each.dataset, place, each.algorithm, each.seed, key))
    return Results({"experiments": [(grid.name, label, grid.title, grid.question, grid.focus)], "cells": found})


def _run_row(key: str, member: Member, problem: Problem, phases: Sequence[Phase], grid: Grid) -> Row:
    scale = grid.scale
    evaluation = {"every": scale.eval_every, "episodes": scale.eval_episodes, "log_every": scale.log_every}
    return (
        key, problem.name, problem.fingerprint, problem.environment, problem.physics, problem.transitions,
        problem.episodes, text(configuration.describe(member.algorithm)), member.seed,
        text([asdict(phase) for phase in phases]), text(evaluation), text(sizes(member, problem)), text(versions()),
    )  # fmt: skip


def sizes(member: Member, problem: Problem) -> dict[str, int]:
    """Numbers that the algorithm and its weights hold while they train: parameters, targets, optimisers' moments."""
    key, spec = jax.random.PRNGKey(0), problem.empty_spec()
    states = {"algorithm": member.algorithm.init, "weights": member.algorithm.weights.init}
    return {
        name: sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(jax.eval_shape(init, key, spec)))
        for name, init in states.items()
    }


def _evaluation_rows(row: Mapping[str, str], key: str, before: int, environment: str | None) -> list[Row]:
    step = int(row["step"]) - before
    if step <= 0:  # while only preparing: no point of the learning curve
        return []
    returns = np.array([float(value) for value in row["returns"].split(";")])
    task = base_name(environment or "")
    scores: Sequence[float | None] = normalized_score(task, returns).tolist() if task else [None] * len(returns)
    pairs = zip(returns.tolist(), scores, strict=True)
    return [(key, step, episode, int(row["updates"]), *pair) for episode, pair in enumerate(pairs)]


def _metric_row(row: Mapping[str, str], key: str, before: int) -> Row:
    values: dict[str, Any] = {}
    for name, value in row.items():
        if name not in METRIC_COLUMNS and value != "":
            number = float(value)
            values[name] = number if math.isfinite(number) else None
    return key, int(row["step"]) - before, row["phase"], text(values)


def _timing(run: Run, job: str) -> Row:
    """Seconds of the last phase, from its first row (which compilation delays) to its last, of the last session."""
    points: list[tuple[int, float]] = []
    for row in run.metrics():
        if row["phase"] != run.plan.phases[-1].name:
            continue
        point = int(row["step"]), float(row["seconds"])
        if points and point[1] < points[-1][1]:  # resumed: the clock began anew
            points = []
        points.append(point)
    first, last = points[0], points[-1]
    steps, seconds = last[0] - first[0], last[1] - first[1]
    variants = "; ".join(dict.fromkeys(member.name for member in run.plan.members))
    return job, variants, len(run.plan.members), steps, round(seconds, 3), versions()["device"]
