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
from sapp.runs.metric_tables import read
from sapp.runs.phases import Phase, total_steps
from sapp.runs.run import EVENTS, Problem, Run, versions
from sapp.training.program import Member

_NOT_METRICS = ("step", "phase", "updates", "seconds", "member")


def collect_results(
    grid: Grid, run: Run, keys: Mapping[str, str], phases: Sequence[Phase], shared: Run | None, job: str
) -> Results:
    """All rows of a finished run.

    Steps count from the beginning of the last phase; what came before has negative ones.

    Args:
        grid: the experiment.
        run: the run.
        keys: of its members, by name.
        phases: of the whole protocol, also where the run was forked from another.
        shared: the run that trained the phases before, if it was.
        job: name of the job, for the timings.
    """
    plan = run.plan
    rows: dict[str, list[Row]] = {table: [] for table in ("runs", "evaluations", "metrics", "events")}
    sharing: dict[tuple[str, int], list[str]] = {}
    for member in plan.members:
        problem, key = plan.problems[member.dataset], keys[member.name]
        rows["runs"].append(_run_row(key, member, problem, phases, grid))
        sharing.setdefault((problem.name, member.seed), []).append(key)
    before = total_steps(plan.phases[:-1])
    environments = {member.name: plan.problems[member.dataset].environment for member in plan.members}
    for row in run.evaluations():
        rows["evaluations"] += _evaluation_rows(row, keys[row["member"]], before, environments[row["member"]])
    for row in run.metrics():
        rows["metrics"].append(_metric_row(row, keys[row["member"]], before))
    counts: dict[str, int] = {}
    for row in read(run.path / EVENTS):
        key = keys[row["member"]]
        rows["events"].append((key, counts.get(key, 0), int(row["step"]) - before, row["event"]))
        counts[key] = counts.get(key, 0) + 1
    if shared is not None:
        for row in shared.metrics():
            _, dataset, seed = row["member"].split("/")
            for key in sharing.get((dataset, int(seed)), ()):
                rows["metrics"].append(_metric_row(row, key, shared.total_steps))
    return Results(rows, [_timing(run, job)])


def cells(grid: Grid, datasets: Sequence[str], keys: Mapping[str, str]) -> Results:
    """The rows that say which run fills which cell of the experiment."""
    label, variants = grid.scale.label, grid.variants
    found: list[Row] = []
    for name, key in keys.items():
        variant, dataset, seed = name.rsplit("/", 2)
        if dataset in datasets:
            found.append((grid.name, label, dataset, variants.index(variant), variant, int(seed), key))
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
        if name not in _NOT_METRICS and value != "":
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
    variants = "; ".join(dict.fromkeys(member.name.rsplit("/", 2)[0] for member in run.plan.members))
    return job, variants, len(run.plan.members), steps, round(seconds, 3), versions()["device"]
