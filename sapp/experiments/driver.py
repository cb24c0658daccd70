"""Runs a grid: every job that the store does not hold yet is trained (or resumed) and added.

A job's run folder is named by the keys of its members. So a killed driver, called again, resumes the very runs that it
had begun; a grown grid trains only what is new; and what the store holds is not trained again, whichever experiment it
was for.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import sapp
from sapp.core.errors import Interrupted, SappError
from sapp.core.files import write_text
from sapp.data import Dataset
from sapp.data.frames import FrameDataset
from sapp.experiments.collect_results import cells, collect_results
from sapp.experiments.datasets import load_dataset
from sapp.experiments.grid import Family, Grid, Maker, Scale, run_key
from sapp.experiments.store import Results, Row, Store, locked
from sapp.runs.folders import CONFIG
from sapp.runs.members import MemberId
from sapp.runs.phases import Phase
from sapp.runs.run import Run

TIMINGS = ("job", "variants", "members", "steps", "seconds", "device")


def run_experiment(
    grid: Grid,
    out: str | Path,
    store: str | Path | None = None,
    *,
    data: Path | None = None,
    progress: bool = True,
    say: Callable[[str], None] = print,
) -> Store:
    """Train what the store lacks of a grid, one job after another, and return the store.

    Args:
        grid: the experiment at a scale.
        out: folder for run folders.
        store: the results store (default: ``OUT/results.sqlite``).
        data: folder with files of the datasets, in place of finding them by name.
        progress: show a progress bar per job.
        say: where to report what is done.
    """
    out = Path(out)
    path = Path(store) if store is not None else out / "results.sqlite"
    failures: list[str] = []
    with locked(path):
        found = Store(path, create=True)
        loaded: tuple[tuple[str, ...], list[Dataset | FrameDataset]] = ((), [])
        for names, family in grid.jobs():
            if loaded[0] != names:
                loaded = names, []  # let go of one environment's data before loading the next
                loaded = names, load_datasets(grid, names, data)
            try:
                finished = train_job(grid, family, loaded[1], out, found.known(), progress, say)
            except Interrupted:
                raise Interrupted("interrupted; everything is saved. Give the same command again to go on") from None
            except SappError as error:
                failures.append(f"{family.name}: {error}")
                say(f"{family.name}: {error}")
                continue
            keep(found, finished)
    if failures:
        raise SappError(
            f"{len(failures)} of {len(list(grid.jobs()))} jobs failed, the others are in {path}: {failures[0]}"
        )
    return found


def train_job(
    grid: Grid,
    family: Family,
    datasets: Sequence[Dataset | FrameDataset],
    out: Path,
    done: Collection[str],
    progress: bool = True,
    say: Callable[[str], None] = print,
) -> list[Results]:
    """Train a family on datasets of one environment, unless all its runs are done; the rows for the store."""
    scale, names = grid.scale, [dataset.name for dataset in datasets]
    phases = family.phases(scale, names)
    keys = {
        MemberId(variant, dataset.name, seed): run_key(make(dataset.name), dataset, seed, phases, scale)
        for variant, make in family.variants.items()
        for dataset in datasets
        for seed in scale.seeds
    }
    missing = {name: key for name, key in keys.items() if key not in done}
    job = f"{family.name}-{names[0].split('-')[0]}"
    listed = cells(grid, names, keys)
    if not missing:
        say(f"{job}: {len(keys)} runs, all done before")
        return [listed]
    say(f"{job}: {len(missing)} runs of {len(keys)} to train on {', '.join(names)}")
    digest = hashlib.sha256("".join(sorted(missing.values())).encode()).hexdigest()[:8]
    folder = out / f"{job}-{digest}"
    run, shared = _trained(folder, family, datasets, phases, scale, missing, progress)
    return [collect_results(grid, run, missing, phases, shared, job), listed]


def keep(store: Store, finished: Iterable[Results]) -> None:
    """Add a job's rows to the store, and its timings to the file beside."""
    for each in finished:
        store.add(each)
        if each.timings:
            _add_timings(store.timings_path, each.timings)


def _trained(
    folder: Path, family: Family, datasets: Sequence[Dataset | FrameDataset], phases: tuple[Phase, ...], scale: Scale,
    members: Mapping[MemberId, str], progress: bool,
) -> tuple[Run, Run | None]:  # fmt: skip
    """Begin or resume the job's run, after the one that its variants share where they do."""
    options: dict[str, Any] = {
        "seeds": scale.seeds, "eval_episodes": scale.eval_episodes, "log_every": scale.log_every, "keep": 1,
        "progress": progress, "eval_max_steps": scale.eval_max_steps,
    }  # fmt: skip
    if not family.state_aware:
        options |= {"phases": phases, "eval_every": scale.eval_every, "only": members.__contains__}
        return train_or_resume(folder, datasets, family.variants, **options), None
    lead = next(iter(family.variants))
    needed = {(member.dataset, member.seed) for member in members}

    def wanted(member: MemberId) -> bool:
        return (member.dataset, member.seed) in needed

    first = options | {"phases": phases[:-1], "eval_every": 0, "only": wanted, "checkpoint_every": scale.eval_every}
    shared = train_or_resume(folder / "shared", datasets, {lead: family.variants[lead]}, **first)
    last = options | {"phases": phases[-1:], "eval_every": scale.eval_every, "only": members.__contains__}
    return train_or_resume(folder / "joint", datasets, family.variants, start_from=shared, **last), shared


def load_datasets(grid: Grid, names: Sequence[str], folder: Path | None) -> list[Dataset | FrameDataset]:
    """Some datasets of a grid, as the grid loads them."""
    return [(grid.load or load_dataset)(name, folder) for name in names]


def train_or_resume(
    folder: Path, datasets: Sequence[Dataset | FrameDataset], variants: Mapping[str, Maker], **options: Any
) -> Run:
    """Resume the run in a folder if it was begun there, else begin it; ``options`` are those of ``sapp.train``."""
    if (folder / CONFIG).exists():
        return sapp.resume(folder, data=list(datasets), progress=options.get("progress", True))
    return sapp.train(dict(variants), list(datasets), out=folder, copy_data=False, **options)


def _add_timings(path: Path, rows: Sequence[Row]) -> None:
    """Whole file anew, so that a reader never sees half a line; a job that was collected twice is listed once."""
    old: dict[tuple[str, ...], None] = {}
    if path.is_file():
        with open(path, encoding="utf-8", newline="") as handle:
            old = {tuple(row): None for row in list(csv.reader(handle))[1:]}
    for row in rows:
        old[tuple(str(value) for value in row)] = None
    content = io.StringIO()
    writer = csv.writer(content, lineterminator="\n")
    writer.writerows([TIMINGS, *old])
    write_text(path, content.getvalue())
