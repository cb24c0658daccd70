"""What is wrong with logs, what is done about it on loading, what is left to the reader, and what to do next."""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sapp.data.columns import Given
from sapp.data.dataset import Dataset
from sapp.data.findings import findings
from sapp.data.ledger import Kind, Ledger
from sapp.data.load import load_vectors

MINUTES = 10.0
"""How long the suggested training may take."""
BATCH = {False: 256, True: 64}
"""Rows of a step of cql and of discrete-cql (by whether actions are discrete)."""
OVERHEAD = {False: 3e-3, True: 1e-4}
"""Seconds of a step that do not depend on the size of the networks, likewise."""
COMPILATION = 0.5
"""Minutes before the first step."""


@dataclass(frozen=True)
class Check:
    """The result of looking at logs.

    Attributes:
        name: of the dataset.
        summary: sizes, in a line.
        ledger: what became of every column and row on loading, in lines.
        findings: what was found and left as it is: what, how sure, what to do.
        algorithm: one that suits the actions.
        plan: options of a first training that fits this machine, and about how long it takes.
        fingerprint: of the dataset as it is trained on.
    """

    name: str
    summary: str
    ledger: list[str]
    findings: list[str]
    algorithm: str
    plan: str
    fingerprint: str


def check(source: Any, columns: Given = None, **options: Any) -> Check:
    """Load logs and give an account of them; what cannot be loaded raises ``SappError``, one line.

    Args:
        source: what ``sapp.load`` takes.
        columns: what maps columns, see ``sapp.load``.
        options: further ones of ``sapp.load``.
    """
    return examine(load_vectors(source, columns=columns, **options))


def examine(data: Dataset) -> Check:
    """Give an account of a dataset that is loaded."""
    actions = f"{data.num_actions} discrete actions" if data.discrete else f"{data.action_size} action dimension"
    actions += "s" * (data.action_size > 1 and not data.discrete)
    summary = (
        f"{data.size:,} steps, {data.num_episodes:,} episodes ({int(data.terminal.sum()):,} end, "
        f"{int(data.timeout.sum()):,} stop unfinished), {data.observation_size} features, {actions}"
    )
    algorithm, ledger = "discrete-cql" if data.discrete else "cql", Ledger.of(data)
    found = ledger.lines(Kind.WARNING) + [str(each) for each in findings(data)]
    return Check(data.name, summary, ledger.text(), found, algorithm, first_plan(data), data.fingerprint)


def account(data: Dataset) -> list[str]:
    """What was done on loading and what is doubtful, a sentence each, from the ledger."""
    return Ledger.of(data).lines(*Kind)


def first_plan(data: Dataset) -> str:
    """Options of a first training that takes about ``MINUTES`` here, by how fast this machine multiplies matrices."""
    play = "" if data.environment is not None else " --eval-every 0"
    if Path("/dev/nvidiactl").exists():
        return f"--steps 100000{play}  (minutes on this GPU)"
    speed = _multiplications()
    wanted = min(100_000, max(2_000, 100 * data.size // BATCH[data.discrete]))
    for hidden in ((256, 256), (128, 128), (64, 64), (32, 32)):
        per_minute = 60 / (_work(data, hidden) / speed + OVERHEAD[data.discrete])
        if per_minute * (MINUTES - COMPILATION) >= wanted:
            break
    steps = int(min(wanted, max(1_000, per_minute * (MINUTES - COMPILATION)))) // 500 * 500
    minutes = max(1, round(steps / per_minute + COMPILATION))
    sizes = ",".join(map(str, hidden))
    option = f"--lr 1e-3 --target-every {max(100, steps // 50)} --network.hidden" if data.discrete else "--hidden"
    about = f"(about {minutes} minute{'s' if minutes > 1 else ''} on these {os.cpu_count()} cores)"
    return f"--steps {steps} {option} {sizes}{play}  {about}"


def _work(data: Dataset, hidden: tuple[int, ...]) -> float:
    """Multiplications and additions of a step: CQL asks two critics about some 30 actions per state, both ways."""
    widths = [data.observation_size + data.action_size, *hidden, 1]
    weights = sum(a * b for a, b in itertools.pairwise(widths))
    return 6.0 * weights * BATCH[data.discrete] * (4 if data.discrete else 2 * 32)


def _multiplications() -> float:
    """Useful operations per second, measured: a third of what matrix products of a layer's size reach."""
    rows, weights = np.ones((1024, 256), np.float32), np.ones((256, 256), np.float32)
    best = float("inf")
    for _ in range(20):  # the best of many: other work on the machine comes and goes
        start = time.perf_counter()
        rows @ weights
        best = min(best, time.perf_counter() - start)
    return 2.0 * 1024 * 256 * 256 / max(best, 1e-9) / 3
