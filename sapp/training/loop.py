"""The training loop on the host: chunks on the device, and between them logs, evaluations and checkpoints."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import jax
import numpy as np

from sapp.algorithms import Algorithm
from sapp.algorithms.registry import preset
from sapp.core.errors import Interrupted, SappError
from sapp.core.extras import require
from sapp.core.files import remove_leftovers
from sapp.core.precision import resolved
from sapp.core.spec import Spec
from sapp.data import Dataset, load, save_npz
from sapp.data.check import account
from sapp.data.frames import FrameDataset
from sapp.data.loaders.frame_files import save_frames
from sapp.envs.data_check import compare
from sapp.runs import checkpoint
from sapp.runs.metric_tables import Table, read
from sapp.runs.phases import PREPARE, Phase, locate, plain_protocol, prepared, sa_protocol, total_steps
from sapp.runs.progress import Progress, Silent, Terminal
from sapp.runs.run import (
    CHECKPOINTS,
    CONFIG,
    DATA,
    EVALUATIONS,
    EVENTS,
    METRICS,
    Plan,
    Problem,
    Run,
    save_checkpoint,
)
from sapp.runs.run import populations as populations_of
from sapp.training import background as beside
from sapp.training.device_data import DeviceData, spec_of
from sapp.training.device_frames import DeviceFrames, frame_spec
from sapp.training.online_evaluation import COLUMNS as EVALUATION_COLUMNS
from sapp.training.online_evaluation import Evaluator
from sapp.training.program import STRIDE, Data, Learner, Member, Population, Sums, blank_data, run_together
from sapp.training.streaming import HostFrames

AlgorithmLike = Algorithm | str | Callable[[str], Algorithm | None]
AnyDataset = Dataset | FrameDataset
LOCK = ".lock"
"""The file in a run folder that whoever trains the run holds."""
FRAME_SHARE = 0.7
"""Frames that take more than this share of the device's memory are streamed instead of resident."""
CHUNK_SECONDS = 1.0
"""Chunks are sized to about this long, so that Ctrl-C and the progress bar answer; the bits do not depend on it."""


