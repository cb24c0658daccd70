"""The training loop on the host: chunks on the device, and between them logs, evaluations and checkpoints."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import numpy as np

from sapp.core.backend import device, host_is_free
from sapp.core.errors import Interrupted, SappError, TimeLimitReached
from sapp.core.files import remove_leftovers
from sapp.core.memory import give_back
from sapp.data import Dataset
from sapp.data.check import account
from sapp.evaluation.online_evaluation import Evaluator
from sapp.runs.events import EventKind
from sapp.runs.folders import CHECKPOINTS, DATA
from sapp.runs.hooks import Hook, Hooks
from sapp.runs.learners import Learner, Sums
from sapp.runs.logger import RunLogger
from sapp.runs.phases import PREPARE, Phase, locate, total_steps
from sapp.runs.plan import Plan
from sapp.runs.progress import Progress, Silent, Terminal
from sapp.runs.run import Run
from sapp.training.background import Background, on_host
from sapp.training.changes import Changes
from sapp.training.guard import LIMIT, VALUE, Guard, largest_reward
from sapp.training.population import Population, calls
from sapp.training.stopping import Stop, stop_requests
from sapp.training.upload import AnyDataset, populations_of

CHUNK_SECONDS = 1.0
"""Chunks are sized to about this long, so that Ctrl-C and the progress bar answer; the bits do not depend on it."""

_ERRORS = {Stop.INTERRUPTED: Interrupted, Stop.TIME_LIMIT: TimeLimitReached}


@dataclass(frozen=True)
class Session:
    """How a run is trained, of which nothing shows in its results; see ``sapp.train``."""

    progress: bool = True
    stream: bool | None = None
    deadline: float | None = None
    """Of ``time.monotonic()``."""
    hooks: Sequence[Hook] = ()


@contextlib.contextmanager
def opened(run: Run, datasets: Sequence[AnyDataset], session: Session) -> Iterator[Loop]:
    """A run's loop, ready to go from its newest checkpoint; the run must be locked."""
    plan = run.plan
    for folder in (run.path, run.path / CHECKPOINTS, run.path / DATA):
        remove_leftovers(folder)
    with contextlib.ExitStack() as stack:
        view: Progress = Terminal(total_steps(plan.phases), len(plan.members)) if session.progress else Silent()
        requested = stack.enter_context(stop_requests(session.deadline, view.stopping))
        step, learners = run.restore()
        populations = populations_of(plan, datasets, session.stream)
        for population in populations:
            stack.callback(population.close)
        logged: dict[str, None] = {}
        for population in populations:
            for phase in plan.phases:
                logged |= dict.fromkeys(population.metric_names(phase))
        if VALUE in logged:
            logged[LIMIT] = None
        logger = RunLogger(run.path, logged)
        logger.rewind(step)
        learners = learners or [population.init() for population in populations]
        evaluator = Evaluator(plan)
        stack.enter_context(view)
        hooks = stack.enter_context(Hooks(session.hooks, run))
        background = stack.enter_context(Background(host_is_free()))
        _tell(view, run, step, evaluator, datasets)
        rewards = [largest_reward(dataset) for dataset in datasets]
        yield Loop(run, populations, step, learners, logger, evaluator, view, requested, background, hooks, rewards)


def _tell(view: Progress, run: Run, step: int, evaluator: Evaluator, datasets: Sequence[AnyDataset]) -> None:
    """What is worth knowing before it begins, or goes on from a step."""
    plan, count = run.plan, len(run.plan.members)
    phases = ", ".join(f"{phase.name} {phase.steps:,}" for phase in plan.phases)
    whole = f"{run.total_steps:,} steps" + (f" ({phases})" if len(plan.phases) > 1 else "")
    who = str(run.members[0]) if count == 1 else f"{count} members at once"
    view.say(f"{run.path}: {who}, {whole}, on {device()}" + (f"; continues from step {step:,}" if step else ""))
    if plan.eval_every and evaluator.missing():
        names = ", ".join(problem.name for problem in evaluator.missing())
        view.say(f"No environment is known for {names}: policies are trained but not played.")
    for dataset in () if step else datasets:
        for line in account(dataset) if isinstance(dataset, Dataset) else ():
            view.say(f"{dataset.name}: {line}")


