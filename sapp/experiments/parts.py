"""An experiment in parts, each short enough for a machine that is available for minutes and keeps nothing afterwards.

A study says which runs make up each part. A part trains those that its committed rows lack; its rows come home as an
archive of text and are put to the others (``merge``). See studies/table1 for one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sapp.core.errors import SappError
from sapp.core.precision import Precision, resolve
from sapp.experiments import text_store
from sapp.experiments.driver import run_experiment
from sapp.experiments.grid import SCALES, Grid, Scale
from sapp.experiments.store import TABLES
from sapp.runs.members import MemberId
from sapp.runs.phases import Phase

SAVING = 45.0
"""Seconds before the end of a part's time at which training stops, to evaluate, save and write rows."""
REHEARSAL_TRANSITIONS = 3_000
"""Of each dataset in a rehearsal."""
UNFINISHED_STATUS = 3
"""Exit status of a part whose time was over: the same command goes on."""


@dataclass(frozen=True)
class Block:
    """Runs that are a rectangle: every method on every dataset with every seed."""

    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Part:
    """What is trained in one go."""

    blocks: tuple[Block, ...]

    @property
    def members(self) -> frozenset[MemberId]:
        """Its runs."""
        return frozenset(
            MemberId(method, dataset, seed)
            for block in self.blocks
            for method in block.methods
            for dataset in block.datasets
            for seed in block.seeds
        )

    @property
    def datasets(self) -> tuple[str, ...]:
        """Its datasets, in the order of the blocks."""
        return tuple(dict.fromkeys(name for block in self.blocks for name in block.datasets))


@dataclass(frozen=True)
class Costs:
    """Seconds that things take, to size parts by.

    Attributes:
        step: of a step, whatever its number of members.
        plain: of a run-step without an estimator of ratios.
        learning: of a run-step with one.
        ratio: of a run-step in which only the estimator learns.
        start: until training begins: unpacking, imports, making and loading data.
        job: of a family: compiling its programs, the last evaluation, its rows.
    """

    step: float
    plain: float
    learning: float
    ratio: float
    start: float
    job: float


@dataclass(frozen=True)
class Study:
    """A study in parts.

    Attributes:
        folder: of the study; its rows are in ``rows``.
        grid: the experiment at a scale.
        scale: of the study.
        parts: all of it.
        costs: what parts are sized by.
        precision: of its arithmetic; runs in another do not belong to it.
    """

    folder: Path
    grid: Callable[[Scale], Grid]
    scale: Scale
    parts: tuple[Part, ...]
    costs: Costs
    precision: Precision = "mixed"

    @property
    def rows(self) -> Path:
        """The committed rows."""
        return self.folder / "rows"

    def whole(self, rehearse: bool = False) -> Grid:
        """The experiment, or its rehearsal: as many runs of tiny networks, for some tens of steps."""
        return self.grid(rehearsal(self.scale) if rehearse else self.scale)

    def part(self, number: int) -> Part:
        """A part by its number, from 1."""
        if not 1 <= number <= len(self.parts):
            raise SappError(f"part {number}: give 1 to {len(self.parts)}")
        return self.parts[number - 1]


def rehearsal(scale: Scale) -> Scale:
    """A scale with its name and seeds, at which every part is over soon, also on a CPU."""
    return replace(
        scale, steps=40, pretrain=20, ratio=20, eval_every=20, eval_episodes=1, log_every=10,
        changes=SCALES["smoke"].changes, note="rehearsal",
    )  # fmt: skip


def seconds(study: Study, part: Part) -> float:
    """How long a part takes, data included."""
    whole, costs = study.whole(), study.costs
    grid, total = whole.part(part.members), costs.start
    for names, family in grid.jobs(together=True):
        runs, phases = grid.runs(family, names), family.phases(grid.scale, names)
        pairs = len({(run.dataset, run.seed) for run in runs})
        learning = sum(family.variants[run.algorithm](run.dataset).weights.learns for run in runs)
        total += costs.job + sum(
            phase.steps * _step(costs, phase, pairs, len(runs), learning, family.state_aware and phase != phases[-1])
            for phase in phases
        )
    return total


def _step(costs: Costs, phase: Phase, pairs: int, runs: int, learning: int, shared: bool) -> float:
    """Seconds of a step of a phase, which is trained once per dataset and seed where it is shared."""
    if not phase.base:
        return costs.step + costs.ratio * pairs
    if shared:
        return costs.step + costs.plain * pairs
    return costs.step + costs.learning * learning + costs.plain * (runs - learning)


