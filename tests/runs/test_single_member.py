"""One member of a run as a run of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import sapp
from sapp.envs.point import behaviour_dataset
from sapp.runs.run import Run
from sapp.runs.single_member import write_member


def test_a_member_acts_and_reports_as_it_does_among_others(tmp_path: Path) -> None:
    run = sapp.train(
        {"narrow": sapp.BC(hidden=(4,), batch_size=8), "wide": sapp.BC(hidden=(6,), batch_size=8)},
        behaviour_dataset(4), seeds=2, steps=4, log_every=2, eval_every=0, out=tmp_path / "run", progress=False,
    )  # fmt: skip
    step, learners = run.restore()
    seen = np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32)
    for index in (3, 0):  # the second takes the place of the first
        write_member(run, index, step, learners, tmp_path / "one")
        single = Run(tmp_path / "one")
        assert single.members == [run.members[index]]
        assert (single.step, list(single.checkpoints)) == (4, [4])
        np.testing.assert_array_equal(single.predict(seen), run.predict(seen, index))
        assert [row["step"] for row in single.metrics()] == ["2", "4"]
        assert single.plan.problems[0].source is None
