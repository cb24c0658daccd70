"""``sapp.train`` and ``sapp.resume``."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from sapp.core.errors import SappError, printable
from sapp.data import load, save_npz
from sapp.data.frames import FrameDataset
from sapp.data.loaders.frame_files import save_frames
from sapp.evaluation.run_evaluation import Run
from sapp.runs import run as folders
from sapp.runs.folders import DATA, claimed, locked
from sapp.runs.hooks import Hook, check_hooks, several
from sapp.runs.learners import Learner
from sapp.runs.phases import Phase
from sapp.runs.plan import Plan, check_settings
from sapp.runs.problem import Problem
from sapp.runs.run import save_checkpoint
from sapp.training.fork import fork
from sapp.training.loop import Session, opened
from sapp.training.planning import Algorithms, Chosen, DataLike, planned, stem
from sapp.training.upload import AnyDataset, spec


def train(
    algorithm: Algorithms,
    data: DataLike | Sequence[DataLike],
    *,
    seeds: int | Sequence[int] = 1,
    steps: int = 1_000_000,
    phases: Sequence[Phase] | None = None,
    out: str | Path | None = None,
    start_from: str | Path | folders.Run | None = None,
    only: Chosen | None = None,
    eval_every: int | None = None,
    eval_episodes: int = 10,
    eval_seed: int = 0,
    eval_max_steps: int | None = None,
    log_every: int = 1_000,
    checkpoint_every: int | None = None,
    keep: int = 2,
    copy_data: bool = True,
    stream: bool | None = None,
    time_limit: float | None = None,
    progress: bool = True,
    hooks: Hook | Sequence[Hook] = (),
) -> Run:
    """Train algorithms × datasets × seeds as one population and return the run.

    Args:
        algorithm: one algorithm, or several in a list or by name; a preset's name ("sa-cql") will do. A function is
            called with the dataset's name (presets choose b0 and b1 this way) and may return None to leave that
            dataset out.
        data: datasets of vectors or of frames, whatever ``sapp.load`` takes, or functions that load, which are called
            after all other arguments have been checked.
        seeds: how many (0, 1, …) or which.
        steps: gradient steps of the last phase.
        phases: the protocol; by default one phase, or the paper's three (20k + 100k + steps) if any weights learn,
            preceded by a preparatory phase if an algorithm has one (BRAC and Fisher-BRC clone the behaviour).
        out: the run folder; by default ``runs/<algorithm>-<dataset>-<time>``. Training that fails before its first
            checkpoint leaves no folder behind.
        start_from: a run from whose members, matched by dataset and seed, these members start: with their parameters,
            optimisers and counters. So shared phases are trained once and forked. Weights that learn may be added to a
            run without them, or left out: SA-CQL can continue from CQL.
        only: which members to train, by name of the algorithm, dataset and seed; default all.
        eval_every: steps between evaluations (default: a twentieth of ``steps``; 0 switches evaluation off).
        eval_episodes: episodes per member and evaluation.
        eval_seed: seed of the evaluation's start states.
        eval_max_steps: for images, cut evaluation episodes here (default: the game's own limit).
        log_every: steps averaged in a row of metrics.csv.
        checkpoint_every: steps between checkpoints (default: as ``eval_every``).
        keep: how many checkpoints to keep.
        copy_data: keep a copy of in-memory datasets in the run folder; without it, resuming needs ``data=``.
        stream: bring batches of frames from the host instead of keeping all frames on the device, with the same result
            (default: only if they would fill it).
        time_limit: seconds after which the run is saved and ``TimeLimitReached`` raised; ``resume`` continues.
        progress: show a progress bar.
        hooks: to stop early, keep the best, log elsewhere; see ``sapp.hooks``.

    Examples:
        >>> import sapp
        >>> from sapp.envs.point import behaviour_dataset
        >>> data = behaviour_dataset(episodes=6)
        >>> sweep = {f"lr={lr}": sapp.BC(hidden=(8,), actor_lr=lr) for lr in (1e-3, 1e-2)}
        >>> run = sapp.train(sweep, data, seeds=2, steps=4, eval_every=0, progress=False)  # four members, one program
        >>> len(run.members), run.predict(data.observation[0], "lr=0.01/point-behaviour/1").shape
        (4, (2,))
    """
    session = Session(progress, stream, _deadline(time_limit), several(hooks))
    plan, datasets = planned(
        algorithm, data, seeds=seeds, steps=steps, phases=phases, only=only, eval_every=eval_every,
        eval_episodes=eval_episodes, eval_seed=eval_seed, eval_max_steps=eval_max_steps, log_every=log_every,
        checkpoint_every=checkpoint_every, keep=keep, progress=progress,
    )  # fmt: skip
    if stream and not any(isinstance(dataset, FrameDataset) for dataset in datasets):
        raise SappError("stream leaves frames on the host, and no dataset is of frames; leave it out")
    source = start_from if isinstance(start_from, folders.Run) or start_from is None else Run(start_from)
    forked = None if source is None else fork(plan, source, [spec(dataset) for dataset in datasets])
    check_hooks(session.hooks, plan)
    with claimed(out, stem(plan)) as folder:
        run = _begin(folder, plan, datasets, forked, copy_data)
        with opened(run, datasets, session) as loop:
            loop.go()
    return run


def _begin(
    folder: Path, plan: Plan, datasets: Sequence[AnyDataset], forked: list[Learner] | None, copy_data: bool
) -> Run:
    """Write what a run starts with into its folder."""
    Run.make_folder(folder)
    if forked is not None:
        save_checkpoint(folder, 0, forked)
    for problem, dataset in zip(plan.problems, datasets, strict=True):
        if copy_data and problem.source is None:  # made in memory: without a copy it could not be resumed by itself
            _save_copy(dataset, _copy(folder, problem))
    return Run.create(folder, plan)


def _deadline(time_limit: float | None) -> float | None:
    if time_limit is None:
        return None
    if not time_limit > 0.0:
        raise SappError(f"time_limit is {time_limit}: it must be more than 0 seconds")
    return time.monotonic() + time_limit


def resume(
    path: str | Path,
    *,
    data: Sequence[AnyDataset] | None = None,
    stream: bool | None = None,
    time_limit: float | None = None,
    progress: bool = True,
    hooks: Hook | Sequence[Hook] = (),
) -> Run:
    """Continue a run from its newest checkpoint, or from step 0 if it has none, to the bits of an uninterrupted run.

    ``data`` replaces the recorded sources (a file that moved, say); it must hold the same transitions. ``stream``,
    ``time_limit`` and ``hooks`` are as in ``train`` and may differ from those of the original call.

    Examples:
        >>> import sapp
        >>> from sapp.envs.point import behaviour_dataset
        >>> data = behaviour_dataset(episodes=6)
        >>> run = sapp.train(sapp.BC(hidden=(8,)), data, steps=4, eval_every=0, out="resumed", progress=False)
        >>> sapp.resume("resumed", progress=False).step  # finished already: nothing is trained
        4
    """
    session = Session(progress, stream, _deadline(time_limit), several(hooks))
    run = Run(path)
    if data is not None and len(data) != len(run.plan.problems):
        raise SappError(f"{path}: the run has {len(run.plan.problems)} datasets, {len(data)} were given")
    datasets = list(data) if data is not None else datasets_of(run)
    for problem, dataset in zip(run.plan.problems, datasets, strict=True):
        if dataset.fingerprint != problem.fingerprint:
            raise SappError(
                f"{path}: dataset {problem.name!r} has changed since the run began; restore it or train anew"
            )
    if run.step >= run.total_steps:  # nothing to do, so nothing to lock: several processes may build on a finished run
        run.restore()  # says if its checkpoint is damaged
        return run
    for line in check_settings(run.path, run.versions):
        print(printable(line), file=sys.stderr)
    check_hooks(session.hooks, run.plan)
    with locked(run.path), opened(run, datasets, session) as loop:
        loop.go()
    return run


def _save_copy(dataset: AnyDataset, path: Path) -> None:
    if isinstance(dataset, FrameDataset):
        shutil.rmtree(path, ignore_errors=True)  # of a start that was killed before it was a run
        save_frames(dataset, path)
    else:
        save_npz(dataset, path)


def _copy(folder: Path, problem: Problem) -> Path:
    """A file, or a folder of frames."""
    return folder / DATA / f"{problem.fingerprint[:16]}{'.npz' if problem.frame is None else ''}"


def datasets_of(run: folders.Run) -> list[AnyDataset]:
    """What a run was trained on, loaded from where it was."""
    return [_reload(run, problem) for problem in run.plan.problems]


def _reload(run: folders.Run, problem: Problem) -> AnyDataset:
    try:
        return load(problem.source if problem.source is not None else _copy(run.path, problem))
    except SappError as error:
        raise SappError(f"{error}; if it moved, say where it is: sapp resume {run.path} --data PLACE") from None
