"""The acting side: one environment, several members (seeds) with several rows each, stepped together.

A member's episodes are numbered in the order in which they start. Their starts depend on (seed, number) only, its
action noise on (seed, chunk): so what a member experiences depends on its policies alone, not on who runs beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sapp.collect.replay_buffer import Log, Steps
from sapp.data.action_units import from_unit
from sapp.envs.base import BatchEnvironment, check_seed
from sapp.envs.policies import StochasticPolicy

Ints = npt.NDArray[np.int64]

EPISODES_A_SEED = 2**32
"""Episode n of seed s is number s·2³² + n of the environment, whose own seed is 0."""


class Simulation:
    """Rows of one environment that belong to several members.

    Attributes:
        environment: a batch with a row for each (member, row).
        seeds: one per member.
        rows: environments per member.
        episode: [members, rows], number of the episode in each row.
        elapsed: [members, rows], steps taken in it.
        begun: [members], episodes begun so far.
        total: [members, rows], sum of rewards in each episode under way.
    """

    def __init__(self, environment: BatchEnvironment, seeds: Sequence[int], rows: int) -> None:
        self.environment, self.rows = environment, rows
        self.seeds = np.asarray([check_seed(seed) for seed in seeds], np.int64)
        self.episode: Ints = np.tile(np.arange(rows), (len(seeds), 1))
        self.elapsed: Ints = np.zeros_like(self.episode)
        self.begun: Ints = np.full(len(seeds), rows)
        self.total = np.zeros(self.episode.shape)
        self._ended: list[list[tuple[float, int]]] = [[] for _ in seeds]
        self._observation = self._reset()

    def _reset(self) -> np.ndarray:
        observation = self.environment.reset(self.episode.size, 0, self._numbers(self.episode).reshape(-1))
        return np.asarray(observation, np.float32)

    def _numbers(self, episode: Ints) -> Ints:
        return self.seeds[:, None] * EPISODES_A_SEED + episode

    def play(self, policies: Sequence[StochasticPolicy], chunk: int, rounds: int) -> list[Steps]:
        """Take ``rounds`` steps in every row, each member with its own policy; returns rounds × rows steps per member.

        Args:
            policies: one per member, acting in [−1, 1].
            chunk: number of this stretch, which seeds the action noise.
            rounds: steps per row.
        """
        environment = self.environment
        members, rows = self.episode.shape
        # the last number keeps these streams apart from those of starts and of recorded datasets
        noise = [np.random.default_rng((int(seed), chunk, 3)) for seed in self.seeds]
        shape = (rounds, members, rows)
        out = Steps(
            observation=np.empty((*shape, environment.observation_size), np.float32),
            action=np.empty((*shape, environment.action_size), np.float32),
            reward=np.empty(shape, np.float32),
            next_observation=np.empty((*shape, environment.observation_size), np.float32),
            terminal=np.empty(shape, np.float32),
            timeout=np.empty(shape, np.float32),
            episode=np.empty(shape, np.float32),
            log_prob=np.empty(shape, np.float32),
        )
        for time in range(rounds):
            observation = self._observation.reshape(members, rows, -1)
            out.observation[time], out.episode[time] = observation, self.episode
            for member, policy in enumerate(policies):
                action, out.log_prob[time, member] = policy.sample(observation[member], noise[member])
                out.action[time, member] = from_unit(action, environment.action_low, environment.action_high)
            following, reward, ended = environment.step(out.action[time].reshape(members * rows, -1))
            self.elapsed += 1
            terminal = ended.reshape(members, rows)
            late = (self.elapsed >= environment.max_episode_steps) | environment.truncated.reshape(members, rows)
            out.reward[time], out.terminal[time] = reward.reshape(members, rows), terminal
            out.timeout[time] = late & ~terminal
            self.total += out.reward[time]
            self._observation = np.array(following, np.float32)
            out.next_observation[time] = self._observation.reshape(members, rows, -1)
            self._restart(terminal | late)
        return [Steps(*(field[:, m].reshape(rounds * rows, *field.shape[3:]) for field in out)) for m in range(members)]

    def _restart(self, over: npt.NDArray[np.bool_]) -> None:
        """Begin the next episodes of their members in rows whose episode is over."""
        if not over.any():
            return
        for member, row in np.argwhere(over).tolist():
            self._ended[member].append((float(self.total[member, row]), int(self.elapsed[member, row])))
        self.total[over] = 0.0
        self.episode[over] = (self.begun[:, None] + np.cumsum(over, axis=1) - 1)[over]
        self.begun += over.sum(axis=1)
        self.elapsed[over] = 0
        rows = np.flatnonzero(over.reshape(-1))
        self._observation[rows] = self.environment.restart(rows, self._numbers(self.episode).reshape(-1)[rows])

    def pop_ended(self, member: int) -> list[tuple[float, int]]:
        """(return, length) of the member's episodes that ended since this was last asked."""
        ended, self._ended[member] = self._ended[member], []
        return ended

    def restore(self, episode: Ints, elapsed: Ints, begun: Ints, logs: Sequence[Log], step: int) -> None:
        """Bring every row back to where it was: its episode is started again and its logged actions are repeated.

        That needs nothing of an environment but what every one offers, and gives the same bits.
        """
        self.episode, self.elapsed, self.begun = (np.array(each, np.int64) for each in (episode, elapsed, begun))
        self.total = np.zeros(self.episode.shape)
        self._observation = self._reset()
        members, rows = self.episode.shape
        longest = int(self.elapsed.max())
        actions = np.zeros((longest, members, rows, self.environment.action_size), np.float32)
        for member, log in enumerate(logs):
            past = log.read(max(0, step - longest * rows), step)
            for row in range(rows):
                mine = past.action[past.episode == self.episode[member, row]]
                actions[: self.elapsed[member, row], member, row] = mine
        for time in range(longest):
            active = (time < self.elapsed).reshape(-1)
            following, reward, _ = self.environment.step(actions[time].reshape(members * rows, -1), active)
            self._observation = np.array(following, np.float32)
            self.total += reward.reshape(members, rows).astype(np.float32)
