"""docs/add-an-algorithm.md does what it says: under sixty lines, and everything the others can."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import jax
import numpy as np
import pytest

import sapp
from sapp.envs.point import behaviour_dataset

PAGE = Path(__file__).parents[2] / "docs" / "add-an-algorithm.md"
TINY = {"hidden": (8, 8), "batch_size": 16}


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The page's first block of code, as a module of its own."""
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
    assert len(code.splitlines()) < 60
    file = tmp_path_factory.mktemp("page") / "likelihood_bc.py"
    file.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("likelihood_bc", file)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules["likelihood_bc"] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def test_it_trains_with_and_without_state_weights_and_resumes_bit_for_bit(module: ModuleType, tmp_path: Path) -> None:
    data = behaviour_dataset(6)
    dice = sapp.DualDICE(hidden=(8, 8))
    named = {"plain": module.LikelihoodBC(**TINY), "state-aware": module.LikelihoodBC(**TINY, weights=dice)}
    phases = [sapp.Phase("pretrain", 8, ratio=False, weighted=False), sapp.Phase("joint", 12)]
    options = {"phases": phases, "eval_every": 6, "eval_episodes": 2, "log_every": 4, "progress": False, "keep": 9}
    run = sapp.train(named, data, out=tmp_path / "run", **options)
    rows = run.evaluations()
    assert {row["algorithm"] for row in rows} == {"plain", "state-aware"}
    assert all(np.isfinite(float(row["return_mean"])) for row in rows)
    assert run.predict(data.observation[0], 1).shape == (data.action.shape[1],)

    *earlier, last = run.checkpoints.values()
    whole = last.read_bytes()
    last.unlink()
    assert earlier
    again = sapp.resume(tmp_path / "run", progress=False)
    assert again.checkpoints[20].read_bytes() == whole
    assert again.evaluations() == rows
    leaves = jax.tree.leaves(again.restore()[1])
    assert all(np.all(np.isfinite(leaf)) for leaf in leaves if np.asarray(leaf).dtype.kind == "f")
