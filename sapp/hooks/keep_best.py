"""Keep each member as it was at its best evaluation, beside the run's last checkpoints."""

from __future__ import annotations

import re
from pathlib import Path

from typing_extensions import override

from sapp.core.files import distinct
from sapp.runs.folders import BEST, CONFIG
from sapp.runs.hooks import Hook, Moment, better, check_played, member_of
from sapp.runs.plan import Plan
from sapp.runs.run import Run
from sapp.runs.single_member import write_member


class KeepBest(Hook):
    """Writes ``RUN/best``, a run folder with the member of the highest mean return so far.

    Where a run has several members each has its own, ``RUN/best/ALGORITHM-DATASET-SEED``. They are played, exported and
    reported like any run. The best of many evaluations is chosen by the very episodes that it reports, so its return
    there flatters: evaluate it again with another seed.
    """

    @override
    def check(self, plan: Plan) -> None:
        check_played(self, plan)

    @override
    def on_evaluate(self, at: Moment) -> None:
        for row in at.rows:
            index = at.plan.ids.index(member_of(row))
            folder = best_folder(at.run, index)
            held = _held(folder)
            if held is None or at.step == held[0] or better(float(row["return_mean"]), held[1]):
                write_member(at.run, index, at.step, at.learners, folder)


def best_folder(run: Run, index: int) -> Path:
    """Where the best state of a member is kept."""
    if len(run.members) == 1:
        return run.path / BEST
    return run.path / BEST / distinct([re.sub(r"[^\w.+=-]+", "-", str(member)) for member in run.members])[index]


def _held(folder: Path) -> tuple[int, float] | None:
    """Step and return of what is kept there."""
    if not (folder / CONFIG).is_file():
        return None
    run = Run(folder)
    rows = run.evaluations()
    return (run.step, float(rows[-1]["return_mean"])) if rows else None
