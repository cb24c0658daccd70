"""Fragments of pages that hold results, made from committed rows; each must stand on its page word for word."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.tables import PHASES, rate
from sapp.core.statistics import student
from studies.baselines import tables as baselines

ROOT = Path(__file__).parents[2]
Claims = Callable[[], Iterator[str]]
CLAIMS: dict[str, Claims] = {}
"""By page."""


def claims_of(page: str) -> Callable[[Claims], Claims]:
    """Register a function that makes a page's fragments."""

    def register(made: Claims) -> Claims:
        CLAIMS[page] = made
        return made

    return register


@claims_of("README.md")
def readme() -> Iterator[str]:
    """Rates on a GPU, and final scores beside the published ones."""
    for phase, name in PHASES.items():
        yield f"sapp, {name} | {rate(1, phase):,} | {rate(54, phase):,}"
    lines = (ROOT / "bench" / "rows" / "h200-peers.jsonl").read_text(encoding="utf-8").splitlines()
    plain, compiled = (row["run_steps_per_s"] for row in map(json.loads, lines))
    yield f"compiled | {plain:g}; {compiled:g}"
    made = baselines.scores()
    for name in ("TD3+BC", "IQL", "ReBRAC"):
        method, run = baselines.METHODS[name]
        cells = []
        for dataset, published in zip(baselines.DATASETS, baselines.PUBLISHED[name][1:], strict=True):
            found = baselines.of(made, method, run, dataset)
            cells.append(f"{student(list(found[max(found)].values())).value:.1f} ({published})")
        yield " | ".join(cells)


@claims_of("docs/guides/own-logs.md")
def own_logs() -> Iterator[str]:
    """How long a stranger's log takes to become a policy, and what that returns."""
    row = json.loads((ROOT / "bench" / "rows" / "strangers-log.json").read_text(encoding="utf-8"))
    train, select = (int(row["parts"][name]) for name in ("train", "select"))
    yield f"{int(row['seconds'])} seconds in all on two\ncores (training {train}, estimates {select})"
    yield f"return was −{-row['logs_return']}; the chosen policy's, −{-row['policy_return']}"
