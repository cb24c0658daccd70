"""Online DQN on image environments, logged as DQN-Replay was: policies improve, and everything they did is kept.

A round is one step of all environments. The device chooses actions, then makes the round's updates while the emulators
step on the CPU: dispatch returns at once, so the two run side by side, and what acts is what was learned one
round before. Everything is a function of the seed, whichever side was faster.

A checkpoint holds what was learned, and actions.bin what was done: a run that was killed plays its actions again, which
gives the ring and the log as they were, and goes on to the same bits.
"""

from __future__ import annotations

import json
import sys
import time
import zlib
from collections.abc import Iterator
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
from sapp.collect.action_log import ActionLog
from sapp.collect.frame_replay import FrameRing
from sapp.collect.frames_log import FramesLog
from sapp.core.errors import Interrupted, SappError, one_line, printable
from sapp.core.files import remove_leftovers, write_text
from sapp.core.spec import Spec
from sapp.envs import make_frames
from sapp.envs.frames import FrameEnvironment, Play, play
from sapp.runs import checkpoint
from sapp.runs.folders import CHECKPOINTS, LOCK, checkpoint_files, claimed, locked
from sapp.runs.metric_tables import Table, read
from sapp.runs.plan import check_settings, stamps_of, versions
from sapp.runs.progress import Progress, Silent, Terminal
from sapp.training.stopping import Stop, stop_requests
from sapp.weights.base import Metrics

CONFIG, METRICS, NETWORK, LOGS, ACTIONS = (
    "config.json", "metrics.csv", "network.safetensors", "replay_logs", "actions.bin",
)  # fmt: skip
KIND, KEEP = "online dqn", 2
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
    """A folder made by ``train``, finished or not: the log, the latest network, and how learning went."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / CONFIG).is_file():
            raise SappError(f"{self.path}: not a folder of an online DQN (it has no {CONFIG})")
        self.config: dict[str, Any] = _config(self.path / CONFIG)

    @property
    def log(self) -> Path:
        """The folder of DQN-Replay shards: what ``sapp.load`` and ``sapp train`` take."""
        return self.path / LOGS

    @property
    def steps(self) -> int:
        """Environment steps at the newest checkpoint."""
        return max(checkpoint_files(self.path), default=0)

    @property
    def finished(self) -> bool:
        """Whether all steps were taken and their log is whole."""
        return bool(self.config.get("steps_taken", -1) >= self.config["steps"])

    def policy(self) -> Any:
        """The network of the newest checkpoint as a policy of stacks [B, stack, H, W]."""
        if not (self.path / NETWORK).exists():
            raise SappError(f"{self.path}: no checkpoint yet; continue with: sapp collect --resume {self.path}")
        algorithm: DQN = configuration.build(self.config["algorithm"])
        spec = Spec.of_frames(self.config["frame"], self.config["num_actions"])
        like = jax.eval_shape(lambda key: algorithm.init(key, spec).scores, jax.random.PRNGKey(0))
        scores = checkpoint.load(self.path / NETWORK, like)
        return eqx.filter_jit(lambda stacks: jnp.argmax(scores(stacks), axis=-1))

    def play(self, episodes: int = 10, seed: int = 1, epsilon: float = 0.001) -> Play:
        """Play the network of the newest checkpoint."""
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
    checkpoint_every: int = 50_000,
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
        checkpoint_every: steps between checkpoints, the most that a kill can cost.
        shard_rows: rows of a shard of the log at most.
        threads: emulator threads (default: one a core).
        time_limit: save and stop after so many seconds; ``resume`` goes on.
        out: folder; by default ``runs/dqn-<environment>-<time>``.
        progress: show a progress bar.
    """
    least = {"steps": steps, "rows": rows, "update_period": update_period, "stack": stack, "log_every": log_every,
             "checkpoint_every": checkpoint_every, "shard_rows": shard_rows}  # fmt: skip
    for name, value in least.items():
        if value < 1:
            raise SappError(f"{name} is {value}: it must be at least 1")
    if capacity < rows * (stack + 2):
        raise SappError(f"capacity is {capacity}: {rows} environments need at least {rows * (stack + 2)}")
    env = make_frames(environment, threads) if isinstance(environment, str) else environment
    if out is not None:
        _check_folder(Path(out))
    chosen = algorithm or dopamine_dqn()
    schedule = exploration or Exploration()
    config: dict[str, Any] = {
        "kind": KIND, "environment": env.name, "seed": seed, "steps": steps, "rows": rows,
        "capacity": capacity, "update_period": update_period, "frame": [stack, *env.frame_shape],
        "num_actions": env.num_actions, "exploration": vars(schedule), "algorithm": configuration.describe(chosen),
        "log_every": log_every, "checkpoint_every": checkpoint_every, "shard_rows": shard_rows, "versions": versions(),
    }  # fmt: skip
    with claimed(out, f"dqn-{env.name.replace('/', '-')}", ()) as folder:  # what was logged is kept, whatever happens
        _check_folder(folder)
        try:
            (folder / CHECKPOINTS).mkdir(exist_ok=True)
        except OSError as error:
            raise SappError(f"{folder}: cannot write there ({error.strerror}); choose another --out") from None
        write_text(folder / CONFIG, json.dumps(config, indent=2) + "\n")
        return _go(DQNRun(folder), env, time_limit, progress)


