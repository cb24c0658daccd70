"""Runs a grid: every job that the store does not hold yet is trained (or resumed) and added.

A job's run folder is named by the keys of its members. So a killed driver, called again, resumes the very runs that it
had begun; a grown grid trains only what is new; and what the store holds is not trained again, whichever experiment it
was for.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sapp
from sapp.core.errors import Interrupted, SappError, TimeLimitReached
from sapp.data import Dataset
from sapp.data.frames import FrameDataset
from sapp.experiments import text_store, timings
from sapp.experiments.collect_results import cells, collect_results
from sapp.experiments.datasets import find_file, load_dataset
from sapp.experiments.grid import Family, Grid, Maker, Scale, run_key
from sapp.experiments.store import Results, Store, locked
from sapp.runs.folders import CONFIG
from sapp.runs.members import MemberId
from sapp.runs.phases import Phase
from sapp.runs.run import Run


class Clock:
    """Shares what is left of a time limit among the jobs still to come, by their sizes, or gives it to each in turn."""

    def __init__(self, seconds: float | None, sizes: Sequence[int], *, in_turn: bool = False) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds
        self._sizes = list(sizes)
        self._in_turn = in_turn

    def share(self) -> float | None:
        """Seconds for the next job; None without a limit."""
        size, coming = self._sizes.pop(0), sum(self._sizes)
        if self._end is None:
            return None
        left = max(0.0, self._end - time.monotonic())
        return left if self._in_turn else left * size / (size + coming)


def run_experiment(
    grid: Grid,
    out: str | Path,
    store: str | Path | None = None,
    *,
    data: Path | None = None,
    progress: bool = True,
    time_limit: float | None = None,
    in_turn: bool = False,
    together: bool = False,
    rows: Path | None = None,
    say: Callable[[str], None] = print,
) -> Store:
    """Train what the store lacks of a grid, one job after another, and return the store.

    Args:
        grid: the experiment at a scale.
        out: folder for run folders.
        store: the results store (default: ``OUT/results.sqlite``).
        data: folder with files of the datasets, in place of finding them by name.
        progress: show a progress bar per job.
        time_limit: seconds, shared out among the jobs by their members; a job whose share is over is saved, the next
            begins, and the same call goes on with what is unfinished.
        in_turn: let each job use all that is left of the time limit: the first ones are finished, the last may not be.
        together: train all environments of a family side by side, which fills a large GPU with few runs each; the data
            of all must fit into memory. By default one environment after another.
        rows: folder of CSV files with the same results (``text_store``): what they hold is taken into the store first,
            and what is trained is added to them; what a time limit or Ctrl-C stopped is kept apart there, as far as it
            came.
        say: where to report what is done.
    """
    out = Path(out)
    path = Path(store) if store is not None else out / "results.sqlite"
    failures: list[str] = []
    stopped: list[str] = []
    jobs = list(grid.jobs(together=together))
    clock = Clock(time_limit, [len(grid.runs(family, names)) for names, family in jobs], in_turn=in_turn)
    if rows is not None:
        text_store.check_place(rows)
    check_data(grid, [name for names, _ in jobs for name in names], data)
    with locked(path):
        found = opened(path, rows)
        loaded: tuple[tuple[str, ...], list[Dataset | FrameDataset]] = ((), [])
        for names, family in jobs:
            share = clock.share()
            if share == 0.0:
                stopped.append(family.name)
                say(f"{family.name}: not begun, the time is over")
                continue
            if loaded[0] != names:
                loaded = names, []  # let go of one environment's data before loading the next
                loaded = names, load_datasets(grid, names, data)
            try:
                finished = train_job(grid, family, loaded[1], out, found.known(), progress, say, share)
            except TimeLimitReached:
                stopped.append(family.name)
                keep_unfinished(grid, family, loaded[1], out, found.known(), rows)
                say(f"{family.name}: its share of the time is over; everything is saved")
                continue
            except Interrupted:
                keep_unfinished(grid, family, loaded[1], out, found.known(), rows)
                raise Interrupted("interrupted; everything is saved. Give the same command again to go on") from None
            except SappError as error:
                failures.append(f"{family.name}: {error}")
                say(f"{family.name}: {error}")
                continue
            keep(found, finished, rows)
    if failures:
        raise SappError(f"{len(failures)} of {len(jobs)} jobs failed, the others are in {path}: {failures[0]}")
    if stopped:
        say(f"{len(stopped)} of {len(jobs)} jobs are unfinished; give the same command again to go on")
    return found


def train_job(
    grid: Grid,
    family: Family,
    datasets: Sequence[Dataset | FrameDataset],
    out: Path,
    done: Collection[str],
    progress: bool = True,
    say: Callable[[str], None] = print,
    time_limit: float | None = None,
) -> list[Results]:
    """Train a family on datasets of one environment, unless all its runs are done; the rows for the store."""
    job = Job.of(grid, family, datasets, out, done)
    listed = cells(grid, [dataset.name for dataset in datasets], job.keys)
    if not job.missing:
        say(f"{job.name}: {len(job.keys)} runs, all done before")
        return [listed]
    names = ", ".join(dataset.name for dataset in datasets)
    say(f"{job.name}: {len(job.missing)} runs of {len(job.keys)} to train on {names}")
    run, shared = _trained(job.folder, family, datasets, job.phases, grid.scale, job.missing, progress, time_limit)
    return [collect_results(grid, run, job.missing, job.phases, shared, job.name), listed]


@dataclass(frozen=True)
class Job:
    """A family on some datasets.

    Attributes:
        name: of the job.
        phases: of its protocol.
        keys: of its runs.
        missing: of those that the store lacks.
        folder: of their run folders, named by these keys.
    """

    name: str
    phases: tuple[Phase, ...]
    keys: Mapping[MemberId, str]
    missing: Mapping[MemberId, str]
    folder: Path

    @classmethod
    def of(
        cls, grid: Grid, family: Family, datasets: Sequence[Dataset | FrameDataset], out: Path, done: Collection[str]
    ) -> Job:
        """What there is to do where the runs of some keys are done."""
        by_name = {dataset.name: dataset for dataset in datasets}
        phases = family.phases(grid.scale, list(by_name))
        keys = {
            each: run_key(
                family.variants[each.algorithm](each.dataset), by_name[each.dataset], each.seed, phases, grid.scale
            )
            for each in grid.runs(family, list(by_name))
        }
        missing = {each: key for each, key in keys.items() if key not in done}
        name = "-".join([family.name, *dict.fromkeys(name.split("-")[0] for name in by_name)])
        digest = hashlib.sha256("".join(sorted(missing.values())).encode()).hexdigest()[:8]
        return cls(name, phases, keys, missing, out / f"{name}-{digest}")


def keep_unfinished(
    grid: Grid, family: Family, datasets: Sequence[Dataset | FrameDataset], out: Path, done: Collection[str],
    rows: Path | None,
) -> None:  # fmt: skip
    """What a stopped job has evaluated, beside the folder of CSV files, if there is one."""
    if rows is None:
        return
    job = Job.of(grid, family, datasets, out, done)
    folder = job.folder / "joint" if family.state_aware else job.folder
    if not (folder / CONFIG).is_file():  # stopped before its last phase
        return
    run, shared = Run(folder), Run(job.folder / "shared") if family.state_aware else None
    if run.evaluations():
        stopped = collect_results(grid, run, job.missing, job.phases, shared, job.name)
        listed = cells(grid, [dataset.name for dataset in datasets], job.missing)
        text_store.add_unfinished(Results({**stopped.rows, **listed.rows}), rows)


def opened(path: Path, rows: Path | None) -> Store:
    """The results store, made if it is not there, with the runs of a folder of CSV files that it lacks."""
    held = None if rows is None else text_store.read(rows)
    store = Store(path, create=True)
    timings.read(store.timings_path)  # refuses before anything is trained what could not be added to afterwards
    if held is not None and held.rows["runs"]:
        keep(store, [held.without(store.known(), cells=False)])
    return store


def keep(store: Store, finished: Iterable[Results], rows: Path | None = None) -> None:
    """Add a job's rows to the store, its timings to the file beside it, and all of that to a folder of CSV files."""
    for each in finished:
        store.add(each)
        if each.timings:
            timings.add(store.timings_path, each.timings)
    if rows is not None:
        text_store.write(store, rows)
        text_store.leave_out(rows / text_store.UNFINISHED, store.known())