def train(
    algorithm: AlgorithmLike | Mapping[str, AlgorithmLike],
    data: AnyDataset | str | Path | Sequence[AnyDataset | str | Path],
    *,
    seeds: int | Sequence[int] = 1,
    steps: int = 1_000_000,
    phases: Sequence[Phase] | None = None,
    out: str | Path | None = None,
    start_from: str | Path | Run | None = None,
    only: Callable[[str], bool] | None = None,
    eval_every: int | None = None,
    eval_episodes: int = 10,
    eval_seed: int = 0,
    eval_max_steps: int | None = None,
    log_every: int = 1_000,
    checkpoint_every: int | None = None,
    keep: int = 2,
    copy_data: bool = True,
    stream: bool | None = None,
    progress: bool = True,
    tensorboard: bool = False,
) -> Run:
    """Train algorithms × datasets × seeds as one population and return the run.

    Args:
        algorithm: one algorithm, or several by name; the name of a preset ("sa-cql") stands for it. Where a function is
            given it is called with the dataset's name (that is how presets choose b0 and b1) and may answer None: not
            on this dataset.
        data: datasets of vectors or of frames, or what ``sapp.load`` takes.
        seeds: how many (0, 1, …) or which.
        steps: gradient steps of the last phase.
        phases: the protocol; by default one phase, or the paper's three (20k + 100k + steps) if any weights learn;
            before them, if an algorithm prepares itself (BRAC and Fisher-BRC clone the behaviour), a phase for that.
        out: the run folder; by default ``runs/<algorithm>-<dataset>-<time>``. Training that fails before its first
            checkpoint leaves none behind.
        start_from: a run whose members, by dataset and seed, are where these members start: parameters, optimisers and
            counters. So shared phases are trained once and forked. Weights that learn may be added to a run whose
            weights did not, or left out: SA-CQL can go on from CQL.
        only: which members to train, by name (``algorithm/dataset/seed``); default all.
        eval_every: evaluate every so many steps (default: a twentieth of ``steps``; 0 switches evaluation off).
        eval_episodes: episodes a member and evaluation.
        eval_seed: seed of the evaluation's start states.
        eval_max_steps: where observations are frames, cut episodes of evaluation here (default: the game's own limit).
        log_every: steps averaged in a row of metrics.csv.
        checkpoint_every: steps between checkpoints (default: as ``eval_every``).
        keep: how many checkpoints to keep.
        copy_data: keep a copy of datasets made in memory in the run folder; without it, resuming needs ``data=``.
        stream: bring batches of frames from the host instead of keeping all frames on the device, with the same result
            (default: only where they would fill it).
        progress: show a progress bar.
        tensorboard: also write TensorBoard events (needs the ``tensorboard`` extra).
    """
    _check(1, steps=steps, eval_episodes=eval_episodes, log_every=log_every, keep=keep)
    if eval_max_steps is not None:
        _check(1, eval_max_steps=eval_max_steps)
    _check(0, eval_every=eval_every or 0, checkpoint_every=checkpoint_every or 0, eval_seed=eval_seed)
    named = dict(algorithm) if isinstance(algorithm, Mapping) else {_name(algorithm): algorithm}
    sources = [data] if isinstance(data, Dataset | FrameDataset | str | Path) else list(data)
    datasets: list[AnyDataset] = [load(source) for source in sources]
    if not named or not datasets:
        raise SappError("nothing to train: give at least one algorithm and one dataset")
    numbers = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    if not numbers or len(set(numbers)) != len(numbers) or min(numbers) < 0:
        raise SappError(f"seeds {seeds!r}: give a count of at least 1, or distinct whole numbers from 0 up")
    members = tuple(
        Member(f"{name}/{dataset.name}/{seed}", resolved, index, seed)
        for name, chosen in named.items()
        for index, dataset in enumerate(datasets)
        if (resolved := _resolve(chosen, dataset.name)) is not None
        for seed in numbers
        if only is None or only(f"{name}/{dataset.name}/{seed}")
    )
    if not members:
        raise SappError("nothing to train: every algorithm declined every dataset")
    if len({member.name for member in members}) != len(members):
        raise SappError("two datasets have the same name: rename one (Dataset.name) so that members can be told apart")
    for member in members:
        _check_batch_size(member)
        _check_actions(member, datasets[member.dataset])
    if phases is None:
        learns = any(member.algorithm.weights.learns for member in members)
        phases = prepared(_preparation(members), sa_protocol(steps) if learns else plain_protocol(steps))
    for member in members:
        _check_network(member, datasets[member.dataset])
    if total_steps(phases) < 1:
        raise SappError("the phases have no steps: ask for at least one")
    evaluations = _twentieth(phases[-1].steps) if eval_every is None else eval_every
    plan = Plan(
        members=members,
        problems=tuple(
            Problem.of(dataset, None if isinstance(source, Dataset | FrameDataset) else _source(source))
            for source, dataset in zip(sources, datasets, strict=True)
        ),
        phases=tuple(phases),
        log_every=log_every,
        checkpoint_every=checkpoint_every or evaluations or _twentieth(phases[-1].steps),
        eval_every=evaluations,
        eval_episodes=eval_episodes,
        eval_seed=eval_seed,
        keep=keep,
        eval_max_steps=eval_max_steps,
    )
    source = None if start_from is None else start_from if isinstance(start_from, Run) else Run(start_from)
    forked = None if source is None else _fork(plan, source, [_spec(dataset) for dataset in datasets])
    if plan.eval_every:
        evaluator = Evaluator(plan)
        evaluator.check(advice="; or evaluate never (eval_every 0)")
        _compare(evaluator, plan.problems, datasets)
    if tensorboard:
        _writer()
    folder = Path(out) if out is not None else new_folder(_stem(named, datasets))
    with whole_or_none(folder):
        Run.make_folder(folder)
        if forked is not None:
            save_checkpoint(folder, 0, forked)
        for problem, dataset in zip(plan.problems, datasets, strict=True):
            if copy_data and problem.source is None:  # made in memory: without a copy it could not be resumed by itself
                _save_copy(dataset, _copy(folder, problem))
        return _train(Run.create(folder, plan), datasets, progress, tensorboard, stream)