def resume(
    path: str | Path,
    *,
    environment: FrameEnvironment | None = None,
    threads: int | None = None,
    time_limit: float | None = None,
    progress: bool = True,
) -> DQNRun:
    """Continue a run from its newest checkpoint, bit for bit; a finished one is returned as it is.

    ``environment`` is needed only where ``train`` was given one that was made already.
    """
    run = DQNRun(path)
    if run.finished:
        return run
    env = environment if environment is not None else make_frames(run.config["environment"], threads)
    for line in check_settings(run.path, run.config["versions"]):
        print(printable(line), file=sys.stderr)
    own = run.config["frame"][1:], run.config["num_actions"]
    if own != (list(env.frame_shape), env.num_actions):
        raise SappError(f"{path}: was collected in another environment than {env.name} is")
    with locked(run.path):
        return _go(run, env, time_limit, progress)


def _go(run: DQNRun, env: FrameEnvironment, time_limit: float | None, progress: bool) -> DQNRun:
    """From the newest checkpoint to the end, or until it is to stop."""
    folder, config = run.path, run.config
    for each in (folder, folder / CHECKPOINTS, folder / LOGS):
        remove_leftovers(each)
    name = f"{env.name.removeprefix('ALE/').removesuffix('-v5').lower()}-dqn-{config['seed']}"
    untold = "steps_taken", "log_every", "checkpoint_every", "shard_rows", "versions"
    told = {key: config[key] for key in config if key not in untold}
    deadline = None if time_limit is None else time.monotonic() + time_limit
    loop = _Loop(run, env)
    view: Progress = Terminal(int(config["steps"]), 1) if progress else Silent()
    with (
        stop_requests(deadline, view.stopping) as requested,
        loop.actions,
        FramesLog(
            folder / LOGS, env, loop.rows, stack=config["frame"][0], shard_rows=config["shard_rows"], name=name,
            threads=4, provenance={"agent": "online DQN", **told}, again=True,
        ) as log,
        view,
    ):  # fmt: skip
        stop, before = None, loop.saved
        for _ in loop.go(log, view):
            stop = requested() if loop.step < int(config["steps"]) else None
            if stop is Stop.INTERRUPTED or (stop is Stop.TIME_LIMIT and loop.step > before):
                break
        if loop.repeating:  # nothing is new: the log stays as it was
            raise _interrupted(run, loop.saved)
        if loop.step > loop.saved:
            loop.save()
        else:  # it may have been killed between its checkpoint and its network
            loop.save_network()
    write_text(folder / CONFIG, json.dumps({**config, "steps_taken": loop.step}, indent=2) + "\n")
    if stop is Stop.INTERRUPTED:
        raise _interrupted(run, loop.step)
    return DQNRun(folder)


def _interrupted(run: DQNRun, step: int) -> Interrupted:
    return Interrupted(
        f"interrupted; saved at step {step:,} of {run.config['steps']:,}, and what was played until then is in "
        f"{run.log}; continue with: sapp collect --resume {run.path}"
    )


