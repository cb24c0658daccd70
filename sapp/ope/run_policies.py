"""The policies of run folders and policy files as candidates for off-policy evaluation, with the logs they are from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sapp.core.errors import SappError
from sapp.data import Dataset
from sapp.data.load import load_vectors
from sapp.evaluation.policy_file import load_actor
from sapp.ope.targets import Act, TargetPolicy, from_actor, from_units
from sapp.runs.checkpoint import NoCheckpoint
from sapp.runs.folders import DATA
from sapp.runs.problem import Problem
from sapp.runs.run import Run

Checkpoints = Literal["last", "all"]


SHIFT, RATIO = 3.0, 4.0
"""Deviations by which a feature's mean may differ between logs, and ratio of deviations, before it is worth a word."""
FAR_SHIFT, FAR_RATIO = 20.0, 50.0
"""Likewise, before the logs are refused as being in other units."""
ACTION_RATIO = 1.5
"""Ratio of the ranges of actions beyond which logs are refused as being in other units."""


@dataclass(frozen=True)
class Candidates:
    """Policies that can be judged on the same logs, each with its checkpoint's step, and the discount of all."""

    policies: list[TargetPolicy]
    steps: list[int | None]
    data: Dataset
    discount: float


def kept_actors(run: Run, say: Callable[[str], None] = print) -> list[tuple[int, list[Any]]]:
    """Steps and policies of all checkpoints; of a run that is still training, those that it does not drop meanwhile."""
    found = []
    for step in run.checkpoints:
        if not step:  # where a forked run began
            continue
        try:
            found.append(run.actors_at(step))
        except NoCheckpoint:
            say(f"{run.path}: the checkpoint of step {step} is gone (training drops old ones); it was left out")
    return found or [run.actors_at()]


def run_data(run: Run, problem: Problem, columns: Path | None = None) -> Dataset:
    """The logs a member was trained on, from where the run says they are."""
    source = problem.source if problem.source is not None else run.path / DATA / f"{problem.fingerprint[:16]}.npz"
    data = load_vectors(source, columns=columns) if columns is not None else load_vectors(source)
    if data.fingerprint != problem.fingerprint:
        raise SappError(f"{run.path}: dataset {problem.name!r} has changed since the run; give the logs with --data")
    return data


def gather(
    paths: Sequence[Path],
    *,
    data: Dataset | None = None,
    members: Sequence[str] | None = None,
    checkpoints: Checkpoints = "last",
    act: Act = "mode",
    discount: float | None = None,
    say: Callable[[str], None] = print,
) -> list[Candidates]:
    """Candidates from run folders and policy files, grouped by the logs they are judged on.

    Args:
        paths: run folders, or policy files (.npz, .hdf5; these need ``data``).
        data: judge all of them on these logs instead of those the runs were trained on.
        members: only these members of the runs, by name.
        checkpoints: the newest of each run, or all that were kept.
        act: as the policies are played (mode) or drawn from (sample).
        discount: instead of the one that the runs were trained with.
        say: where to report checkpoints that are left out.
    """
    groups: dict[str, tuple[Candidates, set[float]]] = {}

    def add(policy: TargetPolicy, where: Dataset, step: int | None, gamma: float | None) -> None:
        group, gammas = groups.setdefault(where.fingerprint, (Candidates([], [], where, math.nan), set()))
        group.policies.append(policy)
        group.steps.append(step)
        if gamma is not None:
            gammas.add(gamma)

    loaded: dict[str, Dataset] = {}
    told: list[str] = []
    for path in paths:
        prefix = f"{path.name}: " if len(paths) > 1 else ""
        if path.is_file():
            if data is None:
                raise SappError(f"{path}: a policy file does not say which logs to judge it on; give --data")
            add(_from_file(path, data, act), data, None, None)
            continue
        run = Run(path)
        chosen = range(len(run.members)) if members is None else sorted(run.member_index(name) for name in members)
        several = checkpoints == "all" and len(set(run.checkpoints) - {0}) > 1
        kept = kept_actors(run, say) if several else [run.actors_at()]
        for step, actors in kept:
            for index in chosen:
                member = run.plan.members[index]
                problem = run.plan.problems[member.dataset]
                if data is None and problem.fingerprint not in loaded:
                    loaded[problem.fingerprint] = run_data(run, problem)
                where = data if data is not None else loaded[problem.fingerprint]
                _fits(problem, where, path)
                for line in _other_units(problem, where, path) if problem.fingerprint != where.fingerprint else ():
                    if line not in told:
                        told.append(line)
                        say(line)
                name = f"{prefix}{run.members[index]}" + (f" @ {step}" if several else "")
                policy = from_actor(name, actors[index], problem.discrete, act)
                if data is not None and data.fingerprint != problem.fingerprint:
                    policy = from_units(policy, problem, where)
                add(policy, where, step, float(member.algorithm.discount))
    out = []
    for group, gammas in groups.values():
        gamma = discount if discount is not None else (gammas.pop() if len(gammas) == 1 else None)
        if gamma is None:
            known = ", ".join(f"{each:g}" for each in sorted(gammas)) or "none"
            raise SappError(f"the policies were trained with different discounts ({known}); give one with --discount")
        out.append(replace(group, discount=gamma))
    return out


