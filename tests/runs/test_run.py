"""A run folder as an object: members by name, checkpoints by step, and what is said where there are none."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from sapp.core.errors import SappError
from sapp.runs.run import Run


def test_members_are_found_by_number_by_name_and_from_the_end(trained: Path) -> None:
    run = Run(trained)
    (only,) = run.members
    assert [run.member_index(which) for which in (0, -1, only, str(only))] == [0, 0, 0, 0]
    with pytest.raises(SappError, match=f"no member 'cql'; it has {only}"):
        run.member_index("cql")
    with pytest.raises(SappError, match="no member 1; it has 1"):
        run.member_index(1)


def test_checkpoints_are_found_by_step(trained: Path) -> None:
    run = Run(trained)
    assert run.step == run.total_steps == 20
    step, actors = run.actors_at()
    assert (step, len(actors)) == (20, 1)
    with pytest.raises(SappError, match=r"no checkpoint at step 7; it has .*20"):
        run.restore(7)
    assert repr(run).endswith("1 members, step 20 of 20)")


def test_one_observation_and_many_have_the_same_actions_and_values(trained: Path) -> None:
    run = Run(trained)
    seen = np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32)
    actions = run.predict(seen)
    assert actions.shape[0] == 4
    np.testing.assert_allclose(run.predict(seen[2]), actions[2], rtol=1e-5, atol=1e-6)
    values = run.predict_value(seen, actions)
    assert values.shape == (4,)
    np.testing.assert_allclose(run.predict_value(seen[2], actions[2]), values[2], rtol=1e-4, atol=1e-5)


def test_a_folder_without_a_run_or_without_a_checkpoint_says_so(trained: Path, tmp_path: Path) -> None:
    with pytest.raises(SappError, match=r"not a run folder \(it has no config.json\)$"):
        Run(tmp_path)
    copy = tmp_path / "run"
    shutil.copytree(trained, copy)
    for file in (copy / "checkpoints").iterdir():
        file.unlink()
    empty = Run(copy)
    assert (empty.step, empty.checkpoints) == (0, {})
    with pytest.raises(SappError, match="no checkpoint yet; train or resume the run first"):
        empty.predict(np.zeros(2, np.float32))
    with pytest.raises(SappError, match="already holds a run that has no checkpoint yet; start it again from step 0"):
        Run.make_folder(copy)
