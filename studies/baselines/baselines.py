"""Every baseline on the three medium datasets, and state-aware variants of four of them with their controls.

    python -m studies.baselines.baselines --policies POLICIES --out runs/baselines --minutes 120 --precision tf32
    python -m studies.baselines.baselines ... --algorithms td3bc iql rebrac --state-aware --steps 200000

``POLICIES`` and the data are those of ``studies.medium_datasets.medium``. Each algorithm is a run folder of its own
(``OUT/td3bc``), all its datasets and seeds one population a shape; algorithms joined by ``+`` (``td3bc+iql``) share a
folder and train side by side in one program. A state-aware variant is two folders
(``OUT/sa-td3bc/shared`` and ``joint``): the phases that its columns share are trained once and forked. Called again
with the same ``--out`` it resumes.

``--minutes`` limits the wall clock: what remains of it is shared out evenly among the algorithms still to come, each
run is saved where its time is up, and its policies are played once more (``stopped.csv``), so that every algorithm has
a score whatever the limit.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import sapp
from sapp.algorithms.config import options as settings
from sapp.algorithms.config import override
from sapp.algorithms.presets import preset, weight_range
from sapp.core.errors import Interrupted
from sapp.core.precision import Precision
from sapp.data import Dataset
from sapp.runs.metric_tables import Table
from sapp.training.online_evaluation import COLUMNS as EVALUATION_COLUMNS
from sapp.training.online_evaluation import play
from sapp.weights import DualDICE, LogMinMax, control
from studies.medium_datasets.medium import ENVIRONMENTS, regenerate

ALGORITHMS = (
    "td3bc", "iql", "rebrac", "bc", "edac", "fisher-brc", "brac", "brac-p", "brac-mmd", "bear", "bcq", "uwac",
    "sac-n",
)  # fmt: skip
"""In the order of what is most worth knowing, should the time run out."""
STATE_AWARE = ("td3bc", "bear", "brac", "fisher-brc")
CONTROLS = {"": "uniform", "sa-": "real", "shuffled-sa-": "shuffled", "matched-sa-": "matched"}
"""Prefix of a column's name and what it does with the weights."""
STOPPED = "stopped.csv"
LOG_EVERY = 10_000
"""Steps a row of metrics: small networks make a thousand steps in a tenth of a second."""
Maker = Callable[[str], sapp.Algorithm]


@contextmanager
def interrupted_after(seconds: float | None) -> Iterator[threading.Event]:
    """Ctrl-C after a while (None: never), on which training saves and stops; the event says that it was this one."""
    over = threading.Event()

    def stop() -> None:
        over.set()
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(seconds or 0.0, stop)
    timer.daemon = True
    try:
        if seconds is not None:
            timer.start()
        yield over
    finally:
        timer.cancel()


class Clock:
    """Shares what is left of a wall-clock limit evenly among the jobs still to come."""

    def __init__(self, minutes: float | None, jobs: int) -> None:
        self._end = None if minutes is None else time.monotonic() + 60.0 * minutes
        self._jobs = jobs

    @contextmanager
    def job(self) -> Iterator[None]:
        """Interrupt this process once the job's share is over; training then saves and stops."""
        share = None if self._end is None else max(0.0, self._end - time.monotonic()) / max(1, self._jobs)
        self._jobs -= 1
        with interrupted_after(share):
            yield

    @property
    def over(self) -> bool:
        """Whether nothing is left."""
        return self._end is not None and time.monotonic() >= self._end


def column(name: str, changes: Mapping[str, Any]) -> Maker:
    """A preset by the dataset's name, with the settings changed that it has."""

    def on(dataset: str) -> sapp.Algorithm:
        algorithm = preset(name, dataset)
        known = {dotted for dotted, _ in settings(algorithm)}
        return override(algorithm, {key: value for key, value in changes.items() if key in known})

    return on


def state_aware(name: str, kind: str, changes: Mapping[str, Any]) -> Maker:
    """A preset whose weights are DualDICE's with the paper's range, or one of their controls."""
    from dataclasses import replace

    def on(dataset: str) -> sapp.Algorithm:
        dice = DualDICE(f=LogMinMax(*weight_range(dataset)), fallback=False)
        return replace(column(name, changes)(dataset), weights=control(dice, kind))

    return on


