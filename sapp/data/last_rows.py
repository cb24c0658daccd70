"""Last rows of episodes that hold an observation only, next observations that are empty there, rewards a row late."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sapp.core.errors import SappError
from sapp.data.ledger import Kind

if TYPE_CHECKING:
    from sapp.data.log_rows import LogRows


def settle_last_rows(log: LogRows) -> None:
    """Read what is empty at the ends of episodes for what it is.

    Args:
        log: sorted, and split at gaps.
    """
    _refuse_late_rewards(log)
    if "next_observation" in log.arrays:
        _settle_successors(log)
    else:
        _take_last_observations(log)


def wholly_missing(values: np.ndarray) -> np.ndarray:
    """Rows [N] in which every number is missing.

    Args:
        values: [N] or [N, width].
    """
    if values.dtype.kind != "f":
        return np.zeros(len(values), bool)
    return np.asarray(np.isnan(values).reshape(len(values), -1).all(axis=1))


def last_of(episode: np.ndarray) -> np.ndarray:
    """Whether a row is the last of its id, bool [N].

    Args:
        episode: [N], the rows of an id together.
    """
    return np.append(episode[1:] != episode[:-1], True)


def _take_last_observations(log: LogRows) -> None:
    """Rows without action and reward at the ends of all episodes tell what was observed after the row before."""
    episode = log.arrays.get("episode")
    gone = wholly_missing(log.arrays["action"]) & wholly_missing(log.arrays["reward"])
    if episode is None or not gone.any():
        return
    last = last_of(episode)
    alone = last & np.append(True, last[:-1])
    if np.any(gone & ~last) or np.any(last & ~gone & ~log.holes) or np.any(gone & alone):
        return
    rows = np.flatnonzero(~gone & ~log.holes)
    if not len(rows):
        return
    successor = log.arrays["observation"][rows + 1]
    possible = log.arrays["action_mask"][rows + 1] if "action_mask" in log.arrays else None
    for key in {"terminal", "done", "timeout"} & set(log.arrays):
        flag = log.arrays[key] = log.arrays[key].astype(np.float64)
        flag[:-1] = np.where(gone[1:], np.fmax(flag[:-1], flag[1:]), flag[:-1])
    count = int(gone.sum())
    cut = log.holes & ~gone
    if cut.any():
        log.drop(cut, f"{cut.sum()} rows before gaps have no known next state and were dropped", asked=False)
    log.drop(
        wholly_missing(log.arrays["action"]) & wholly_missing(log.arrays["reward"]),
        f"{count} last rows of episodes have neither action nor reward: each holds the observation after the row "
        f"before",
        asked=False,
    )  # fmt: skip
    log.arrays["next_observation"] = successor
    if possible is not None and "next_action_mask" not in log.arrays:
        log.arrays["next_action_mask"] = possible


def _settle_successors(log: LogRows) -> None:
    """Next observations that are empty where the task ended are not needed; where recordings stop, they are unknown."""
    after, here = log.arrays["next_observation"], log.arrays["observation"]
    empty = wholly_missing(after)
    if not empty.any() or after.shape != here.shape:
        return
    terminal = log.arrays.get("terminal", np.zeros(len(after))).reshape(-1) == 1
    if count := int(np.count_nonzero(empty & terminal)):
        after = log.arrays["next_observation"] = np.where((empty & terminal)[:, None], here, after)
        log.ledger.say(Kind.READ, f"next_observation is empty in {count} rows where the task ended: not needed")
    empty &= ~terminal
    if not empty.any():
        return
    last = np.append(np.zeros(len(after) - 1, bool), True)
    for key in {"terminal", "done", "timeout"} & set(log.arrays):
        last |= log.arrays[key].reshape(-1) == 1
    if "episode" in log.arrays:
        last |= last_of(log.arrays["episode"])
    inside = np.flatnonzero(~last)
    if np.any(empty & ~last) or np.any(last & ~empty & ~terminal) or not len(inside):
        return
    if np.mean(np.all(np.isclose(after[inside], here[inside + 1], equal_nan=True), axis=1)) > 0.99:
        del log.arrays["next_observation"]
        log.ledger.say(
            Kind.READ,
            "next_observation is empty at the ends of episodes and the next row's observation elsewhere: not needed",
        )


def _refuse_late_rewards(log: LogRows) -> None:
    """Rewards that are empty on first rows are those of the step before."""
    episode, empty = log.arrays.get("episode"), wholly_missing(log.arrays["reward"])
    if episode is None or not empty.any():
        return
    first = np.append(True, last_of(episode)[:-1])
    if np.all(empty[first]) and first.sum() > 1 and not np.any(empty & ~first & ~last_of(episode)):
        raise SappError(
            f"{log.table.where}: column {log.mapping.reward!r} is empty on the first row of every episode, so each row "
            f"seems to hold the reward of the step before: move rewards up by one row within episodes"
        )