def resume(
    path: str | Path,
    *,
    data: Sequence[AnyDataset] | None = None,
    stream: bool | None = None,
    progress: bool = True,
    tensorboard: bool = False,
) -> Run:
    """Continue a run from its newest checkpoint, or from step 0 if it has none; the bits are those of one straight run.

    ``data`` replaces the recorded sources (a file that moved, say); it must hold the same transitions. ``stream`` is as
    ``train`` has it, and need not be as it was.
    """
    run = Run(path)
    if data is not None and len(data) != len(run.plan.problems):
        raise SappError(f"{path}: the run has {len(run.plan.problems)} datasets, {len(data)} were given")
    datasets = list(data) if data is not None else datasets_of(run)
    for problem, dataset in zip(run.plan.problems, datasets, strict=True):
        if dataset.fingerprint != problem.fingerprint:
            raise SappError(
                f"{path}: dataset {problem.name!r} has changed since the run began; restore it or train anew"
            )
    return _train(run, datasets, progress, tensorboard, stream)


def _train(run: Run, datasets: Sequence[AnyDataset], progress: bool, tensorboard: bool, stream: bool | None) -> Run:
    plan = run.plan
    total = total_steps(plan.phases)
    if run.step >= total:  # nothing to do, so nothing to lock: several processes may build on a finished run
        run.restore()  # says if its checkpoint is damaged
        return run
    with locked(run.path), _Tracks(run, tensorboard) as tracks, _interruptible() as stopping:
        for folder in (run.path, run.path / CHECKPOINTS, run.path / DATA):
            remove_leftovers(folder)
        step, learners = run.restore()
        tracks.rewind(step)
        if step >= total:
            return run
        data, specs = _upload(plan, datasets, stream)
        populations = populations_of(plan, data, specs)
        closing = contextlib.ExitStack()
        for population in populations:
            closing.callback(population.close)
        if not learners:
            learners = [population.init() for population in populations]
        evaluator = Evaluator(plan)
        view: Progress = Terminal(total, len(plan.members)) if progress else Silent()
        with closing, view, beside.Beside(beside.worthwhile()) as aside:
            if progress and plan.eval_every and evaluator.missing():
                names = ", ".join(problem.name for problem in evaluator.missing())
                view.say(f"No environment is known for {names}: policies are trained but not played.")
            if not step:
                for dataset in datasets:
                    for line in account(dataset) if isinstance(dataset, Dataset) else ():
                        view.say(f"{dataset.name}: {line}")
            loop = _Loop(run, populations, learners, tracks, evaluator, view, stopping, aside)
            loop.go(step)
    return run


