"""Rows of a study in parts as finished runs would have left them, made up in no time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict
from typing import Any

import numpy as np

from sapp.algorithms import config as configuration
from sapp.data.benchmark_names import parse
from sapp.data.normalised_scores import reference
from sapp.experiments.grid import run_key
from sapp.experiments.merge import Recorded
from sapp.experiments.parts import Study
from sapp.experiments.store import Results, Row, text
from sapp.runs.members import MemberId

METRICS = (
    "actor/entropy", "actor/loss", "actor/temperature", "critic/loss", "critic/penalty", "critic/target", "critic/td",
    "critic/value", "critic/value_limit", "critic/weighted_penalty", "loss", "ratio/clamped", "ratio/ess",
    "ratio/nu_abs", "ratio/regression_loss", "ratio/reward", "ratio/reward_normalised", "ratio/saddle",
    "ratio/state_ratio_mean", "ratio/unreliable", "ratio/zeta_mean", "ratio/zeta_min", "ratio/zeta_negative",
    "weights/max", "weights/mean", "weights/min", "weights/std",
)  # fmt: skip


def made_rows(
    study: Study, members: Collection[MemberId], score: Callable[[MemberId], float], *, last: int | None = None,
    bits: str = "data",
) -> Results:  # fmt: skip
    """Rows of runs that climb to a score, evaluated up to a step, on data whose fingerprint holds ``bits``."""
    grid = study.whole()
    rows: dict[str, list[Row]] = {name: [] for name in ("cells", "runs", "evaluations", "metrics", "events")}
    rows["experiments"] = [(grid.name, grid.scale.label, grid.title, grid.question, grid.focus)]
    scale, end = grid.scale, last or grid.scale.steps
    rng = np.random.default_rng(0)
    for member in sorted(members):
        family = next(each for each in grid.families if member.algorithm in each.variants)
        algorithm = family.variants[member.algorithm](member.dataset)
        name = parse(member.dataset)
        data = Recorded(f"{bits}-{member.dataset}", name.environment, "d4rl")
        phases = family.phases(scale, [member.dataset])
        key = run_key(algorithm, data, member.seed, phases, scale)
        described = in_mixed(configuration.describe(algorithm))
        evaluation = {"every": scale.eval_every, "episodes": scale.eval_episodes, "log_every": scale.log_every}
        cell = (grid.name, scale.label, member.dataset, grid.position(member.algorithm), member.algorithm, member.seed)
        rows["cells"].append((*cell, key))
        rows["runs"].append((
            key, member.dataset, *data, name.transitions, 1000, text(described), member.seed,
            text([asdict(phase) for phase in phases]), text(evaluation), text({"algorithm": 1, "weights": 1}),
            text({"device": "NVIDIA H200", "sapp": "0.1.0", "jax": "0.11.2", "python": "3.12.3"}),
        ))  # fmt: skip
        low, high = reference(name.environment)
        for step in range(scale.eval_every, end + 1, scale.eval_every):
            reached = score(member) * min(1.0, 2.0 * step / scale.steps)
            for episode, jitter in enumerate(rng.normal(0.0, 2.0, scale.eval_episodes).tolist()):
                ret = float(f"{low + (high - low) * (reached + jitter) / 100.0:.6g}")
                rows["evaluations"].append((key, step, episode, 20_000 + step, ret, None))
            values = {
                metric: float(value)
                for metric, value in zip(METRICS, rng.lognormal(3.0, 2.0, len(METRICS)), strict=True)
            }
            rows["metrics"].append((key, step, phases[-1].name, text(values)))
        kinds = ["ratio-unreliable", "ratio-reliable"] * 5
        rows["events"] += [(key, number, end * number // 20, kind) for number, kind in enumerate(kinds)]
    timing = ("cql", "; ".join({each.algorithm for each in members}), len(members), end, 1300.0, "NVIDIA H200")
    return Results(rows, [timing])


def in_mixed(described: Any) -> Any:
    """Settings as a run on a GPU records them."""
    if not isinstance(described, dict):
        return described
    return {
        name: "mixed" if (name, value) == ("precision", "auto") else in_mixed(value)
        for name, value in described.items()
    }
