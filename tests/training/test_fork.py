"""Starting from another run's members: found by data and seed, whatever their order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sapp
from sapp.core.errors import SappError
from sapp.envs.point import behaviour_dataset
from sapp.runs.learners import Learner
from sapp.training.device_data import spec_of
from sapp.training.fork import fork

DATA = behaviour_dataset(4)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> sapp.Run:
    return sapp.train(
        {"bc": sapp.BC(hidden=(4,), batch_size=8)}, DATA, seeds=3, steps=2, log_every=1, eval_every=0, progress=False,
        out=tmp_path_factory.mktemp("runs") / "source",
    )  # fmt: skip


def forked(source: sapp.Run, **change: object) -> list[Learner]:
    members = [replace(member, **change) for member in source.plan.members]
    return fork(replace(source.plan, members=(members[2], members[0])), source, [spec_of(DATA)])


def test_members_are_taken_by_their_seed(source: sapp.Run) -> None:
    (found,) = forked(source)
    _, (learner,) = source.restore()
    for kept, whole in zip(*(each.base.actor.network.mlp.layers for each in (found, learner)), strict=True):
        np.testing.assert_array_equal(kept.weight, whole.weight[np.array([2, 0])])
    assert int(found.updates) == 2


def test_what_does_not_fit_is_named(source: sapp.Run, tmp_path: Path) -> None:
    with pytest.raises(SappError, match=r"has no member with the data and seed of bc/.*/9"):
        forked(source, seed=9)
    with pytest.raises(SappError, match="its networks differ from these; use the same hidden sizes and weights"):
        forked(source, algorithm=sapp.BC(hidden=(5,), batch_size=8))
