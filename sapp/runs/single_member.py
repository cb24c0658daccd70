"""One member of a run as a run of its own: it can be played, exported, judged and reported like any."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from sapp.core.files import write_text
from sapp.runs import metric_tables as tables
from sapp.runs.folders import CHECKPOINTS, CONFIG, EVALUATIONS, EVENTS, METRICS, checkpoint_files, refuse_links
from sapp.runs.learners import Learner
from sapp.runs.members import MemberId
from sapp.runs.run import Run, save_checkpoint


def write_member(source: Run, index: int, step: int, learners: Sequence[Learner], folder: Path) -> None:
    """Write a member as it is at a step into a folder, in place of what this wrote there before.

    Where its data lie is not told: resuming it takes ``data=``.

    Args:
        source: the run that it is a member of; rows of its tables up to the step come along.
        index: of the member.
        step: of the run.
        learners: all members of the run at that step, one tree per group.
        folder: to write.
    """
    plan = source.plan
    member = plan.members[index]
    for learner, indices in zip(learners, plan.groups(), strict=True):
        if index in indices:
            found, position = learner, indices.index(index)
    row = np.asarray([position])
    base, ratio, alive, stopped = jax.tree.map(
        lambda leaf: np.asarray(leaf)[row], (found.base, found.ratio, found.alive, found.stopped_at)
    )
    own = Learner(base, ratio, alive, stopped, np.asarray(found.updates), np.asarray(found.ratio_updates))  # type: ignore[arg-type]
    problem = replace(plan.problems[member.dataset], source=None)
    single = replace(plan, members=(replace(member, dataset=0),), problems=(problem,), keep=1)
    for place in (folder.parent, folder):  # what lies in a run that somebody else sent may lead anywhere
        refuse_links(place)
    (folder / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
    save_checkpoint(folder, step, [own])
    for other, file in checkpoint_files(folder).items():
        if other != step:
            file.unlink()
    for name in (METRICS, EVALUATIONS, EVENTS):
        if (source.path / name).exists():
            _copy_rows(source.path / name, folder / name, source.members[index], step)
    # last: from here on the folder is a run
    write_text(folder / CONFIG, json.dumps(single.to_json(), indent=2, ensure_ascii=False) + "\n")


def _copy_rows(source: Path, target: Path, member: MemberId, step: int) -> None:
    """The rows of one member up to a step."""
    with source.open(encoding="utf-8", newline="") as file:
        columns = next(csv.reader(file))
    target.unlink(missing_ok=True)
    table = tables.Table(target, columns)
    table.rewind(step)
    table.append([row for row in tables.read(source) if MemberId.of(row) == member and int(row["step"]) <= step])
