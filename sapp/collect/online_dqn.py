"""Online DQN on image environments, logged as DQN-Replay was: policies improve, and everything they did is kept.

A round is one step of all environments. The device chooses actions, then makes the round's updates while the emulators
step on the processors: dispatch returns at once, so the two run side by side, and what acts is what was learned one
round before. Everything is a function of the seed, whichever side was faster.
"""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from sapp.algorithms import config as configuration
from sapp.algorithms.dqn import DQN, DQNState
from sapp.collect.frame_replay import FrameRing
from sapp.collect.frames_log import FramesLog
from sapp.core.errors import SappError
from sapp.core.files import write_text
from sapp.core.spec import Spec
from sapp.data.loaders.dqn_files import shard_numbers
from sapp.envs import make_frames
from sapp.envs.frames import FrameEnvironment, Play, play
from sapp.runs import checkpoint
from sapp.runs.folders import LOCK, claimed
from sapp.runs.metric_tables import Table
from sapp.runs.progress import Progress, Silent, Terminal
from sapp.weights.base import Metrics

CONFIG, METRICS, NETWORK, LOGS = "config.json", "metrics.csv", "network.safetensors", "replay_logs"
COLUMNS = ("step", "seconds", "episodes", "return_mean", "length_mean", "epsilon", "updates", "loss", "critic/value")


def dopamine_dqn() -> DQN:
    """Dopamine's DQN with its later optimiser: Adam 6.25e-5, ε 1.5e-4. A target every 2,000 updates is every 8,000
    steps at one update in four. Its older one is ``optimiser="rmsprop", lr=2.5e-4``."""
    return DQN(lr=6.25e-5, adam_eps=1.5e-4, target_every=2_000, batch_size=32, double=False)


@dataclass(frozen=True)
class Exploration:
    """ε by the step: 1 at first, then linearly down to ``last``; and when learning begins.

    Attributes:
        warm_up: steps at ε = 1, before the first update.
        decay: steps over which it falls.
        last: where it stays.
    """

    warm_up: int = 20_000
    decay: int = 250_000
    last: float = 0.01

    def __post_init__(self) -> None:
        if self.warm_up < 1 or self.decay < 1 or not 0 <= self.last <= 1:
            raise SappError("exploration: warm_up and decay must be at least 1, the last epsilon from 0 to 1")

    def epsilon(self, step: int) -> float:
        """ε at a step."""
        share = min(max((step - self.warm_up) / self.decay, 0.0), 1.0)
        return 1.0 + share * (self.last - 1.0)