class _Loop:
    """State of the host loop between chunks."""

    def __init__(
        self, run: Run, populations: list[Population], learners: list[Learner], tracks: _Tracks, evaluator: Evaluator,
        view: Progress, stopping: Callable[[], bool], aside: beside.Beside,
    ) -> None:  # fmt: skip
        self.run, self.populations, self.learners = run, populations, learners
        self.tracks, self.evaluator, self.view, self.stopping = tracks, evaluator, view, stopping
        self.aside = aside
        self.sums: list[Sums] | None = None
        """What is not yet in a row of metrics; None where a row has just been written."""
        self.alive = np.concatenate([np.asarray(learner.alive) for learner in learners])
        members = [member for population in populations for member in population.members]
        self.names = [member.name for member in members]
        self.reports_health = np.array([member.algorithm.weights.reports_health for member in members])
        said = {row["member"]: row["event"] for row in read(run.path / EVENTS) if "ratio estimator" in row["event"]}
        self.sick = np.array(["sick" in said.get(name, "") for name in self.names])
        # the clock goes on where the run stopped
        spent = max((float(row["seconds"]) for row in run.metrics()), default=0.0)
        self.began = time.perf_counter() - spent

    def go(self, step: int) -> None:
        plan = self.run.plan
        total = total_steps(plan.phases)
        stride = self.populations[0].stride
        chunk = stride
        self.sums = self.run.unlogged(step)
        self.view.update(step, plan.phases[locate(plan.phases, step)[0]].name)
        while step < total:
            index, end = locate(plan.phases, step)
            phase = plan.phases[index]
            start, before = end - phase.steps, step
            if self.sums is None:
                self.sums = [p.empty_sums(x, phase) for p, x in zip(self.populations, self.learners, strict=True)]
            boundary = _boundary(plan, start, step, end)
            while step < boundary and not self.stopping():
                steps = min(chunk, boundary - step)
                if steps > stride:  # what does not fill a stride is a program of its own, and a slower one
                    steps -= steps % stride
                began = time.perf_counter()
                self.learners, self.sums = run_together(self.populations, self.learners, self.sums, phase, steps)
                jax.block_until_ready(self.learners)
                seconds = time.perf_counter() - began
                if steps == chunk:
                    growth = CHUNK_SECONDS / max(seconds, 1e-6)
                    chunk = max(1, int(chunk * min(4.0, growth)) // stride) * stride
                step += steps
                self.view.update(step, phase.name)
            if step > before and (step == end or _due(plan.log_every, start, step)):
                self._log(step, phase, self.sums)
                self.sums = None
            if not self.alive.any():
                self.aside.do(self._saving(step))
                self.aside.wait()
                raise SappError(
                    f"every member diverged; the last states are in {self.run.path}. "
                    "Try a smaller learning rate or a larger alpha"
                )
            if step > before and self._evaluation_due(step, phase, start, last=step == total):
                self._play(step)
            stopping = step < total and self.stopping()
            if stopping or step == end or _due(plan.checkpoint_every, start, step):
                # After the evaluation that was due here: a resume from this checkpoint would not catch up on it.
                self.aside.do(self._saving(step))
            if stopping:
                self.aside.wait()
                raise Interrupted(
                    f"interrupted at step {step:,} of {total:,}; saved. Continue with: sapp resume {self.run.path}"
                )

    def _log(self, step: int, phase: Phase, sums: Sequence[Sums]) -> None:
        rows, alive, sick, fallen = [], [], [], []
        seconds = round(time.perf_counter() - self.began, 3)
        for population, learner, sum_ in zip(self.populations, self.learners, sums, strict=True):
            steps, updates = np.asarray(sum_.steps), int(learner.updates)
            counts = np.maximum(steps, 1.0)
            values = {name: np.asarray(value) / counts for name, value in sum_.values.items()}
            alive.append(np.asarray(learner.alive))
            none = np.zeros(len(counts))
            sick.append(values.get("ratio/unreliable", none) > 0.5)
            fallen.append((values.get("weights/min", none) == 1.0) & (values.get("weights/max", none) == 1.0))
            for position, member in enumerate(population.members):
                if steps[position]:
                    rows.append(
                        {"step": step, "phase": phase.name, "updates": updates, "seconds": seconds}
                        | {"member": member.name}
                        | {name: float(value[position]) for name, value in values.items()}
                    )
        self.tracks.metrics(rows)
        reported = np.concatenate(sick) & self.reports_health
        events = self._changes(np.concatenate(alive), reported, np.concatenate(fallen))
        self.tracks.events([{"step": step, "member": name, "event": event} for name, event in events])
        for name, event in events:
            self.view.say(f"{name}: {event} (step {step:,})")

    def _changes(self, alive: np.ndarray, sick: np.ndarray, fallen: np.ndarray) -> list[tuple[str, str]]:
        events = []
        for i, name in enumerate(self.names):
            if self.alive[i] and not alive[i]:
                events.append((name, "diverged: stopped at its last finite state, the others go on"))
            if sick[i] and not self.sick[i]:
                what = ": weights are 1 until it is healthy again" if fallen[i] else ""
                events.append((name, f"ratio estimator sick{what}"))
            if self.sick[i] and not sick[i]:
                events.append((name, "ratio estimator healthy again"))
        self.alive, self.sick = alive, sick
        return events

    def _evaluation_due(self, step: int, phase: Phase, start: int, last: bool) -> bool:
        every = self.run.plan.eval_every
        playing = phase.base and phase.name != PREPARE
        return bool(every and playing and (last or _due(every, start, step)))

    def _play(self, step: int) -> None:
        """Evaluate the members as they are now."""
        plan, updates = self.run.plan, int(self.learners[0].updates)
        actors = [
            population.actors(learner) for population, learner in zip(self.populations, self.learners, strict=True)
        ]
        # Convolutions are slow on the processor: policies of frames stay where they are, and training waits for them.
        apart = self.aside.threaded and all(problem.frame is None for problem in plan.problems)
        if apart:
            actors = beside.on_host(actors)

        def play() -> None:
            found = self.evaluator.evaluate(self.populations, actors, plan.eval_episodes, plan.eval_seed)
            rows = [item.row(step, updates, plan.members[item.member].name) for item in found]
            self.tracks.evaluations(rows)
            self.view.evaluated(step, rows)

        if apart:
            self.aside.do(play)
        else:
            play()

    def _saving(self, step: int) -> Callable[[], None]:
        """The checkpoint of the members as they are now; where training goes on meanwhile, from a copy."""
        learners = jax.device_get(self.learners) if self.aside.threaded else list(self.learners)
        sums = jax.device_get(self.sums)
        return lambda: self.run.save(step, learners, sums)


def _due(every: int, start: int, step: int) -> bool:
    """Whether something done every so many steps of a phase is due at this one."""
    return bool(every) and (step - start) % every == 0


def _boundary(plan: Plan, start: int, step: int, end: int) -> int:
    """The next step at which a row, an evaluation or a checkpoint is due (by the phase's own count), or its end."""
    intervals = [every for every in (plan.log_every, plan.eval_every, plan.checkpoint_every) if every]
    return min(end, *(start + ((step - start) // every + 1) * every for every in intervals))


def _twentieth(steps: int) -> int:
    """Steps between evaluations where nobody says: about a twentieth, in whole strides where it is more than one."""
    every = max(1, steps // 20)
    return every if every < STRIDE else -(-every // STRIDE) * STRIDE


class _Tracks:
    """The run's three tables, and TensorBoard if asked."""

    def __init__(self, run: Run, tensorboard: bool) -> None:
        names = ("step", "phase", "updates", "seconds", "member", *_metric_names(run))
        self._metrics = Table(run.path / METRICS, names)
        self._evaluations = Table(run.path / EVALUATIONS, EVALUATION_COLUMNS)
        self._events = Table(run.path / EVENTS, ("step", "member", "event"))
        self._board = _board(run.path) if tensorboard else None

    def __enter__(self) -> _Tracks:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._board is not None:
            self._board.close()

    def rewind(self, step: int) -> None:
        for table in (self._metrics, self._evaluations, self._events):
            table.rewind(step)

    def metrics(self, rows: list[dict[str, Any]]) -> None:
        self._metrics.append(rows)
        self._scalars(rows, ("step", "phase", "updates", "seconds", "member"))

    def evaluations(self, rows: list[dict[str, Any]]) -> None:
        self._evaluations.append(rows)
        self._scalars(rows, ("step", "updates", "member", "returns", "episodes"))

    def events(self, rows: list[dict[str, Any]]) -> None:
        self._events.append(rows)

    def _scalars(self, rows: list[dict[str, Any]], skip: tuple[str, ...]) -> None:
        if self._board is not None:
            for row in rows:
                for name, value in row.items():
                    if name not in skip:
                        self._board.add_scalar(f"{row['member']}/{name}", value, row["step"])


def _metric_names(run: Run) -> list[str]:
    """Names of everything any phase of any group logs, found by tracing, not by running."""
    names: dict[str, None] = {}
    plan = run.plan
    for indices in plan.groups():
        problem = plan.problems[plan.members[indices[0]].dataset]
        data = blank_data(problem.empty_spec())
        members = [Member(m.name, m.algorithm, 0, m.seed) for m in (plan.members[i] for i in indices[:1])]
        population = Population(members, data, [problem.empty_spec()])
        learner = jax.eval_shape(population.init)
        for phase in plan.phases:
            names |= dict.fromkeys(population.empty_sums(learner, phase).values)
    return list(names)


def _writer() -> Any:
    return require("tensorboardX", "writing TensorBoard events").SummaryWriter


def _board(path: Path) -> Any:
    return _writer()(str(path / "tensorboard"))


def _upload(
    plan: Plan, datasets: Sequence[AnyDataset], stream: bool | None
) -> tuple[list[Data | HostFrames], list[list[Spec]]]:
    """Each group's datasets on the device; groups hold only what their members use, and share frames they both use."""
    data: list[Data | HostFrames] = []
    specs = []
    uploaded: dict[tuple[int, ...], Data | HostFrames] = {}
    for indices in plan.groups():
        used = sorted({plan.members[index].dataset for index in indices})
        blank = [problem.empty_spec() for problem in plan.problems]
        for number in used:
            blank[number] = _spec(datasets[number])
        specs.append(blank)
        key = tuple(used)
        if key not in uploaded:
            uploaded[key] = _on_device([datasets[number] for number in used], used, len(datasets), stream)
        data.append(uploaded[key])
    return data, specs


def _spec(dataset: AnyDataset) -> Spec:
    return frame_spec(dataset) if isinstance(dataset, FrameDataset) else spec_of(dataset)


def _on_device(
    chosen: Sequence[AnyDataset], numbers: Sequence[int], total: int, stream: bool | None
) -> Data | HostFrames:
    frames = [dataset for dataset in chosen if isinstance(dataset, FrameDataset)]
    if not frames:
        return DeviceData.of([dataset for dataset in chosen if isinstance(dataset, Dataset)], numbers, total)
    if stream if stream is not None else sum(dataset.frames.nbytes for dataset in frames) > _room():
        return HostFrames(frames, numbers, total)
    return DeviceFrames.of(frames, numbers, total)


def _room() -> float:
    """Bytes that frames may take on the device."""
    limit = (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit")
    if limit is None:  # the processor's: what the machine has
        limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return FRAME_SHARE * float(limit)


def _save_copy(dataset: AnyDataset, path: Path) -> None:
    if isinstance(dataset, FrameDataset):
        shutil.rmtree(path, ignore_errors=True)  # of a start that was killed before it was a run
        save_frames(dataset, path)
    else:
        save_npz(dataset, path)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time may write a run; the lock dies with its process."""
    try:
        handle = open(folder / LOCK, "w")  # noqa: SIM115 - held open while the run is trained
    except OSError as error:
        raise SappError(f"{folder}: cannot write there ({error.strerror}); make the folder writable") from None
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SappError(f"{folder}: another process is training this run; wait for it or stop it") from None
        yield


@contextlib.contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C or SIGTERM into a request to stop at the next chunk; the second one stops at once."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def handler(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    previous = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked.is_set
    finally:
        for number, old in previous.items():
            signal.signal(number, signal.SIG_DFL if old is None else old)  # None: not set by Python


def _fork(plan: Plan, source: Run, specs: Sequence[Spec]) -> list[Learner]:
    """Learners of a plan's groups, taken from another run's members of the same data, seed and structure.

    Estimators of state weights begin afresh where that run has none, as they would have begun there: going on so from a
    phase in which they do not learn gives the bits of having had them all along.
    """
    _, learners = source.restore()
    if not learners:
        raise SappError(f"{source.path}: has no checkpoint to start from")
    places = {
        (source.plan.problems[member.dataset].fingerprint, member.seed): (learner, position, member.algorithm.weights)
        for learner, indices in reversed(list(zip(learners, source.plan.groups(), strict=True)))
        for position, member in reversed(list(enumerate(source.plan.members[index] for index in indices)))
    }
    forked = []
    for population in populations_of(plan, specs=[specs] * len(plan.groups())):
        members = population.members
        keys = [(plan.problems[member.dataset].fingerprint, member.seed) for member in members]
        for key, member in zip(keys, members, strict=True):
            if key not in places:
                raise SappError(f"{source.path}: has no member with the data and seed of {member.name}")
        chosen = [places[key] for key in keys]
        if len({id(learner) for learner, *_ in chosen}) != 1:
            raise SappError(f"{source.path}: members of one group there are of several groups here; train them apart")
        learner, _, weights = chosen[0]
        rows = np.asarray([position for _, position, _ in chosen])
        base, ratio, alive, stopped_at = jax.tree.map(
            lambda leaf, rows=rows: leaf[rows], (learner.base, learner.ratio, learner.alive, learner.stopped_at)
        )
        if population.has_ratio != weights.learns:
            ratio = population.init().ratio
        found = Learner(base, ratio, alive, stopped_at, learner.updates, learner.ratio_updates)
        if checkpoint.shapes(found) != checkpoint.shapes(jax.eval_shape(population.init)):
            raise SappError(f"{source.path}: its networks differ from these; use the same hidden sizes and weights")
        forked.append(found)
    return forked


def _resolve(chosen: AlgorithmLike, dataset: str) -> Algorithm | None:
    if isinstance(chosen, str):
        return resolved(preset(chosen, dataset))
    algorithm = chosen(dataset) if callable(chosen) and not isinstance(chosen, Algorithm | type) else chosen
    if algorithm is not None and not isinstance(algorithm, Algorithm):
        name = getattr(algorithm, "__name__", repr(algorithm))
        raise SappError(f"{name} is not an algorithm: give sapp.CQL(...), the name of a preset or one of your own")
    return resolved(algorithm)


def _preparation(members: Sequence[Member]) -> int:
    """Updates before the algorithm proper, which must be as many for all: the others would learn meanwhile."""
    longest = max(members, key=lambda member: member.algorithm.preparation)
    shortest = min(members, key=lambda member: member.algorithm.preparation)
    most, least = longest.algorithm.preparation, shortest.algorithm.preparation
    if most != least:
        raise SappError(
            f"{longest.name} prepares itself for {most:,} updates and {shortest.name} for {least:,}, and the members "
            "of a run take equal steps: train them in runs of their own, or set equal behaviour_steps"
        )
    return most


def _check_batch_size(member: Member) -> None:
    """Refuse an algorithm of one's own whose batches are empty."""
    size = member.algorithm.batch_size
    if not isinstance(size, int) or size < 1:
        raise SappError(
            f"{type(member.algorithm).__name__}: batch_size is {size!r}; it must be a whole number of 1 or more"
        )


def _check_actions(member: Member, dataset: AnyDataset) -> None:
    """Refuse an algorithm for vectors on data of choices, and the other way round."""
    wanted = bool(getattr(member.algorithm, "discrete_actions", False))
    if wanted != dataset.discrete:
        kind, other = ("discrete", "continuous") if dataset.discrete else ("continuous", "discrete")
        use = "discrete-cql" if dataset.discrete else "cql, or give the number of actions (num_actions)"
        name = type(member.algorithm).__name__
        raise SappError(f"{dataset.name}: its actions are {kind}, {name} takes {other} ones; use {use}")


def _check_network(member: Member, dataset: AnyDataset) -> None:
    """Refuse a network for vectors on frames, or one for larger frames, before a folder is made for the run."""
    if isinstance(dataset, FrameDataset):
        jax.eval_shape(lambda key: member.algorithm.init(key, frame_spec(dataset)), jax.random.PRNGKey(0))


def _name(algorithm: AlgorithmLike) -> str:
    if isinstance(algorithm, str):
        return algorithm
    return type(algorithm).__name__ if isinstance(algorithm, Algorithm) else getattr(algorithm, "__name__", "algorithm")


def _source(source: Any) -> str:
    path = Path(str(source))
    return str(path.resolve()) if path.exists() else str(source)


def _copy(folder: Path, problem: Problem) -> Path:
    """A file, or a folder of frames."""
    return folder / DATA / f"{problem.fingerprint[:16]}{'.npz' if problem.frame is None else ''}"


def datasets_of(run: Run) -> list[AnyDataset]:
    """What a run was trained on, loaded from where it was."""
    return [_reload(run, problem) for problem in run.plan.problems]


def _reload(run: Run, problem: Problem) -> AnyDataset:
    try:
        return load(problem.source if problem.source is not None else _copy(run.path, problem))
    except SappError as error:
        raise SappError(f"{error}; if it moved, say where it is: sapp resume {run.path} --data PLACE") from None


def _compare(evaluator: Evaluator, problems: Sequence[Problem], datasets: Sequence[AnyDataset]) -> None:
    """Say what does not fit between data and environments before a step is made; refuse what cannot be right."""
    for problem, dataset in zip(problems, datasets, strict=True):
        if problem.environment is not None and isinstance(dataset, Dataset):
            for line in compare(dataset, evaluator.environment(problem)):
                print(f"{dataset.name}: {line}", file=sys.stderr)


def _stem(named: Mapping[str, Any], datasets: Sequence[AnyDataset]) -> str:
    algorithms = "+".join(named) if len(named) < 4 else f"{len(named)}-algorithms"
    return f"{algorithms}-{datasets[0].name if len(datasets) == 1 else f'{len(datasets)}-datasets'}".replace("/", "-")


def new_folder(stem: str) -> Path:
    """Make ``runs/<stem>-<time>``, or with -2, -3, … after it where another run began in the same second."""
    first = Path("runs") / f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    for number in itertools.count(1):
        folder = first if number == 1 else first.with_name(f"{first.name}-{number}")
        try:
            folder.mkdir(parents=True)  # made, not looked for: another process may be choosing, too
        except FileExistsError:
            continue
        except OSError as error:
            raise SappError(f"{folder}: cannot make the run folder ({error.strerror}); choose another --out") from None
        return folder
    raise AssertionError("counting has no end")


def _check(least: int, **numbers: int) -> None:
    for name, value in numbers.items():
        if value < least:
            raise SappError(f"{name} is {value}: it must be at least {least}")


@contextlib.contextmanager
def whole_or_none(folder: Path) -> Iterator[None]:
    """Leave a run that can go on or none at all: a failed start is removed, what was in its folder before stays."""
    before = set(folder.iterdir()) if folder.is_dir() else set()
    try:
        yield
    except BaseException as error:
        if not _can_go_on(folder, error):
            for each in set(folder.iterdir()) - before if folder.is_dir() else ():
                shutil.rmtree(each, ignore_errors=True) if each.is_dir() else each.unlink(missing_ok=True)
            if not before:
                shutil.rmtree(folder, ignore_errors=True)
        raise


def _can_go_on(folder: Path, error: BaseException) -> bool:
    """Whether a run that stopped with an error is worth keeping: it was interrupted, or has learned something."""
    if not (folder / CONFIG).exists():
        return False
    learned = any(int(file.stem) for file in (folder / CHECKPOINTS).glob("[0-9]*.safetensors"))
    return learned or isinstance(error, Interrupted | KeyboardInterrupt)
