"""What is wrong with logs, and what is done about it: the loader's own account, and what it leaves to the reader."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sapp.data.columns import Given
from sapp.data.dataset import Dataset
from sapp.data.ledger import Kind, Ledger
from sapp.data.load import load_vectors
from sapp.data.repair import MANY_CODES, labels_advice, needs_scaling

FEW_EPISODES = 30
RARE_ACTION = 0.01


@dataclass(frozen=True)
class Check:
    """The result of looking at logs.

    Attributes:
        name: of the dataset.
        summary: sizes, in a line.
        repairs: what was done on loading, a sentence each.
        warnings: what was found and left as it is, a sentence each.
        algorithm: one that suits the actions.
        fingerprint: of the dataset as it is trained on.
    """

    name: str
    summary: str
    repairs: list[str]
    warnings: list[str]
    algorithm: str
    fingerprint: str


def check(source: Any, columns: Given = None) -> Check:
    """Load logs and give an account of them; what cannot be loaded raises ``SappError``, one line.

    Args:
        source: what ``sapp.load`` takes.
        columns: what maps columns, see ``sapp.load``.
    """
    data = load_vectors(source, columns=columns) if columns is not None else load_vectors(source)
    actions = f"{data.num_actions} discrete actions" if data.discrete else f"{data.action_size} action dimensions"
    summary = (
        f"{data.size:,} steps, {data.num_episodes:,} episodes ({int(data.terminal.sum()):,} end, "
        f"{int(data.timeout.sum()):,} stop unfinished), {data.observation_size} features, {actions}"
    )
    algorithm = "discrete-cql" if data.discrete else "sa-cql"
    ledger = Ledger.of(data)
    warnings = [*ledger.lines(Kind.WARNING), *doubts(data)]
    return Check(data.name, summary, ledger.lines(), warnings, algorithm, data.fingerprint)


def account(data: Dataset) -> list[str]:
    """What was done on loading and what is doubtful, a sentence each, from the ledger."""
    return Ledger.of(data).lines(*Kind)


def doubts(data: Dataset) -> list[str]:
    """What is worth knowing before training."""
    lines = []
    if data.num_episodes < FEW_EPISODES:
        lines.append(f"only {data.num_episodes} episodes: estimates of a policy's value will be doubtful below 30")
    constant = np.flatnonzero(data.observation.std(0) == 0)
    if len(constant):
        lines.append(f"feature {', '.join(map(str, constant))} never changes: it tells a policy nothing")
    reward = data.reward
    last = data.terminal | data.timeout
    if np.all(reward == reward[0]):
        same = f"the reward is {reward[0]:g} in every row: "
        if reward[0] and data.terminal.any():
            lines.append(same + "what differs is how long episodes last, and that is all there is to learn")
        else:
            lines.append(same + "there is nothing to learn from it")
    elif data.size > data.num_episodes and np.all(reward[~last] == 0):
        lines.append(
            "rewards come at the ends of episodes only: values must travel back through whole episodes, which needs "
            "more of them"
        )
    if data.observation_offset is None and (why := needs_scaling(data.observation)) is not None:
        lines.append(f"features are far from unit size ({why}): set scale = 'standard' in a column mapping")
    if data.discrete:
        lines += _rare_actions(data)
    else:
        whole = [i for i in range(data.action_size) if _whole(data.action[:, i])]
        if whole:
            lines.append(
                f"action dimension {', '.join(map(str, whole))} holds few whole numbers: if they are choices, set "
                f"action_kind = 'discrete'"
            )
        edge = np.mean((data.action <= data.action_low) | (data.action >= data.action_high), axis=0)
        for i in np.flatnonzero(edge > 0.5):
            lines.append(f"action dimension {i} lies at its bounds in {edge[i]:.0%} of rows: are the bounds right?")
    copies = data.size - len(np.unique(np.column_stack([data.observation, _columns(data), data.reward]), axis=0))
    if copies > 0.2 * data.size:
        lines.append(f"{copies:,} of {data.size:,} rows repeat another row's state, action and reward")
    return lines


def _columns(data: Dataset) -> np.ndarray:
    return data.action[:, None] if data.discrete else data.action


def _whole(values: np.ndarray) -> bool:
    return bool(np.all(values == np.round(values)) and len(np.unique(values)) <= 25 and np.ptp(values) > 0)


def _rare_actions(data: Dataset) -> list[str]:
    assert data.num_actions is not None
    taken, counts = np.unique(data.action, return_counts=True)
    known = set(taken.tolist())
    missing = data.num_actions - len(known)
    # one by one, and only as many as are named: codes may be numbers in the millions
    never = itertools.islice((number for number in range(data.num_actions) if number not in known), MANY_CODES)
    lines = []
    if missing and data.action_labels is None and not data.provenance.get("columns", {}).get("action_labels"):
        lines.append(
            f"actions count from 0 to {data.num_actions - 1}, but {missing} of these {data.num_actions} are never "
            f"taken ({_named(data, never, missing)}); if the numbers are codes, set {labels_advice(taken.tolist())} "
            f"in a column mapping"
        )
    elif missing:
        lines.append(f"never taken: {_named(data, never, missing)}; nothing can be learned of it")
    rare = taken[counts < RARE_ACTION * data.size].tolist()
    if rare:
        lines.append(f"taken in fewer than 1 % of steps: {_named(data, rare[:MANY_CODES], len(rare))}")
    return lines


def _named(data: Dataset, first: Iterable[int], count: int) -> str:
    """The first of some actions by name, and how many more there are."""
    names = [str(number) if data.action_labels is None else data.action_labels[number] for number in first]
    return ", ".join(names) + (f" and {count - len(names)} more" if count > len(names) else "")