class DQNRun:
    """A folder made by ``train``: the log, the network at the end, and how learning went."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / CONFIG).is_file():
            raise SappError(f"{self.path}: not a folder of an online DQN (it has no {CONFIG})")
        self.config: dict[str, Any] = json.loads((self.path / CONFIG).read_text(encoding="utf-8"))
        if self.config.get("kind") != "online dqn":
            raise SappError(f"{self.path}: another kind of run, not an online DQN's")

    @property
    def log(self) -> Path:
        """The folder of DQN-Replay shards: what ``sapp.load`` and ``sapp train`` take."""
        return self.path / LOGS

    @property
    def steps(self) -> int:
        """Environment steps that were taken."""
        return int(self.config["steps_taken"])

    def policy(self) -> Any:
        """The network at the end as a policy of stacks [B, stack, H, W]."""
        algorithm: DQN = configuration.build(self.config["algorithm"])
        spec = Spec.of_frames(self.config["frame"], self.config["num_actions"])
        like = jax.eval_shape(lambda key: algorithm.init(key, spec).scores, jax.random.PRNGKey(0))
        scores = checkpoint.load(self.path / NETWORK, like)
        return eqx.filter_jit(lambda stacks: jnp.argmax(scores(stacks), axis=-1))

    def play(self, episodes: int = 10, seed: int = 1, epsilon: float = 0.001) -> Play:
        """Play the network at the end."""
        policy = self.policy()
        environment = make_frames(self.config["environment"])
        return play(
            lambda stacks: np.asarray(policy(jnp.asarray(stacks))), environment, episodes=episodes, seed=seed,
            epsilon=epsilon, stack=self.config["frame"][0],
        )  # fmt: skip


def train(
    environment: str | FrameEnvironment,
    *,
    steps: int = 1_000_000,
    seed: int = 0,
    algorithm: DQN | None = None,
    exploration: Exploration | None = None,
    rows: int = 64,
    capacity: int = 1_000_000,
    update_period: int = 4,
    stack: int = 4,
    log_every: int = 10_000,
    shard_rows: int = 1_000_000,
    threads: int | None = None,
    time_limit: float | None = None,
    out: str | Path | None = None,
    progress: bool = True,
) -> DQNRun:
    """Train DQN online and log all that it does.

    Args:
        environment: "ALE/Pong-v5", "catch", or one that is made already.
        steps: environment steps, rounded up to whole rounds.
        seed: of everything.
        algorithm: DQN's settings; see ``dopamine_dqn``.
        exploration: ε's schedule.
        rows: environments side by side.
        capacity: steps that the replay ring holds, on the device.
        update_period: steps for each update.
        stack: frames of an observation.
        log_every: steps between rows of metrics.csv.
        shard_rows: rows of a shard of the log at most.
        threads: emulator threads (default: one a core).
        time_limit: stop after so many seconds; what was logged by then is kept, a whole log.
        out: folder; by default ``runs/dqn-<environment>-<time>``.
        progress: show a progress bar.
    """
    least = {"steps": steps, "rows": rows, "update_period": update_period, "stack": stack, "log_every": log_every}
    for name, value in least.items():
        if value < 1:
            raise SappError(f"{name} is {value}: it must be at least 1")
    if capacity < rows * (stack + 2):
        raise SappError(f"capacity is {capacity}: {rows} environments need at least {rows * (stack + 2)}")
    place = make_frames(environment, threads) if isinstance(environment, str) else environment
    if out is not None:
        _check_folder(Path(out))
    chosen = algorithm or dopamine_dqn()
    schedule = exploration or Exploration()
    config: dict[str, Any] = {
        "kind": "online dqn", "environment": place.name, "seed": seed, "steps": steps, "rows": rows,
        "capacity": capacity, "update_period": update_period, "frame": [stack, *place.frame_shape],
        "num_actions": place.num_actions, "exploration": vars(schedule), "algorithm": configuration.describe(chosen),
    }  # fmt: skip
    name = place.name.removeprefix("ALE/").removesuffix("-v5").lower()
    with claimed(out, f"dqn-{place.name.replace('/', '-')}", ()) as folder:  # what was logged is kept, whatever happens
        _check_folder(folder)
        with FramesLog(
            folder / LOGS, place, rows, stack=stack, shard_rows=shard_rows, name=f"{name}-dqn-{seed}", threads=4,
            provenance={"agent": "online DQN", **config},
        ) as log:  # fmt: skip
            loop = _Loop(place, log, chosen, schedule, config, Table(folder / METRICS, COLUMNS))
            loop.go(log_every, time_limit, Terminal(steps, 1) if progress else Silent())
        checkpoint.save(folder / NETWORK, loop.state.scores, {"step": loop.step})
        write_text(folder / CONFIG, json.dumps({**config, "steps_taken": loop.step}, indent=2) + "\n")
    return DQNRun(folder)


def _check_folder(folder: Path) -> None:
    """Refuse a folder that holds something; what was cut off before its first shard is nothing, and is written over."""
    there = {each.name for each in folder.iterdir()} if folder.is_dir() else set()
    shards = shard_numbers(folder / LOGS)
    if shards and CONFIG not in there:
        raise SappError(
            f"{folder}: is not empty: its run was cut off, the shards that it had finished can be loaded from "
            f"{folder / LOGS}; choose another --out"
        )
    if shards or there - {LOGS, METRICS, LOCK}:
        raise SappError(f"{folder}: is not empty; choose another --out")


class _Loop:
    """The state of training between two rounds."""

    def __init__(
        self, place: FrameEnvironment, log: FramesLog, algorithm: DQN, schedule: Exploration, config: dict[str, Any],
        table: Table,
    ) -> None:  # fmt: skip
        self.place, self.log, self.schedule, self.config, self.table = place, log, schedule, config, table
        self.rows, stack = int(config["rows"]), int(config["frame"][0])
        self.algorithm = algorithm
        self.key = jax.random.PRNGKey(int(config["seed"]))
        spec = Spec.of_frames(config["frame"], place.num_actions)
        self.state = _init(algorithm, self.key, spec)
        rounds = int(config["capacity"]) // self.rows
        self.ring = FrameRing.empty(rounds, self.rows, place.frame_shape, stack)
        self.step, self.updates = 0, 0
        self.metrics: Metrics = {}
        self.ended: list[tuple[float, int]] = []

    def go(self, log_every: int, time_limit: float | None, view: Progress) -> None:
        """To the end or to the time limit."""
        began = time.monotonic()
        self.table.rewind(-1)
        frames = self.place.reset(self.rows, int(self.config["seed"]))
        age, total = np.zeros(self.rows, np.int32), np.zeros(self.rows)
        last = None
        number = 0
        with view, contextlib.suppress(KeyboardInterrupt):  # Ctrl-C is a time limit too: what was logged is kept
            while self.step < int(self.config["steps"]):
                epsilon = self.schedule.epsilon(self.step)
                self.ring, chosen = _advance(
                    self.state.scores, self.ring, self.key, jnp.int32(number), frames, age, last, jnp.float32(epsilon)
                )
                self._learn(number)
                action = np.asarray(chosen)  # there as soon as it was chosen: the updates come after
                following, reward, terminal = self.place.step(action)
                over = terminal | self.place.truncated
                self.log.add(frames, action, reward, terminal, self.place.truncated, self.place.gain)
                total += self.place.gain
                age += 1
                last = (action, reward, terminal, self.place.truncated.copy())
                frames = following.copy()
                if over.any():
                    again = np.flatnonzero(over)
                    self.ended += [(float(total[row]), int(age[row])) for row in again]
                    frames[again] = self.place.restart(again)
                    age[again], total[again] = 0, 0.0
                before, self.step, number = self.step, self.step + self.rows, number + 1
                if self.step // log_every > before // log_every or self.step >= int(self.config["steps"]):
                    self._tell(time.monotonic() - began, epsilon, view)
                if time_limit is not None and time.monotonic() - began > time_limit:
                    view.say(f"time limit: stopped at step {self.step:,}")
                    break

    def _learn(self, number: int) -> None:
        """The round's updates, on rounds before this one; returns at once."""
        if number < 2 or self.step < self.schedule.warm_up:
            return
        due = (self.step + self.rows) // int(self.config["update_period"])
        count = due - self.step // int(self.config["update_period"])
        if count:
            self.state, self.metrics = _learn(
                count, self.algorithm, self.state, self.ring, self.key, jnp.int32(self.updates), jnp.int32(number)
            )
            self.updates += count

    def _tell(self, seconds: float, epsilon: float, view: Progress) -> None:
        row: dict[str, Any] = {"step": self.step, "seconds": round(seconds, 1), "episodes": len(self.ended)}
        row |= {"epsilon": round(epsilon, 5), "updates": self.updates}
        row |= {name: float(value) for name, value in self.metrics.items() if name in COLUMNS}
        if self.ended:
            row["return_mean"] = float(np.mean([gain for gain, _ in self.ended]))
            row["length_mean"] = float(np.mean([length for _, length in self.ended]))
            view.say(f"step {self.step:>9,}  return {row['return_mean']:.1f} over {len(self.ended)} episodes")
        self.ended = []
        self.table.append([row])
        view.update(self.step, "learning" if self.updates else "random actions")