class Loop:
    """State of the host loop between chunks."""

    def __init__(
        self, run: Run, populations: list[Population], step: int, learners: list[Learner], logger: RunLogger,
        evaluator: Evaluator, view: Progress, requested: Callable[[], Stop | None], background: Background,
        hooks: Hooks, rewards: Sequence[float],
    ) -> None:  # fmt: skip
        """``rewards``: max |r| of each dataset."""
        self.run, self.populations, self.step, self.learners = run, populations, step, learners
        self.logger, self.evaluator, self.view, self.requested = logger, evaluator, view, requested
        self.background, self.hooks = background, hooks
        self.sums: list[Sums] | None = run.unlogged(step)
        """What is not yet in a row of metrics; None where a row has just been written."""
        order = [index for indices in run.plan.groups() for index in indices]
        self.ids = [run.plan.ids[index] for index in order]
        alive = np.concatenate([np.asarray(learner.alive) for learner in learners])
        self.changes = Changes([run.plan.members[index] for index in order], self.ids, alive, run.events())
        members = [run.plan.members[index] for index in order]
        self.guard = Guard(
            [member.algorithm for member in members],
            [rewards[member.dataset] for member in members],
            [run.plan.problems[member.dataset].action_size for member in members],
        )
        # the clock goes on where the run stopped
        spent = max((float(row["seconds"]) for row in run.metrics()), default=0.0)
        self.began = time.perf_counter() - spent

    def go(self) -> None:
        """Train to the end, or until a hook asks to stop; a request from outside is an error that says how to go on."""
        plan, total = self.run.plan, self.run.total_steps
        pace = Pace(self.populations[0].stride)
        compiled = -1
        self.view.update(self.step, plan.phases[locate(plan.phases, self.step)[0]].name)
        while self.step < total:
            index, end = locate(plan.phases, self.step)
            phase, before = plan.phases[index], self.step
            start = end - phase.steps
            boundary = _boundary(plan, start, before, end)
            if self.sums is None:
                self.sums = [population.empty_sums(phase) for population in self.populations]
            while self.step < boundary and not self.requested():
                steps = pace.next(boundary - self.step)
                for program, arguments, keep in calls(self.populations, self.learners, self.sums, phase, steps):
                    keep(program(*arguments))
                jax.block_until_ready(self.learners)
                pace.made(steps)
                self.step += steps
                self.view.update(self.step, phase.name)
                if index != compiled:  # the phase's first chunk
                    compiled = index
                    give_back()
            if self._at_boundary(phase, start, end, before):
                break
        self.background.wait()
        if self.step < total:
            self.view.say(
                f"stopped at step {self.step:,} of {total:,}: {self.hooks.asked}; sapp resume {self.run.path} goes on"
            )
        self.hooks.end()

    def _at_boundary(self, phase: Phase, start: int, end: int, before: int) -> bool:
        """Whatever is due: a row, an evaluation, a checkpoint; ``before`` is the step of the last time.

        Returns whether a hook has asked to stop and all is saved.
        """
        plan, step, total = self.run.plan, self.step, self.run.total_steps
        assert self.sums is not None
        if step > before and (step == end or _due(plan.log_every, start, step)):
            self._log(phase, self.sums)
            self.sums = None
        if not self.changes.alive.any():
            self.background.do(self._saving())
            self.background.wait()
            raise SappError(
                f"every member diverged; the last states are in {self.run.path}. "
                "Try a smaller learning rate or a larger alpha"
            )
        if step > before and self._evaluation_due(phase, start, last=step == total):
            self._play()
        stop = self.requested() if step < total else None
        saved = stop or self.hooks.asked or step == end or _due(plan.checkpoint_every, start, step)
        if saved:
            # After the evaluation that was due here: a resume from this checkpoint would not catch up on it.
            self.background.do(self._saving())
        if stop:
            self.background.wait()
            raise _ERRORS[stop](
                f"{stop.value} at step {step:,} of {total:,}; saved. Continue with: sapp resume {self.run.path}"
            )
        return bool(saved) and self.hooks.asked is not None

    def _log(self, phase: Phase, sums: Sequence[Sums]) -> None:
        """A row of metrics for each member that learned, and what has happened to any."""
        rows: list[dict[str, Any]] = []
        alive, unreliable, fallback = [], [], []
        seconds = round(time.perf_counter() - self.began, 3)
        findings: list[EventKind | None] = [None] * len(self.ids)
        numbers = iter(range(len(self.ids)))
        for learner, sum_ in zip(self.learners, sums, strict=True):
            steps, updates = np.asarray(sum_.steps), int(learner.updates)
            counts = np.maximum(steps, 1.0)
            values = {name: np.asarray(value) / counts for name, value in sum_.values.items()}
            none = np.zeros(len(counts))
            alive.append(np.asarray(learner.alive))
            unreliable.append(values.get("ratio/unreliable", none) > 0.5)
            fallback.append((values.get("weights/min", none) == 1.0) & (values.get("weights/max", none) == 1.0))
            head = {"step": self.step, "phase": phase.name, "updates": updates, "seconds": seconds}
            for position in range(len(steps)):
                number = next(numbers)
                if steps[position]:
                    own = {name: float(value[position]) for name, value in values.items()}
                    if (limit := self.guard.limit(number, own)) is not None:
                        own[LIMIT] = limit
                    findings[number] = self.guard.finding(number, own) if alive[-1][position] else None
                    rows.append(head | self.ids[number].row() | own)
        self.logger.metrics(rows)
        events = self.changes.found(self.step, findings)
        stopped = np.asarray([kind is EventKind.VALUE_STOPPED for kind in findings])
        self._stop(stopped)
        lives = np.concatenate(alive) & ~stopped
        events += self.changes.since(self.step, lives, np.concatenate(unreliable), np.concatenate(fallback))
        self.logger.events(events)
        for event in events:
            self.view.say(f"{event.member}: {event.kind.sentence} (step {event.step:,})")
        self.hooks.tell("on_log", self.step, self.learners, rows)

    def _stop(self, members: np.ndarray) -> None:
        """Let members learn no further."""
        if not members.any():
            return
        first = 0
        for number, learner in enumerate(self.learners):
            count = len(learner.alive)
            stops = members[first : first + count] & np.asarray(learner.alive)
            first += count
            alive = np.asarray(learner.alive) & ~stops
            stopped_at = np.where(stops, int(learner.updates), np.asarray(learner.stopped_at)).astype(np.int32)
            parts = jax.device_put((alive, stopped_at), (learner.alive.sharding, learner.stopped_at.sharding))
            self.learners[number] = eqx.tree_at(lambda x: (x.alive, x.stopped_at), learner, parts)

    def _evaluation_due(self, phase: Phase, start: int, last: bool) -> bool:
        every = self.run.plan.eval_every
        playing = phase.base and phase.name != PREPARE
        return bool(every and playing and (last or _due(every, start, self.step)))

    def _play(self) -> None:
        """Evaluate the members as they are now."""
        plan, step, updates = self.run.plan, self.step, int(self.learners[0].updates)
        policies = [each.policies(learner) for each, learner in zip(self.populations, self.learners, strict=True)]
        # Convolutions are slow on the CPU: policies of frames stay where they are, and training waits for them.
        apart = self.background.threaded and all(problem.frame is None for problem in plan.problems)
        if apart:
            policies = on_host(policies)
        learners = self._kept() if self.hooks else []

        def play() -> None:
            found = self.evaluator.evaluate(policies, plan.eval_episodes, plan.eval_seed)
            rows = [item.row(step, updates, plan.ids[item.member]) for item in found]
            self.logger.evaluations(rows)
            self.view.evaluated(step, rows)
            self.hooks.tell("on_evaluate", step, learners, rows)

        if apart:
            self.background.do(play)
        else:
            play()

    def _saving(self) -> Callable[[], None]:
        """The checkpoint of the members as they are now."""
        step, sums, learners = self.step, jax.device_get(self.sums), self._kept()

        def save() -> None:
            self.run.save(step, learners, sums)
            self.hooks.tell("on_checkpoint", step, learners)

        return save

    def _kept(self) -> list[Learner]:
        """The members as they are now; where training goes on meanwhile, a copy."""
        return jax.device_get(self.learners) if self.background.threaded else list(self.learners)


class Pace:
    """How many steps to ask of the device at once."""

    def __init__(self, stride: int) -> None:
        self._stride = self._chunk = stride
        self._began = 0.0

    def next(self, most: int) -> int:
        """Steps of the chunk that begins now."""
        steps = min(self._chunk, most)
        if steps > self._stride:  # what does not fill a stride is a program of its own, and a slower one
            steps -= steps % self._stride
        self._began = time.perf_counter()
        return steps

    def made(self, steps: int) -> None:
        """The chunk has ended."""
        if steps == self._chunk:
            growth = CHUNK_SECONDS / max(time.perf_counter() - self._began, 1e-6)
            self._chunk = max(1, int(self._chunk * min(4.0, growth)) // self._stride) * self._stride


def _due(every: int, start: int, step: int) -> bool:
    """Whether something done every so many steps of a phase is due at this one."""
    return bool(every) and (step - start) % every == 0


def _boundary(plan: Plan, start: int, step: int, end: int) -> int:
    """The next step at which a row, an evaluation or a checkpoint is due (by the phase's own count), or its end."""
    intervals = [every for every in (plan.log_every, plan.eval_every, plan.checkpoint_every) if every]
    return min(end, *(start + ((step - start) // every + 1) * every for every in intervals))
