"""Online training: environments act on the CPU while the device learns.

Each chunk does two things at once. The device makes ``chunk`` updates of every member on the buffers as they are; the
CPU's cores take ``chunk`` steps of every member with the policies from which these updates start. Then the new steps
join the buffers. So there is one update for each environment step, the acting policy is at most one chunk old, and
nothing depends on which side was faster: the same seed gives the same bits, also after a resume.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sapp.algorithms.sac import SAC
from sapp.collect.online_run import CHECKPOINTS, ENTRIES, METRICS, SNAPSHOTS, OnlinePlan, OnlineRun, snapshot_steps
from sapp.collect.replay_buffer import Steps, append, device_rows
from sapp.collect.sac_learners import Learners
from sapp.collect.simulation import Simulation
from sapp.core.errors import Interrupted, SappError, printable
from sapp.core.files import remove_leftovers
from sapp.envs import make
from sapp.envs.base import BatchEnvironment, cores
from sapp.envs.blas import one_blas_thread
from sapp.envs.policies import StochasticPolicy, UniformPolicy
from sapp.runs import checkpoint
from sapp.runs.folders import claimed, locked
from sapp.runs.metric_tables import Table
from sapp.runs.plan import check_settings
from sapp.runs.progress import Progress, Silent, Terminal

COLUMNS = ("step", "seconds", "member", "episodes", "return_mean", "length_mean", "critic/td", "critic/value",
           "actor/entropy", "actor/temperature")  # fmt: skip
KEEP = 2
"""Checkpoints kept: the one before the newest is there in case the newest is damaged."""
UPLOAD = 65_536
"""Rows brought back to the device at a time when a run resumes."""


def train(
    environments: str | Sequence[str],
    *,
    seeds: int | Sequence[int] = 1,
    steps: int = 1_000_000,
    algorithm: SAC | None = None,
    random_steps: int = 5_000,
    rows: int = 16,
    chunk: int = 256,
    window: int = 1_000_000,
    snapshots: int = 20,
    checkpoint_every: int = 100_000,
    log_every: int = 5_000,
    max_episode_steps: int | None = None,
    threads: int | None = None,
    time_limit: float | None = None,
    out: str | Path | None = None,
    progress: bool = True,
) -> OnlineRun:
    """Train SAC online: every seed of every environment at once, as one compiled population.

    Args:
        environments: one name or several, see ``sapp.envs.make``.
        seeds: of each environment, how many (0, 1, …) or which.
        steps: environment steps of each member, rounded up to whole chunks.
        algorithm: SAC's settings.
        random_steps: of them at the start with uniform actions, rounded up to whole chunks.
        rows: environments of a member that run side by side.
        chunk: steps (and updates) between changes of the acting policy; a multiple of ``rows``.
        window: capacity of the replay buffer for learning; the log on disk always holds everything.
        snapshots: how many policies to keep of each member, denser early.
        checkpoint_every: steps between checkpoints.
        log_every: steps between rows of metrics.csv.
        max_episode_steps: for Gymnasium ids without a time limit.
        threads: simulator threads in all; by default one less than there are cores.
        time_limit: seconds after which to save and stop; the run can be resumed.
        out: run folder; by default ``runs/sac-<environments>-<time>``.
        progress: show a progress bar.
    """
    began = time.monotonic()
    names = (environments,) if isinstance(environments, str) else tuple(environments)
    numbers = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if not names or not numbers or len(set(names)) < len(names) or len(set(numbers)) < len(numbers):
        raise SappError("give at least one environment and one seed, each of them once")
    least = {"steps": steps, "rows": rows, "chunk": chunk, "window": window, "snapshots": snapshots,
             "checkpoint_every": checkpoint_every, "log_every": log_every}  # fmt: skip
    for name, value in least.items():
        if value < 1:
            raise SappError(f"{name} is {value}: it must be at least 1")
    if chunk % rows:
        raise SappError(f"chunk is {chunk}: it must be a multiple of rows ({rows})")
    whole = -(-steps // chunk) * chunk
    start = max(chunk, -(-random_steps // chunk) * chunk)
    if whole <= start:
        raise SappError(f"{steps} steps leave none to learn in: the first {start} are random")
    plan = OnlinePlan(
        names, numbers, algorithm or SAC(), whole, start, rows, chunk, window,
        snapshot_steps(whole, snapshots, chunk, start), checkpoint_every, log_every, max_episode_steps,
    )  # fmt: skip
    with claimed(out, f"sac-{'+'.join(names)}".replace("/", "-"), ENTRIES) as folder:
        return _go(OnlineRun.create(folder, plan), threads, progress, began, time_limit)


def resume(
    path: str | Path, *, threads: int | None = None, time_limit: float | None = None, progress: bool = True
) -> OnlineRun:
    """Continue a run from its newest checkpoint, bit for bit; a finished one is returned as it is."""
    began = time.monotonic()
    run = OnlineRun(path)
    if run.step >= run.plan.steps:
        return run
    for line in check_settings(run.path, run.versions):
        print(printable(line), file=sys.stderr)
    with locked(run.path):
        return _go(run, threads, progress, began, time_limit)


def _go(run: OnlineRun, threads: int | None, progress: bool, began: float, time_limit: float | None) -> OnlineRun:
    try:
        return _Loop(run, threads, progress).go(began, time_limit)
    except KeyboardInterrupt:
        # within a chunk the two sides are out of step: what counts is the last checkpoint
        where = f"saved at step {run.step:,} of {run.plan.steps:,}"
        raise Interrupted(f"interrupted; {where}, continue with: sapp collect --resume {run.path}") from None


class _Loop:
    """The state of training between two chunks, and how to get from one to the next."""

    def __init__(self, run: OnlineRun, threads: int | None, progress: bool) -> None:
        plan = self.plan = run.plan
        self.run, self._progress = run, progress
        for folder in (run.path / CHECKPOINTS, run.path / SNAPSHOTS):
            remove_leftovers(folder)
        share = max(1, (threads or max(1, cores() - 1)) // len(plan.environments))
        self.simulations = [
            Simulation(_make(name, share, plan.max_episode_steps), plan.seeds, plan.rows) for name in plan.environments
        ]
        sizes = [
            (one.environment.observation_size, one.environment.action_size)
            for one in self.simulations
            for _ in plan.seeds
        ]
        self.learners = Learners(plan.algorithm, sizes, [seed for _, seed in plan.members])
        self.logs = [run.log(*member) for member in plan.members]
        self.step, self.state = 0, self.learners.init()
        self.buffer = jnp.zeros((len(sizes), plan.steps, self.learners.row_width), jnp.float32)
        self.table = Table(run.path / METRICS, COLUMNS)
        self.metrics: dict[str, Any] = {}
        self._latest: list[float | None] = [None] * len(plan.members)
        if run.step:
            self._restore()

    def go(self, began: float, time_limit: float | None) -> OnlineRun:
        """Train to the end or to the time limit, then save."""
        plan = self.plan
        view: Progress = Terminal(plan.steps, len(plan.members)) if self._progress else Silent()
        self.table.rewind(self.step)
        policies = self.learners.policies(self.state)
        uniform: list[StochasticPolicy] = [
            UniformPolicy(-np.ones(actions, np.float32), np.ones(actions, np.float32))
            for _, actions in self.learners.sizes
        ]
        # one BLAS thread throughout: each environment's thread computes its own policies
        with view, one_blas_thread(), ThreadPoolExecutor(len(self.simulations)) as pool:
            while self.step < plan.steps:
                learning = self.step >= plan.random_steps
                if learning:
                    self.state, self.metrics = self.learners.learn(
                        self.state, self.buffer, self.step - plan.random_steps, self.step, plan.chunk, plan.window
                    )
                self._record(self._act(pool, policies if learning else uniform))
                if learning:
                    policies = self.learners.policies(self.state)
                view.update(self.step, "learning" if learning else "random actions")
                late = time_limit is not None and time.monotonic() - began > time_limit
                save = late or self.step == plan.steps or _crossed(self.step, plan.chunk, plan.checkpoint_every)
                if save or _crossed(self.step, plan.chunk, plan.log_every):
                    self._log(time.monotonic() - began)
                if self.step in plan.snapshots:
                    self.run.save_snapshot(self.step, policies)
                    view.say(f"{self._summary()}   ({time.monotonic() - began:.0f} s)")
                if save:
                    self._save()
                if late:
                    view.say(f"time limit: saved at step {self.step:,} of {plan.steps:,}; resume it to go on")
                    break
        return self.run

    def _act(self, pool: ThreadPoolExecutor, policies: Sequence[StochasticPolicy]) -> list[Steps]:
        """A chunk of every member, in the members' order; an environment a thread."""
        plan, count = self.plan, len(self.plan.seeds)
        number, rounds = self.step // plan.chunk, plan.chunk // plan.rows
        futures = [
            pool.submit(simulation.play, policies[i * count : (i + 1) * count], number, rounds)
            for i, simulation in enumerate(self.simulations)
        ]
        return [steps for future in futures for steps in future.result()]

    def _record(self, parts: Sequence[Steps]) -> None:
        """Let new steps join the logs and the device's buffers."""
        for log, steps in zip(self.logs, parts, strict=True):
            log.write(self.step, steps)
        self.buffer = append(self.buffer, self._device_rows(parts), jnp.int32(self.step))
        self.step += self.plan.chunk

    def _device_rows(self, parts: Sequence[Steps]) -> np.ndarray:
        sizes, count = (self.learners.observations, self.learners.actions), len(self.plan.seeds)
        return np.stack(
            [device_rows(part, self.simulations[i // count].environment, *sizes) for i, part in enumerate(parts)]
        )

    def _log(self, seconds: float) -> None:
        metrics = {name: np.asarray(values) for name, values in self.metrics.items() if name in COLUMNS}
        rows = []
        for i, name in enumerate(self.plan.names):
            ended = self.simulations[i // len(self.plan.seeds)].pop_ended(i % len(self.plan.seeds))
            row: dict[str, Any] = {"step": self.step, "seconds": round(seconds, 1), "member": name}
            row |= {key: float(values[i]) for key, values in metrics.items()} | {"episodes": len(ended)}
            if ended:
                row["return_mean"] = float(np.mean([one for one, _ in ended]))
                row["length_mean"] = float(np.mean([length for _, length in ended]))
                self._latest[i] = row["return_mean"]
            rows.append(row)
        self.table.append(rows)

    def _summary(self) -> str:
        """Mean return of the latest training episodes, which are stochastic, member by member."""
        latest = [f"{value:.0f}" if value is not None else "–" for value in self._latest]
        count = len(self.plan.seeds)
        groups = [
            f"{name} {' '.join(latest[i * count : (i + 1) * count])}" for i, name in enumerate(self.plan.environments)
        ]
        return f"step {self.step:>9,}  return  {'   '.join(groups)}"

    def _save(self) -> None:
        for log in self.logs:
            log.flush()
        self.table.sync()
        path = self.run.path / CHECKPOINTS / f"{self.step:010d}.safetensors"
        checkpoint.save(path, self._tree(), {"step": self.step})
        for file in list(self.run.checkpoints.values())[:-KEEP]:
            file.unlink(missing_ok=True)

    def _tree(self) -> dict[str, Any]:
        simulated = [
            {"episode": each.episode, "elapsed": each.elapsed, "begun": each.begun} for each in self.simulations
        ]
        integers = jax.tree.map(lambda array: np.asarray(array, np.int32), simulated)
        return {"learners": self.state, "simulations": integers}

    def _restore(self) -> None:
        """Networks from the checkpoint, buffers from the logs, environments by repeating their episodes under way."""
        loaded = checkpoint.load(self.run.checkpoints[self.run.step], jax.eval_shape(self._tree))
        checkpoint.check_step(self.run.checkpoints[self.run.step], self.run.step)
        self.step, self.state = self.run.step, loaded["learners"]
        count = len(self.plan.seeds)
        for i, (simulation, saved) in enumerate(zip(self.simulations, loaded["simulations"], strict=True)):
            logs = self.logs[i * count : (i + 1) * count]
            episode, elapsed, begun = (np.asarray(saved[key]) for key in ("episode", "elapsed", "begun"))
            simulation.restore(episode, elapsed, begun, logs, self.step)
        for begin in range(0, self.step, UPLOAD):
            parts = [log.read(begin, min(self.step, begin + UPLOAD)) for log in self.logs]
            self.buffer = append(self.buffer, self._device_rows(parts), jnp.int32(begin))


def _make(name: str, threads: int, max_episode_steps: int | None) -> BatchEnvironment:
    env = make(name, threads=threads, max_episode_steps=max_episode_steps, recorded=True)
    if env.num_actions is not None:
        raise SappError(
            f"{name} has {env.num_actions} discrete actions, SAC learns real-valued ones; record a given policy "
            f"instead: sapp collect {name} --policy uniform"
        )
    return env


def _crossed(step: int, chunk: int, every: int) -> bool:
    """Whether a multiple of ``every`` lies in the last chunk."""
    return step // every > (step - chunk) // every