def _config(file: Path) -> dict[str, Any]:
    """What ``train`` wrote, with every field that is needed to go on."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("kind") != KIND:
            raise SappError(f"{file.parent}: another kind of run, not an online DQN's")
        wanted = ("seed", "steps", "rows", "capacity", "update_period", "frame", "num_actions",
                  "log_every", "checkpoint_every", "shard_rows")  # fmt: skip
        for key in wanted:
            values = content[key] if key == "frame" else [content[key]]
            if not all(type(value) is int and 0 < value + (key == "seed") < 2**40 for value in values):
                raise ValueError(f"{key} is {content[key]!r}")
        if type(content["environment"]) is not str or len(content["frame"]) != 3:
            raise ValueError(f"environment is {content['environment']!r}, frame {content['frame']!r}")
        if type(content.get("steps_taken", 0)) is not int:
            raise ValueError(f"steps_taken is {content['steps_taken']!r}")
        content["versions"] = stamps_of(content)
        Exploration(**content["exploration"])
        configuration.build(content["algorithm"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"{type(error).__name__}: {one_line(error)}"
        raise SappError(f"{file}: damaged ({what}); restore it or start anew") from None
    return content


def _check_folder(folder: Path) -> None:
    """Refuse a folder that holds something."""
    there = {each.name for each in folder.iterdir()} if folder.is_dir() else set()
    there -= {name for name in there if name.startswith(f".{CONFIG}.")}  # of a start that was killed
    if CONFIG in there:
        raise SappError(
            f"{folder}: is not empty: it holds a run; continue it with 'sapp collect --resume {folder}' or choose "
            "another --out"
        )
    if there - {LOCK, CHECKPOINTS} or any((folder / CHECKPOINTS).glob("*")):
        raise SappError(f"{folder}: is not empty; choose another --out")


class _Loop:
    """The state of training between two rounds."""

    def __init__(self, run: DQNRun, env: FrameEnvironment) -> None:
        config = self.config = run.config
        self.run, self.env, self.schedule = run, env, Exploration(**config["exploration"])
        self.table = Table(run.path / METRICS, COLUMNS)
        self.rows, stack = int(config["rows"]), int(config["frame"][0])
        self.algorithm: DQN = configuration.build(config["algorithm"])
        self.key = jax.random.PRNGKey(int(config["seed"]))
        spec = Spec.of_frames(config["frame"], env.num_actions)
        self.state = _init(self.algorithm, self.key, spec)
        rounds = int(config["capacity"]) // self.rows
        self.ring = FrameRing.empty(rounds, self.rows, env.frame_shape, stack)
        self.step, self.updates, self.saved, self._played, self._expected = 0, 0, 0, 0, 0
        self.metrics: dict[str, Any] = {}
        self.ended: list[tuple[float, int]] = []
        checksum = 0
        if found := checkpoint_files(run.path):
            self.saved = max(found)
            self.state = checkpoint.load(found[self.saved], jax.eval_shape(lambda: self.state))
            try:
                known = checkpoint.read_information(found[self.saved])
                self.updates, self.metrics = int(known["updates"]), dict(known["metrics"])
                self._expected, checksum = int(known["played"]), int(known["actions"])
                if known["step"] != self.saved or self.saved % self.rows:
                    raise ValueError(f"step {known['step']}")
            except (KeyError, TypeError, ValueError) as error:
                raise SappError(f"{found[self.saved]}: not a checkpoint of this run ({error}); delete it") from None
        self.actions = ActionLog(run.path / ACTIONS, self.rows, self.saved // self.rows, checksum)
        self.table.rewind(self.saved)
        self._before = max((float(row["seconds"] or 0) for row in read(self.table.path)), default=0.0)

    @property
    def repeating(self) -> bool:
        """Whether what was played before the run stopped is being played again."""
        return self.step < self.saved and bool(len(self.actions.past))

    def go(self, log: FramesLog, view: Progress) -> Iterator[None]:
        """To the end, one round after the other."""
        began = time.monotonic() - self._before
        frames = self.env.reset(self.rows, int(self.config["seed"]))
        age, total = np.zeros(self.rows, np.int32), np.zeros(self.rows)
        last = None
        resumed = len(self.actions.past)
        for number in range(-(-int(self.config["steps"]) // self.rows)):
            epsilon = self.schedule.epsilon(self.step)
            if number < resumed:
                # nothing waits for this, and it may read arrays where they lie: none of them may change after the call
                self.ring = _repeat(self.ring, jnp.int32(number), frames, age.copy(), last)
                action = np.asarray(self.actions.past[number])
            else:
                self.ring, chosen = _advance(
                    self.state.scores, self.ring, self.key, jnp.int32(number), frames, age, last, jnp.float32(epsilon)
                )
                self._learn(number)
                action = np.asarray(chosen)  # there as soon as it was chosen: the updates come after
                self.actions.add(action)
            following, reward, terminal = self.env.step(action)
            over = terminal | self.env.truncated
            log.add(frames, action, reward, terminal, self.env.truncated, self.env.gain)
            self._played = zlib.crc32(over.tobytes(), zlib.crc32(reward.tobytes(), self._played))
            total += self.env.gain
            age += 1
            last = (action, reward.copy(), terminal.copy(), self.env.truncated.copy())
            frames = following.copy()
            if over.any():
                again = np.flatnonzero(over)
                self.ended += [(float(total[row]), int(age[row])) for row in again]
                frames[again] = self.env.restart(again)
                age[again], total[again] = 0, 0.0
            self.step += self.rows
            self._after_round(number + 1 - resumed, time.monotonic() - began, epsilon, view)
            yield

    def _after_round(self, new: int, seconds: float, epsilon: float, view: Progress) -> None:
        """What is due after a round, the ``new``-th since the run was resumed: a row, a checkpoint."""
        if self._crossed("log_every"):
            if new > 0:
                self._tell(seconds, epsilon, view)
            else:
                view.update(self.step, "playing again what was played")
            self.ended = []
        if new == 0 and self._played != self._expected:
            raise SappError(
                f"{self.run.path}: {self.env.name} plays other games than when the run began (another version of the "
                "emulator?); resume it where it was begun, or start anew"
            )
        if new > 0 and self._crossed("checkpoint_every"):
            self.save()

    def _crossed(self, every: str) -> bool:
        """Whether a multiple lies in the last round, or the end does."""
        interval, before = int(self.config[every]), self.step - self.rows
        return self.step // interval > before // interval or self.step >= int(self.config["steps"])

    def save(self) -> None:
        """A checkpoint, and the network by itself for whoever plays it."""
        values = {name: float(value) for name, value in self.metrics.items()}  # a float32 is written exactly
        known = {"step": self.step, "updates": self.updates, "metrics": values, "played": self._played}
        known["actions"] = self.actions.sync()
        self.table.sync()
        checkpoint.save(self.run.path / CHECKPOINTS / f"{self.step:010d}.safetensors", self.state, known)
        self.save_network()
        for file in list(checkpoint_files(self.run.path).values())[:-KEEP]:
            file.unlink(missing_ok=True)
        self.saved = self.step

    def save_network(self) -> None:
        """The network by itself."""
        checkpoint.save(self.run.path / NETWORK, self.state.scores, {"step": self.step})

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
        self.table.append([row])
        view.update(self.step, "learning" if self.updates else "random actions")


@jax.jit
def _init(algorithm: DQN, key: Array, spec: Spec) -> DQNState:
    return algorithm.init(jax.random.fold_in(key, 0), spec)


def _see(ring: FrameRing, number: Array, frames: Array, age: Array, last: Any) -> FrameRing:
    """Record what came of the round before, and see this one's frames."""
    if last is not None:
        ring = ring.record(number - 1, *last)
    return ring.see(number, frames, age)


_repeat = jax.jit(_see, donate_argnums=0)


@partial(jax.jit, donate_argnums=1)
def _advance(
    scores: Any, ring: FrameRing, key: Array, number: Array, frames: Array, age: Array, last: Any, epsilon: Array
) -> tuple[FrameRing, Array]:
    """Record what came of the round before, see this one's frames, and choose actions ε-greedily."""
    ring = _see(ring, number, frames, age, last)
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
