"""Datasets from rolling a policy out in many environments at once.

**No bias from running in parallel.** Cutting all environments off after a while would leave out those episodes that
happen to be long. Here episodes are numbered in the order in which they start, a row that finishes starts the next
number, and the dataset is the prefix of that sequence (episode 0, 1, 2, … each whole, in order) up to the wanted number
of transitions; only its last episode is cut short. That is what one environment alone would record: which episodes
are in depends on the lengths of those before, never on which finish first. New episodes start only until those begun
hold enough transitions together, and one that can no longer be reached is dropped at once, so little is simulated in
vain.

A long recording can be made in parts: with `whole` a part ends with an episode, and the next one goes on with the next
episode number. Parts joined are again a prefix of the sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from sapp.core.errors import SappError
from sapp.data.action_masks import honoured
from sapp.envs.base import BatchEnvironment, check_seed, mask_place
from sapp.envs.policies import StochasticPolicy

if TYPE_CHECKING:
    from sapp.data.dataset import Dataset

Arrays = dict[str, np.ndarray]


def collect(
    policy: StochasticPolicy,
    environment: BatchEnvironment,
    transitions: int,
    seed: int,
    batch: int = 1024,
    progress: Callable[[int], None] | None = None,
    name: str | None = None,
    first_episode: int = 0,
    whole: bool = False,
) -> Dataset:
    """Records a dataset of a given size from a stochastic policy.

    `terminal` is set where the task ended, `timeout` at the time limit and on the last row where the recording stops;
    `next_observation` is the true successor in all rows; `extras["log_prob"]` is the behaviour log-density, where
    the policy has one. The same arguments on the same machine give the same bits.

    Args:
        policy: draws the actions.
        environment: where; see `sapp.envs.make`.
        transitions: how many rows.
        seed: of starts and actions.
        batch: environments stepped at once, at most.
        progress: called with the number of transitions simulated so far.
        name: of the dataset; by default the environment's.
        first_episode: number of the first episode; a part after others goes on where they ended.
        whole: record the last episode to its end, so that there may be more rows than asked for.
    """
    from sapp.data.dataset import Dataset

    if transitions < 1 or batch < 1:
        raise SappError(f"cannot collect {transitions} transitions in batches of {batch}: both must be at least 1")
    # more rows than episodes of full length would mostly be dropped half-way
    rows = min(batch, max(transitions // environment.max_episode_steps, 16), transitions)
    arrays = _record(policy, environment, transitions, check_seed(seed), rows, progress, first_episode, whole)
    return Dataset(
        observation=arrays["observation"],
        action=arrays["action"],
        reward=arrays["reward"],
        next_observation=arrays["next_observation"],
        terminal=arrays["terminal"],
        timeout=arrays["timeout"],
        name=name or environment.name,
        environment=environment.identity,
        physics="d4rl" if environment.physics == "d4rl" else None,
        action_low=environment.action_low,
        action_high=environment.action_high,
        provenance={
            "loader": "sapp.envs.collect",
            "policy": type(policy).__name__,
            "seed": seed,
            "batch": rows,
            "first_episode": first_episode,
            "max_episode_steps": environment.max_episode_steps,
        },
        extras={} if np.isnan(arrays["log_prob"]).any() else {"log_prob": arrays["log_prob"]},
        num_actions=environment.num_actions,
        action_labels=environment.action_labels,
        mask_at=honoured(
            arrays["observation"], arrays["action"], mask_place(environment), environment.num_actions
        ),
    )


def _record(
    policy: StochasticPolicy,
    environment: BatchEnvironment,
    transitions: int,
    seed: int,
    batch: int,
    progress: Callable[[int], None] | None,
    first: int,
    whole: bool,
) -> Arrays:
    rng = np.random.default_rng((seed, first, 2))  # apart from the environment's streams, see `base.generator`
    observation = np.array(environment.reset(batch, seed, first + np.arange(batch)), np.float32)
    blank: np.ndarray = np.zeros((batch, environment.action_size), np.float32)
    if environment.num_actions is not None:
        blank = np.zeros(batch, np.int32)
    episode = np.arange(batch)
    length = np.zeros(batch, np.int64)  # of each episode begun so far, by number
    finished = np.zeros(batch, bool)
    active = np.ones(batch, bool)
    columns: dict[str, list[np.ndarray]] = {}
    done = 0
    while active.any():
        rows = np.flatnonzero(active)
        action = blank.copy()
        action[rows], log_prob = policy.sample(observation[rows], rng)
        following, reward, terminal = environment.step(action, active)
        successor = np.array(following, np.float32)
        number = episode[rows]
        length[number] += 1
        ended = terminal[rows]
        timeout = ~ended & ((length[number] >= environment.max_episode_steps) | environment.truncated[rows])
        step: dict[str, np.ndarray] = {
            "episode": number,
            "observation": observation[rows],
            "action": action[rows],
            "reward": reward[rows].astype(np.float32),
            "next_observation": successor[rows],
            "terminal": ended,
            "timeout": timeout,
            "log_prob": log_prob,
        }
        for key, value in step.items():
            columns.setdefault(key, []).append(value)
        observation = successor
        done += len(rows)
        finished[number] = ended | timeout

        # episodes after the point where those begun before them already suffice cannot be in the dataset
        before = np.concatenate([[0], np.cumsum(length)[:-1]])
        active[rows] = ~finished[number] & (before[number] < transitions)
        free = rows[finished[number]]
        if len(free) and length.sum() < transitions:
            fresh = np.arange(len(length), len(length) + len(free))
            length = np.concatenate([length, np.zeros(len(free), np.int64)])
            finished = np.concatenate([finished, np.zeros(len(free), bool)])
            episode[free] = fresh
            observation[free] = environment.restart(free, first + fresh)
            active[free] = True
        elif not whole and _enough(length, finished, transitions):
            break
        if progress is not None:
            progress(min(done, transitions))
    if whole:  # up to the end of the episode in which the wanted number is reached
        ends = np.cumsum(length)
        transitions = int(ends[np.searchsorted(ends, transitions)])
    arrays = assemble(columns, transitions)
    arrays["timeout"][-1] = not arrays["terminal"][-1]
    return arrays


def _enough(length: np.ndarray, finished: np.ndarray, transitions: int) -> bool:
    """Whether the leading finished episodes, and what there is of the next one, hold enough transitions."""
    leading = len(finished) if finished.all() else int(np.argmin(finished)) + 1
    return int(length[:leading].sum()) >= transitions


def assemble(columns: dict[str, list[np.ndarray]], transitions: int | None = None) -> Arrays:
    """Joins rows recorded step by step: sorted by the column "episode" (time order within is kept), then cut."""
    order = np.argsort(np.concatenate(columns.pop("episode")), kind="stable")[:transitions]
    arrays = {}
    for key in list(columns):
        arrays[key] = np.concatenate(columns.pop(key))[order]  # one column at a time keeps the peak of memory low
    return arrays