@jax.jit
def _init(algorithm: DQN, key: Array, spec: Spec) -> DQNState:
    return algorithm.init(jax.random.fold_in(key, 0), spec)


@partial(jax.jit, donate_argnums=1)
def _advance(
    scores: Any, ring: FrameRing, key: Array, number: Array, frames: Array, age: Array, last: Any, epsilon: Array
) -> tuple[FrameRing, Array]:
    """Record what came of the round before, see this one's frames, and choose actions ε-greedily."""
    if last is not None:
        ring = ring.record(number - 1, *last)
    ring = ring.see(number, frames, age)
    rows = jnp.arange(frames.shape[0])
    values = scores(ring.stacks(jnp.broadcast_to(number, rows.shape), rows))
    explore_key, action_key = jax.random.split(jax.random.fold_in(jax.random.fold_in(key, 1), number))
    uniform = jax.random.randint(action_key, rows.shape, 0, values.shape[-1])
    explore = jax.random.uniform(explore_key, rows.shape) < epsilon
    return ring, jnp.where(explore, uniform, jnp.argmax(values, axis=-1)).astype(jnp.int32)


@partial(jax.jit, static_argnums=0, donate_argnums=2)
def _learn(
    count: int, algorithm: DQN, state: DQNState, ring: FrameRing, key: Array, updates: Array, now: Array
) -> tuple[DQNState, Metrics]:
    """``count`` updates on rounds before ``now``; metrics are those of the last one."""

    def one(state: DQNState, update: Array) -> tuple[DQNState, Metrics]:
        own = jax.random.fold_in(jax.random.fold_in(key, 2), update)
        batch_key, update_key = jax.random.split(own)
        batch = ring.draw(batch_key, now, algorithm.batch_size)
        return algorithm.update(state, batch, jnp.ones_like(batch.reward), update_key)

    state, metrics = jax.lax.scan(one, state, updates + jnp.arange(count))
    return state, jax.tree.map(lambda values: values[-1], metrics)
