"""Folders of online runs."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from sac_runs import SETTINGS, TASKS, contents

from sapp.collect.online_run import snapshot_steps
from sapp.collect.online_training import resume, train
from sapp.core.errors import SappError


def test_snapshots_are_denser_early_and_end_at_the_end() -> None:
    steps = snapshot_steps(999_936, 20, 256, 5_120)
    assert len(steps) == 20
    assert steps[0] == 5_120
    assert steps[-1] == 999_936  # whole chunks
    gaps = np.diff(steps)
    assert (np.diff(gaps) > -300).all()  # growing, but for rounding
    assert all(step % 256 == 0 for step in steps)


def test_a_start_that_was_cut_off_names_the_command_that_starts_it_again(whole, tmp_path) -> None:
    out = tmp_path / "run"
    shutil.copytree(whole.path / "buffers", out / "buffers")
    with pytest.raises(SappError, match=rf"not a run folder .* give its 'sapp collect \.\.\. --out {out}' again"):
        resume(out)
    run = train(TASKS, out=out, time_limit=0.0, **SETTINGS)
    with pytest.raises(SappError, match=rf"already holds a run; continue it with 'sapp collect --resume {out}'"):
        train(TASKS, out=out, **SETTINGS)
    for file in run.checkpoints.values():  # as if it had been killed before the first
        file.unlink()
    run = resume(out, progress=False, threads=1)
    assert contents(run).keys() == contents(whole).keys()
    assert all(contents(run)[name] == value for name, value in contents(whole).items())


def test_unknown_environments_and_folders_are_refused(whole, tmp_path) -> None:
    with pytest.raises(SappError, match="did you mean 'hopper'"):
        train("hoper", out=tmp_path / "run", **SETTINGS)
    assert not list(tmp_path.rglob("*.npy"))
    with pytest.raises(SappError, match="already holds a run"):
        train("point", out=whole.path, **SETTINGS)
    with pytest.raises(SappError, match="not a run folder"):
        resume(tmp_path)
    with pytest.raises(SappError, match="no member hopper/7"):
        whole.buffer("hopper", 7)
    with pytest.raises(SappError, match="no snapshot at step 3"):
        whole.snapshot(3)