def done(rows: Path, grid: Grid) -> set[MemberId]:
    """The runs of an experiment that a folder of CSV files holds."""
    if not text_store.is_text_store(rows):
        return set()
    found = (dict(zip(TABLES["cells"], row, strict=True)) for row in text_store.read(rows).rows["cells"])
    return {
        MemberId(cell["variant"], cell["dataset"], cell["seed"])
        for cell in found
        if (cell["experiment"], cell["scale"]) == (grid.name, grid.scale.label)
    }


def make_data(part: Part, *, rehearse: bool = False) -> None:
    """Make the datasets of a part side by side, each by a process of its own."""
    threads = max(1, (os.cpu_count() or 1) // len(part.datasets))
    few = ["--transitions", str(REHEARSAL_TRANSITIONS)] if rehearse else []
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    makers = {
        name: subprocess.Popen(
            [sys.executable, "-m", "sapp", "data", "make", name, "--quiet", "--threads", str(threads), *few],
            env=environment,
        )
        for name in part.datasets
    }
    failed = [name for name, maker in makers.items() if maker.wait() != 0]
    if failed:
        raise SappError(f"{', '.join(failed)}: could not be made; see above")


def train(study: Study, part: Part, out: Path, *, minutes: float | None = None, rehearse: bool = False) -> int:
    """Train what a part lacks and leave its rows in ``OUT/rows``; how many runs are not finished when time is over.

    Args:
        study: which.
        part: of it.
        out: folder for runs and rows; the same one goes on with what is unfinished.
        minutes: for all of it.
        rehearse: at the scale of a rehearsal, where any precision will do and committed rows do not count.
    """
    rows = out / "rows"
    if not rehearse:
        if resolve("auto") != study.precision:
            raise SappError(
                f"{study.folder.name}: its runs are in precision {study.precision}; this machine has no GPU"
            )
        if text_store.is_text_store(study.rows) and not rows.exists():
            shutil.copytree(study.rows, rows, ignore=shutil.ignore_patterns(text_store.UNFINISHED))
    grid = study.whole(rehearse).part(part.members)
    limit = None if minutes is None else max(1.0, 60.0 * minutes - SAVING)
    with run_experiment(grid, out / "runs", progress=False, time_limit=limit, in_turn=True, together=True, rows=rows):
        pass
    return len(part.members - done(rows, grid))


def listing(study: Study) -> list[tuple[int, Part, int, float]]:
    """Every part: its number, what it is, how many of its runs are done, and its minutes."""
    there = done(study.rows, study.whole())
    return [
        (number, part, len(part.members & there), seconds(study, part) / 60.0)
        for number, part in enumerate(study.parts, 1)
    ]


def described(part: Part) -> str:
    """A part in a line: methods on datasets with seeds."""
    return "; ".join(
        f"{', '.join(block.methods)} on {', '.join(block.datasets)}, seed{'s' * (len(block.seeds) > 1)} "
        f"{', '.join(map(str, block.seeds))}"
        for block in part.blocks
    )


def command(study: Study, arguments: Sequence[str] | None = None) -> None:
    """The parts of a study as a command.

    list: what they are, how long they take, what is done.
    data N: make the datasets of part N.
    run N --out OUT --minutes M: train what part N lacks; exit status 3 where time was over, and the same goes on.
    merge SOURCE...: put rows from folders or archives (of bench/session.py --collect) to the study's.
    """
    from sapp.experiments.merge import merge

    parser = argparse.ArgumentParser(description=command.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("list", "data", "run", "merge"))
    parser.add_argument("arguments", nargs="*", help="the part's number; for merge, folders or archives")
    parser.add_argument("--out", type=Path, help="folder of a part's runs and rows")
    parser.add_argument("--minutes", type=float, help="for a part, data not included")
    parser.add_argument(
        "--scale", choices=("study", "rehearsal"), default="study", help="rehearsal: tiny networks, data and lengths"
    )
    parser.add_argument("--rows", type=Path, default=study.rows, help="merge into this folder")
    options = parser.parse_args(arguments)
    rehearse = options.scale == "rehearsal"
    try:
        if options.what == "list":
            for number, part, count, minutes in listing(study):
                print(f"{number:3}  {count:2} of {len(part.members)} done  {minutes:5.1f} min  {described(part)}")
        elif options.what == "merge":
            merge(study, [Path(name) for name in options.arguments], options.rows, rehearse=rehearse)
        else:
            if len(options.arguments) != 1 or not options.arguments[0].isdigit():
                parser.error("give the number of one part")
            part = study.part(int(options.arguments[0]))
            if options.what == "data":
                make_data(part, rehearse=rehearse)
                return
            if options.out is None:
                parser.error("run: give --out")
            left = train(study, part, options.out, minutes=options.minutes, rehearse=rehearse)
            if left:
                print(f"{left} of {len(part.members)} runs are not finished; the same command goes on")
                raise SystemExit(UNFINISHED_STATUS)
    except SappError as error:
        raise SystemExit(f"error: {error}") from None