def _trained(
    folder: Path, family: Family, datasets: Sequence[Dataset | FrameDataset], phases: tuple[Phase, ...], scale: Scale,
    members: Mapping[MemberId, str], progress: bool, time_limit: float | None,
) -> tuple[Run, Run | None]:  # fmt: skip
    """Begin or resume the job's run, after the one that its variants share where they do."""
    end = None if time_limit is None else time.monotonic() + time_limit
    options: dict[str, Any] = {
        "seeds": scale.seeds, "eval_episodes": scale.eval_episodes, "log_every": scale.log_every, "keep": 1,
        "progress": progress, "eval_max_steps": scale.eval_max_steps,
    }  # fmt: skip

    def run(name: str, variants: Mapping[str, Maker], **own: Any) -> Run:
        left = None if end is None else max(0.1, end - time.monotonic())
        return train_or_resume(folder / name, datasets, variants, time_limit=left, **options | own)

    chosen = members.__contains__
    if not family.state_aware:
        return run("", family.variants, phases=phases, eval_every=scale.eval_every, only=chosen), None
    lead = next(iter(family.variants))
    needed = {(member.dataset, member.seed) for member in members}

    def wanted(member: MemberId) -> bool:
        return (member.dataset, member.seed) in needed

    shared = run(
        "shared", {lead: family.variants[lead]}, phases=phases[:-1], eval_every=0, only=wanted,
        checkpoint_every=scale.eval_every,
    )  # fmt: skip
    last = {"phases": phases[-1:], "eval_every": scale.eval_every, "only": chosen, "start_from": shared}
    return run("joint", family.variants, **last), shared


def load_datasets(grid: Grid, names: Sequence[str], folder: Path | None) -> list[Dataset | FrameDataset]:
    """Some datasets of a grid, as the grid loads them."""
    return [(grid.load or load_dataset)(name, folder) for name in names]


def check_data(grid: Grid, names: Iterable[str], folder: Path | None) -> None:
    """Find the files of all datasets before anything is trained, so that the last one is not missed after hours."""
    if grid.load is None:
        for name in dict.fromkeys(names):
            find_file(name, folder)


def train_or_resume(
    folder: Path, datasets: Sequence[Dataset | FrameDataset], variants: Mapping[str, Maker], **options: Any
) -> Run:
    """Resume the run in a folder if it was begun there, else begin it; ``options`` are those of ``sapp.train``."""
    if (folder / CONFIG).exists():
        chosen = {name: options[name] for name in ("progress", "time_limit") if name in options}
        return sapp.resume(folder, data=list(datasets), **chosen)
    return sapp.train(dict(variants), list(datasets), out=folder, copy_data=False, **options)