def run_job(out: Path, data: Sequence[Dataset], columns: Mapping[str, Maker], clock: Clock, **arguments: Any) -> bool:
    """Begin or resume a run and train it within its share of the time; whether it is finished."""
    began = time.monotonic()
    try:
        with clock.job():
            if (out / "config.json").exists():
                sapp.resume(out, data=list(data), progress=False)
            else:
                sapp.train(columns, list(data), out=out, copy_data=False, progress=False, **arguments)
    except (Interrupted, KeyboardInterrupt) as stop:
        print(f"{out}: {stop or 'interrupted before training began'} ({time.monotonic() - began:.0f} s)", flush=True)
        if (out / "config.json").exists() and (run := sapp.Run(out)).step:
            play_stopped(run)
        return False
    print(f"{out}: finished ({time.monotonic() - began:.0f} s)", flush=True)
    return True


def play_stopped(run: sapp.Run) -> None:
    """Play the newest checkpoint of a run that was stopped and keep its scores beside the run's own."""
    episodes = run.plan.eval_episodes
    rows = [
        found.row(run.step, run.step, run.members[found.member])
        for found in play(run, episodes=episodes, seed=run.plan.eval_seed)
    ]
    table = Table(run.path / STOPPED, EVALUATION_COLUMNS)
    table.rewind(run.step - 1)
    table.append(rows)
    means = ", ".join(f"{row['member']} {row.get('score_mean', row['return_mean']):.1f}" for row in rows)
    print(f"{run.path}: step {run.step:,}: {means}", flush=True)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, help="folder for the regenerated datasets (default: OUT/data)")
    parser.add_argument("--minutes", type=float, help="stop after so long, everything saved (default: no limit)")
    parser.add_argument("--algorithms", nargs="*", default=ALGORITHMS)
    parser.add_argument("--state-aware", nargs="*", default=STATE_AWARE, choices=STATE_AWARE)
    parser.add_argument("--steps", type=int, default=1_000_000, help="steps after any cloning (joint steps)")
    parser.add_argument("--clone", type=int, help="cloning steps of brac and fisher-brc (default: as published)")
    parser.add_argument("--pretrain", type=int, default=20_000, help="state-aware: steps without weights")
    parser.add_argument("--ratio", type=int, default=100_000, help="state-aware: steps of the ratio alone")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--transitions", type=int, default=1_000_000)
    parser.add_argument("--precision", default="auto", choices=get_args(Precision))
    parser.add_argument("--environments", nargs="+", default=ENVIRONMENTS, choices=ENVIRONMENTS)
    parser.add_argument("--eval-every", type=int)
    options = parser.parse_args()
    clock = Clock(options.minutes, len(options.algorithms) + 2 * len(options.state_aware))
    folder = options.data or options.out / "data"
    data = [regenerate(name, options.policies, folder, options.transitions) for name in options.environments]
    changes: dict[str, Any] = {"precision": options.precision, "decay_steps": float(options.steps)}
    if options.clone is not None:
        changes["behaviour_steps"] = options.clone
    shared: dict[str, Any] = {"seeds": options.seeds, "eval_every": options.eval_every, "log_every": LOG_EVERY}

    for name in options.algorithms:
        if clock.over:
            return
        columns = {each: column(each, changes) for each in name.split("+")}
        run_job(options.out / name, data, columns, clock, steps=options.steps, **shared)
    for name in options.state_aware:
        if clock.over:
            return
        place = options.out / f"sa-{name}"
        columns = {f"{prefix}{name}": state_aware(name, kind, changes) for prefix, kind in CONTROLS.items()}
        clone = columns[f"sa-{name}"](data[0].name).preparation
        pretrain, ratio, joint = sapp.sa_protocol(options.steps, clone + options.pretrain, options.ratio)
        started = run_job(
            place / "shared", data, {f"sa-{name}": columns[f"sa-{name}"]}, clock, phases=(pretrain, ratio),
            **shared | {"eval_every": 0},
        )  # fmt: skip
        if started:
            run_job(place / "joint", data, columns, clock, phases=(joint,), start_from=place / "shared", **shared)


if __name__ == "__main__":
    main()
