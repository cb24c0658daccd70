"""An experiment on a Ray cluster: its GPUs (or cores) share the runs, all results come back to one store.

A worker trains a share of the runs (see ``shares``) into a run folder and sends the rows back; only this process
writes to the store. When a worker or its node dies, Ray gives the share to another one: if that one sees the same disk
it resumes the run, else it begins anew. Needs the ``ray`` extra.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sapp.core.errors import SappError
from sapp.core.extras import require
from sapp.experiments import text_store
from sapp.experiments.driver import check_data, keep, load_datasets, opened, train_job
from sapp.experiments.grid import Family, Grid
from sapp.experiments.shares import shares
from sapp.experiments.store import Results, Store, locked


def run_on_ray(
    grid: Grid,
    out: str | Path,
    store: str | Path | None = None,
    *,
    data: Path | None = None,
    address: str | None = None,
    cpus: int = 1,
    gpus: float | None = None,
    rows: Path | None = None,
    say: Callable[[str], None] = print,
) -> Store:
    """Train what the store lacks of a grid on a Ray cluster and return the store.

    Args:
        grid: the experiment at a scale.
        out: folder for run folders; best on a disk that all nodes see.
        store: the results store (default: ``OUT/results.sqlite``).
        data: folder with files of the datasets, in place of finding them by name.
        address: of the cluster (default: the one that is found, else a new one on this machine).
        cpus: that a job asks for.
        gpus: that a job asks for (default: 1 where the cluster has any); as many jobs as the cluster then runs at a
            time share the runs.
        rows: folder of CSV files with the same results, as ``run_experiment`` takes it.
        say: where to report what is done.
    """
    out = Path(out).resolve()
    path = Path(store) if store is not None else out / "results.sqlite"
    failures: list[str] = []
    if rows is not None:
        text_store.check_place(rows)
    check_data(grid, [name for names, _ in grid.jobs() for name in names], data)
    with locked(path), _cluster(address) as ray:
        found = opened(path, rows)
        there = ray.cluster_resources()
        share = gpus if gpus is not None else min(1.0, there.get("GPU", 0.0))
        train = ray.remote(num_cpus=cpus, num_gpus=share, max_retries=-1)(_job)
        known = found.known()
        jobs = {
            train.remote(each.grid, each.names, each.family, out, data, known): each.label
            for each in shares(grid, workers(there, cpus, share))
        }
        say(f"{len(jobs)} jobs for {workers(there, cpus, share)} workers")
        total = len(jobs)
        while jobs:
            (ready, *_), _ = ray.wait(list(jobs), num_returns=1)
            name = jobs.pop(ready)
            try:
                finished, lines = ray.get(ready)
            except ray.exceptions.RayError as error:
                cause = getattr(error, "cause", None) or error
                failures.append(f"{name}: {' '.join(str(cause).split())}")
                say(failures[-1])
                continue
            for line in lines:
                say(line)
            keep(found, finished, rows)
    if failures:
        raise SappError(f"{len(failures)} of {total} jobs failed, the others are in {path}: {failures[0]}")
    return found


def workers(resources: Mapping[str, float], cpus: int, gpus: float) -> int:
    """How many jobs that ask for so much a cluster runs at a time.

    Args:
        resources: of the cluster, as Ray counts them.
        cpus: that a job asks for.
        gpus: that a job asks for.
    """
    asked = {"CPU": float(cpus), "GPU": gpus}
    return max(1, min(int(resources.get(name, 0.0) / each + 1e-9) for name, each in asked.items() if each))


def _job(
    grid: Grid, names: tuple[str, ...], family: Family, out: Path, data: Path | None, known: set[str]
) -> tuple[list[Results], list[str]]:
    """On a worker: train one job and send its rows back, with what there was to say."""
    lines: list[str] = []
    datasets = load_datasets(grid, names, data)
    return train_job(grid, family, datasets, out, known, progress=False, say=lines.append), lines


@contextlib.contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    """Ray, connected; what this call started it also stops."""
    ray = require("ray", "--on ray")
    if ray.is_initialized():
        yield ray
        return
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise SappError(
            f"--address {address or 'auto'}: no Ray cluster there ({' '.join(str(error).split())})"
        ) from None
    try:
        yield ray
    finally:
        ray.shutdown()