def _from_file(path: Path, data: Dataset, act: Act) -> TargetPolicy:
    actor = load_actor(path)
    sizes = actor.trunk.layers[0].weight.shape[0], actor.mean.weight.shape[1]
    if data.discrete or sizes != (data.observation_size, data.action_size):
        raise SappError(
            f"{path}: takes {sizes[0]} observations and gives {sizes[1]} actions, which {data.name} does not have"
        )
    policy = from_actor(path.stem, actor, False, act)
    return TargetPolicy(
        policy.name, lambda observation, seed, count: policy.actions(data.raw(observation), seed, count)
    )


def _fits(problem: Problem, data: Dataset, path: Path) -> None:
    mine = problem.observation_size, problem.action_size, problem.num_actions
    theirs = data.observation_size, data.action_size, data.num_actions
    if mine != theirs:
        raise SappError(
            f"{path}: its policies take {mine[0]} observations and give {mine[1]} actions; {data.name} has "
            f"{theirs[0]} and {theirs[1]}"
        )


def _other_units(problem: Problem, data: Dataset, path: Path) -> list[str]:
    """What speaks for logs in other units than a run's; where they can hardly be the same, ``SappError``."""
    if problem.observation_mean is None or problem.observation_std is None:
        return []
    mean, std = np.asarray(problem.observation_mean), np.asarray(problem.observation_std)
    here, spread = data.raw(data.observation_mean), data.observation_std * data.raw_scale
    floor = 1e-3 * np.maximum(np.abs(mean), np.abs(here)) + 1e-6
    small, large = np.maximum(std, floor), np.maximum(spread, floor)
    shift, ratio = np.abs(here - mean) / np.maximum(small, large), np.maximum(small / large, large / small)
    # flags have no units, however rare they are, and what is constant in one of the logs has no spread to compare
    flags = np.isclose(std**2, mean * (1 - mean), atol=1e-4) & np.isclose(spread**2, here * (1 - here), atol=1e-4)
    ratio[(std < floor) | (spread < floor)] = 1.0
    shift[flags], ratio[flags] = 0.0, 1.0
    worst = int(np.argmax(np.maximum(shift, ratio / 2)))
    what = (
        f"{path}: feature {worst} is {mean[worst]:.3g} ± {std[worst]:.2g} in the logs it was trained on and "
        f"{here[worst]:.3g} ± {spread[worst]:.2g} in {data.name}"
    )
    fix = "give logs in the same units, read with the same column mapping"
    if shift[worst] > FAR_SHIFT or ratio[worst] > FAR_RATIO:
        raise SappError(f"{what}: these are other units, and estimates would be wrong; {fix}")
    lines = []
    if shift[worst] > SHIFT or ratio[worst] > RATIO:
        lines.append(f"{what}: are these the same units? If not, estimates are wrong: {fix}")
    if not data.discrete:
        width = np.asarray(problem.action_high) - np.asarray(problem.action_low)
        stretch = (data.action_high - data.action_low) / width
        if np.any(np.maximum(stretch, 1 / stretch) > ACTION_RATIO):
            i = int(np.argmax(np.maximum(stretch, 1 / stretch)))
            bounds = problem.action_low[i], problem.action_high[i], data.action_low[i], data.action_high[i]
            raise SappError(
                f"{path}: action dimension {i} goes from {bounds[0]:g} to {bounds[1]:g} in the logs it was trained on "
                f"and from {bounds[2]:g} to {bounds[3]:g} in {data.name}: these are other units, and estimates would "
                f"be wrong; {fix}, or give the bounds (action_low, action_high)"
            )
    return lines
